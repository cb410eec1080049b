"""The merge: the same numbers as PEFT's own, in little memory; a clear word for everything that cannot be merged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from ada_tui.errors import BadInput
from ada_tui.worker.merge import merge

Make = Callable[..., Path]


def quiet(what: str, fraction: float | None) -> None:
    assert fraction is None or 0 <= fraction <= 1


def by_peft(base: Path, adapter: Path) -> dict[str, torch.Tensor]:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload().state_dict()
    return {name: tensor.to(torch.bfloat16) for name, tensor in merged.items() if name != "lm_head.weight"}


LORAS: list[dict[str, Any]] = [
    {},
    {"use_rslora": True},
    {"rank_pattern": {"q_proj": 4}, "alpha_pattern": {"layers.1.mlp.up_proj": 5}},
    {"target_modules": ["q_proj", "v_proj"], "modules_to_save": ["norm"]},
]


@pytest.mark.parametrize("lora", LORAS, ids=["plain", "rslora", "patterns", "whole weights"])
def test_the_same_numbers_as_peft(tiny_qwen: Path, tmp_path: Path, make_adapter: Make, lora: dict[str, Any]) -> None:
    adapter = make_adapter(tiny_qwen, tmp_path / "adapter", **lora)
    done = merge(tiny_qwen, adapter, tmp_path / "out", quiet)
    mine, theirs = load_file(tmp_path / "out" / "model.safetensors"), by_peft(tiny_qwen, adapter)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert done.changed >= 4
    assert done.delta > 0


def test_several_shards(tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    sharded = tmp_path / "sharded"
    AutoModelForCausalLM.from_pretrained(tiny_qwen).save_pretrained(sharded, max_shard_size="300KB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tiny_qwen / name, sharded / name)
    merge(sharded, tiny_adapter, tmp_path / "out", quiet)
    whole: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    theirs = by_peft(tiny_qwen, tiny_adapter)
    assert len(list((tmp_path / "out").glob("*.safetensors"))) > 1
    assert all(torch.equal(whole[name], theirs[name]) for name in theirs)


def test_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    (small, little), (large, much) = (peak_of_merge(tmp_path / str(layers), layers) for layers in (12, 48))
    assert large == 4 * small
    assert much - little < (large - small) / 4


def peak_of_merge(folder: Path, layers: int) -> tuple[int, int]:
    """(bytes of weights, peak memory in bytes) of a merge of `layers` weights, in a process of its own."""
    base, adapter = folder / "base", folder / "adapter"
    base.mkdir(parents=True)
    adapter.mkdir()
    names = [f"model.layers.{i}.mlp.up_proj.weight" for i in range(layers)]
    save_file({name: torch.zeros(2048, 3072, dtype=torch.bfloat16) for name in names}, base / "model.safetensors")
    for name in ("config.json", "tokenizer_config.json"):
        (base / name).write_text("{}")
    lora = {}
    for name in names:
        module = "base_model.model." + name.removesuffix(".weight")
        lora[f"{module}.lora_A.weight"], lora[f"{module}.lora_B.weight"] = torch.ones(4, 3072), torch.ones(2048, 4)
    save_file(lora, adapter / "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 8}')
    code = (
        "import re, sys; from pathlib import Path; from ada_tui.worker.merge import merge\n"
        "merge(*map(Path, sys.argv[1:]), lambda what, fraction: None)\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) << 10)"
    )  # not ru_maxrss: a child inherits its parent's
    command = [sys.executable, "-c", code, base, adapter, folder / "out"]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (folder / "out" / "model.safetensors").stat().st_size == (base / "model.safetensors").stat().st_size
    return layers * 2048 * 3072 * 2, peak


def test_the_base_is_never_changed_and_its_code_never_copied(
    tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path
) -> None:
    base = copy(tiny_qwen, tmp_path / "base")
    config = json.loads((base / "config.json").read_text()) | {"auto_map": {"AutoModel": "evil.Model"}}
    (base / "config.json").write_text(json.dumps(config))
    (base / "evil.py").write_text("raise SystemExit('ran')")
    before = (base / "model.safetensors").read_bytes()
    merge(base, tiny_adapter, tmp_path / "out", quiet)
    assert (base / "model.safetensors").read_bytes() == before
    assert not list((tmp_path / "out").glob("*.py"))
    assert "auto_map" not in json.loads((tmp_path / "out" / "config.json").read_text())
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "out" / name).read_bytes() == (base / name).read_bytes()


def zero(folder: Path) -> None:
    edit(folder, lambda name, tensor: torch.zeros_like(tensor) if "lora_B" in name else tensor)


def not_a_number(folder: Path) -> None:
    edit(folder, lambda name, tensor: tensor * float("nan"))


def half(folder: Path) -> None:
    edit(folder, lambda name, tensor: tensor, keep=lambda name: "lora_B" not in name)


def other_names(folder: Path) -> None:
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file({n.replace("layers.1", "layers.9"): t for n, t in tensors.items()}, folder / "adapter_model.safetensors")


def other_shape(folder: Path) -> None:
    edit(folder, lambda name, tensor: tensor[:, :-1].contiguous() if "lora_A" in name else tensor)


def torn(folder: Path) -> None:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def pickled(folder: Path) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")


def dora(folder: Path) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"use_dora": True}))


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "changes nothing": (zero, "changes nothing"), "NaN": (not_a_number, "NaN"), "half": (half, "only half"),
    "other layers": (other_names, "another base"), "other shape": (other_shape, "does not fit"),
    "torn file": (torn, "cannot be read"), "pickle only": (pickled, "cannot be read"), "DoRA": (dora, "use_dora"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_an_adapter_that_cannot_be_merged(tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path, what: str) -> None:
    spoil, says = BROKEN[what]
    spoil(adapter := copy(tiny_adapter, tmp_path / "adapter"))
    with pytest.raises(BadInput, match=says) as caught:
        merge(tiny_qwen, adapter, tmp_path / "out", quiet)
    assert "\n" not in str(caught.value)


def test_a_quantised_base_is_refused(tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    base = copy(tiny_qwen, tmp_path / "base")
    config = json.loads((base / "config.json").read_text()) | {"quantization_config": {"load_in_4bit": True}}
    (base / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="16-bit original"):
        merge(base, tiny_adapter, tmp_path / "out", quiet)


@pytest.mark.parametrize("cut", [4, 40, -50_000])
def test_a_damaged_base_is_refused(tiny_qwen: Path, tiny_adapter: Path, tmp_path: Path, cut: int) -> None:
    base = copy(tiny_qwen, tmp_path / "base")
    path = base / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadInput, match="download the model again"):
        merge(base, tiny_adapter, tmp_path / "out", quiet)


def edit(
    folder: Path, change: Callable[[str, torch.Tensor], torch.Tensor], keep: Callable[[str], bool] = lambda name: True
) -> None:
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file({n: change(n, t) for n, t in tensors.items() if keep(n)}, folder / "adapter_model.safetensors")


def copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))
