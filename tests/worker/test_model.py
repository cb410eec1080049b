"""Model folders that cannot be used, and tokens that must agree before anything is trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoModelForCausalLM  # noqa: E402

from ada_tui.errors import BadInput  # noqa: E402
from ada_tui.worker import model as models  # noqa: E402
from ada_tui.worker.context import JobContext  # noqa: E402

CPU = models.Device("cpu", torch.float32, "test")


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def edit(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_bench_model_needs_no_change(folder: Path) -> None:
    tokenizer, model = models.load_tokenizer(str(folder), False), models.load_base(str(folder), CPU, False)
    assert models.settle_tokens(model, tokenizer, "x") == []
    assert tokenizer.padding_side == "left"
    assert model.generation_config.eos_token_id == [tokenizer.eos_token_id]
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_end_and_padding_tokens_are_settled(folder: Path) -> None:
    """A base model's folder: its configs end and pad with <|endoftext|>, its template ends turns with <|im_end|>."""
    edit(folder / "tokenizer_config.json", eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    edit(folder / "config.json", eos_token_id=0, pad_token_id=0)
    edit(folder / "generation_config.json", eos_token_id=0, pad_token_id=0)
    tokenizer, model = models.load_tokenizer(str(folder), False), models.load_base(str(folder), CPU, False)
    changed = models.settle_tokens(model, tokenizer, "x")
    assert tokenizer.eos_token == "<|im_end|>"
    assert model.generation_config.eos_token_id == [0, 2]
    assert tokenizer.pad_token == "<empty_output>"
    assert model.config.pad_token_id == model.generation_config.pad_token_id == tokenizer.pad_token_id
    assert "the template ends a turn with '<|im_end|>', the tokenizer said '<|endoftext|>'" in changed[0]
    assert "'<empty_output>' instead of '<|endoftext|>'" in changed[1]


def test_missing_padding_gets_a_token(folder: Path) -> None:
    edit(folder / "tokenizer_config.json", pad_token=None)
    tokenizer, model = models.load_tokenizer(str(folder), False), models.load_base(str(folder), CPU, False)
    models.settle_tokens(model, tokenizer, "x")
    assert tokenizer.pad_token == "<empty_output>"


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["config.json"], "no config.json"),
        (["model.safetensors"], "no safetensors weights"),
        (["tokenizer.json", "tokenizer_config.json"], "its tokenizer cannot be loaded"),
        (["chat_template.jinja"], "no chat template"),
    ],
)
def test_an_incomplete_folder_says_what_is_missing(bench: Any, folder: Path, names: list[str], line: str) -> None:
    for name in names:
        (folder / name).unlink()
    with JobContext(bench.job("sample", model={"base": str(folder)})) as context, pytest.raises(BadInput) as refused:
        models.load_tokenizer(models.base_path(context), False)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_folder(bench: Any) -> None:
    with (
        JobContext(bench.job("sample", model={"base": "./nowhere"})) as context,
        pytest.raises(BadInput, match="no such"),
    ):
        models.base_path(context)


def test_a_model_with_code_of_its_own_is_not_run(folder: Path) -> None:
    trap = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(trap)!r}, 'w')\n")
    edit(folder / "config.json", model_type="evil", auto_map={"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"})
    with pytest.raises(BadInput, match="wants to run its own Python code"):
        models.load_base(str(folder), CPU, False)
    assert not trap.exists()


def test_pickled_weights_are_not_read(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="cannot be loaded"):
        models.load_base(str(folder), CPU, False)


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [({"avx2", "amx_bf16"}, torch.bfloat16), ({"avx512_bf16"}, torch.bfloat16), ({"avx2", "avx512f"}, torch.float32)],
)
def test_precision_on_a_cpu_follows_its_instruction_sets(flags: set[str], dtype: Any) -> None:
    device = models._choose_on_cpu(frozenset(flags))
    assert (device.name, device.dtype) == ("cpu", dtype)
    assert device.reason.startswith("no CUDA; this CPU has ")
