"""The export job on tiny models with the real Qwen2.5 tokeniser: every stage, resumption, and what parity catches."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ada_tui import jobs
from ada_tui.errors import BadInput
from ada_tui.export import gguf, quantise
from ada_tui.export.chat import Chat
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job, Outcome, Phase
from ada_tui.settings import ExportSettings
from ada_tui.worker import export, parity
from ada_tui.worker.context import JobContext
from ada_tui.worker.model import load_tokenizer
from rewards import RewardConfig

PERSONA = {"name": "Ada", "system": "You are Ada, a small model.", "sampling": {"temperature": 0.7, "top_p": 0.95}}
STAGES = ["preflight", "merge", "convert", "quantise", "modelfile", "parity", "ask"]
Make = Callable[..., Path]


def start(workspace: Path, base: Path, adapter: Path | None, quant: str = "q8_0") -> JobDir:
    job = Job(
        kind="export", workspace=str(workspace), parent="grpo-1", model={"base": str(base)}, persona=PERSONA,
        data={"adapter": str(adapter or "")}, rewards=RewardConfig.default().to_dict(),
        params=ExportSettings(quant=quant).model_dump(),  # type: ignore[arg-type]
    )  # fmt: skip
    return jobs.create(workspace / "checkpoints" / "grpo-1" / "exports", job)


def run(job: JobDir) -> dict[str, Any]:
    with JobContext(job) as context:
        export.run(context)
    return next(event.data for event in job.events() if isinstance(event, Outcome) and event.name == "export")


def test_every_stage(tiny_base: Path, make_adapter: Make, tmp_path: Path) -> None:
    job = start(tmp_path, tiny_base, make_adapter(tiny_base, tmp_path / "adapter"))
    done = run(job)
    assert [stage["name"] for stage in done["stages"]] == STAGES
    assert [e.name for e in job.events() if isinstance(e, Phase) and e.detail == "done"] == STAGES
    assert done["parity"]["passed"]
    assert done["parity"]["f16"]["agreement"] > 0.97
    assert done["parity"]["f16"]["kl"] < done["parity"]["q8_0"]["kl"]
    assert Path(done["gguf"]).name == "ada-q8_0.gguf"
    assert done["reply"] is not None
    text = Path(done["modelfile"]).read_text(encoding="utf-8")
    assert text.splitlines()[1] == "FROM ./ada-q8_0.gguf"
    assert 'SYSTEM """You are Ada, a small model."""' in text
    assert "PARAMETER temperature 0.7" in text
    assert 'PARAMETER stop "<|im_end|>"' in text
    assert "ADAPTER" not in text
    assert "1.5" not in text
    with Chat(Path(done["gguf"])) as chat:
        assert chat.metadata["tokenizer.ggml.pre"] == "qwen2"
        assert "You are Qwen" in chat.render([{"role": "user", "content": "hi"}])
        assert "You are Qwen" not in chat.render(
            [{"role": "system", "content": "x"}, {"role": "user", "content": "hi"}]
        )
    kept = {path.name.split("-")[0] for path in (job.path.parent / "products").iterdir()}
    assert kept == {"f16", "q8_0", "hashes.json"}


def test_a_second_quantisation_starts_at_the_16_bit_file(
    tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(start(tmp_path, tiny_qwen, tiny_adapter))
    monkeypatch.setattr(export.merge, "merge", None)
    monkeypatch.setattr(export.gguf, "convert", None)
    assert run(start(tmp_path, tiny_qwen, tiny_adapter, "q6_k"))["quant"] == "q6_k"


def test_a_failed_stage_is_where_the_next_export_starts(
    tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(gguf, "converter", lambda llama_cpp: [sys.executable, "-c", "raise SystemExit('out of luck')"])
        first = start(tmp_path, tiny_qwen, tiny_adapter)
        with pytest.raises(BadInput, match=r"conversion to GGUF failed \(exit code 1\): out of luck"):
            run(first)
    assert sorted(path.name for path in first.path.iterdir()) == ["events.jsonl", "groups.jsonl", "job.json"]
    monkeypatch.setattr(export.merge, "merge", None)  # the merge of the first job is what the second one converts
    assert run(start(tmp_path, tiny_qwen, tiny_adapter))["parity"]["passed"]


def test_a_damaged_product_is_not_delivered_and_not_used_again(
    tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path
) -> None:
    first = start(tmp_path, tiny_qwen, tiny_adapter)
    run(first)
    f16 = next((first.path.parent / "products").glob("f16-*"))
    data = bytearray(f16.read_bytes())
    data[-60_000:-20_000] = os.urandom(40_000)
    f16.write_bytes(data)
    second = start(tmp_path, tiny_qwen, tiny_adapter)
    with pytest.raises(BadInput, match="parity failed, nothing is delivered: f16: "):
        run(second)
    assert not list(second.path.glob("*.gguf"))
    assert not list((first.path.parent / "products").glob("*-*"))
    verdict = next(event.data for event in second.events() if isinstance(event, Outcome) and event.name == "parity")
    assert not verdict["passed"]
    assert verdict["problems"]


def test_the_base_alone(tiny_qwen: Path, tmp_path: Path) -> None:
    assert run(start(tmp_path, tiny_qwen, None, "f16"))["parity"]["passed"]


def test_no_converter_no_quantiser_no_disk(
    tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(gguf, "MODULE", "no_such_converter")
        with pytest.raises(BadInput, match=r"export\.llama_cpp"):
            run(start(tmp_path, tiny_qwen, tiny_adapter))
    with monkeypatch.context() as broken:
        broken.setattr(quantise.util, "find_spec", lambda name: None if name == "llama_cpp" else name)
        with pytest.raises(BadInput, match="llama_cpp is not installed"):
            run(start(tmp_path, tiny_qwen, tiny_adapter))
    monkeypatch.setattr(export.preflight, "SLACK", 1 << 60)
    with pytest.raises(BadInput, match="free some space"):
        run(start(tmp_path, tiny_qwen, tiny_adapter))


# --- what parity catches ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tiny_qwen: Path, tiny_adapter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The merged model as a folder, to be spoilt in copies."""
    out = tmp_path_factory.mktemp("merged") / "model"
    export.merge_into(tiny_qwen, tiny_adapter, out, lambda what, fraction: None)
    return out


def problems(base: Path, adapter: Path, folder: Path, workspace: Path) -> str:
    """What parity says of the GGUF made of `folder` when base and adapter were trained."""
    file = workspace / "model.gguf"
    gguf.convert(folder, file)
    with JobContext(start(workspace, base, adapter, "f16")) as context:
        verdict = parity.compare(
            context, load_tokenizer(str(base), trust_remote_code=False), base=base, adapter=adapter, f16=file,
            quantised=file, quant="f16", rows=[], report=lambda what, fraction: None,
        )  # fmt: skip
    assert verdict["passed"] == (not verdict["problems"])
    return "; ".join(verdict["problems"])


def test_a_sound_export_passes(tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path) -> None:
    assert problems(tiny_qwen, tiny_adapter, sound, tmp_path) == ""


def test_a_corrupted_shard(tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "spoilt"))
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-20_000:-4_000] = data[-36_000:-20_000]  # a piece of another tensor, as a bad copy leaves it
    path.write_bytes(data)
    assert "f16: KL to the adapter" in problems(tiny_qwen, tiny_adapter, folder, tmp_path)


def test_an_adapter_that_was_not_merged(tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    assert "f16: KL to the adapter" in problems(tiny_qwen, tiny_adapter, tiny_qwen, tmp_path)


def test_a_wrong_template(tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path) -> None:
    folder = spoil_tokenizer(
        sound, tmp_path, chat_template="{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    )
    found = problems(tiny_qwen, tiny_adapter, folder, tmp_path)
    assert found.startswith("chat template:")


def test_a_missing_end_token(tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path) -> None:
    folder = spoil_tokenizer(sound, tmp_path, eos_token=None)
    config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": None}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").unlink(missing_ok=True)
    assert "end token" in problems(tiny_qwen, tiny_adapter, folder, tmp_path)


def test_an_end_token_that_is_not_the_templates(
    tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path
) -> None:
    folder = spoil_tokenizer(sound, tmp_path, eos_token="<|fim_pad|>")
    assert "end token" in problems(tiny_qwen, tiny_adapter, folder, tmp_path)


def test_another_tokeniser(tiny_qwen: Path, tiny_adapter: Path, sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "spoilt"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][::-1]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    try:
        found = problems(tiny_qwen, tiny_adapter, folder, tmp_path)
    except BadInput as error:  # the converter knows tokenisers by how they split, and may refuse this one itself
        found = str(error)
    assert "tokeniser" in found or "tokenizer" in found


def spoil_tokenizer(sound: Path, workspace: Path, **changes: Any) -> Path:
    folder = Path(shutil.copytree(sound, workspace / "spoilt"))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    return folder
