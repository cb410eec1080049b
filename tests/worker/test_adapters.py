"""Adapters are checked before they are loaded; a foreign one runs nothing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM  # noqa: E402

from ada_tui import launch  # noqa: E402
from ada_tui.errors import BadInput  # noqa: E402
from ada_tui.protocol import JobEnded, ModelLoaded  # noqa: E402
from ada_tui.worker.adapters import CONFIG, WEIGHTS, add_adapter, load_adapter, read_config, save_adapter  # noqa: E402


@pytest.fixture
def base(tiny_model: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)


@pytest.fixture
def adapter(base: Any, tmp_path: Path) -> Path:
    """An adapter that changes something, saved as ours are."""
    model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    save_adapter(model, tmp_path / "adapter", {"step": 3})
    return tmp_path / "adapter"


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(torch.arange(5)[None]).logits


def edit(folder: Path, **values: Any) -> None:
    data = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**data, **values}))
    (folder / "COMPLETE").unlink(missing_ok=True)


def test_saved_and_loaded_again_it_speaks_the_same(tiny_model: Path, adapter: Path, base: Any) -> None:
    assert sorted(path.name for path in adapter.iterdir()) == ["COMPLETE", CONFIG, WEIGHTS]
    fresh = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    plain = logits(fresh)
    model = load_adapter(fresh, adapter, train=True)
    assert not torch.allclose(logits(model), plain)
    trainable = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trainable
    assert all("lora_" in name for name in trainable)
    frozen = load_adapter(AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32), adapter, train=False)
    assert not [name for name, parameter in frozen.named_parameters() if parameter.requires_grad]
    torch.testing.assert_close(logits(frozen), logits(model))


def test_a_second_adapter_leaves_the_first_alone(tiny_model: Path, adapter: Path, tmp_path: Path) -> None:
    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    plain = logits(base)
    model = load_adapter(base, adapter, train=False, name="one")
    with_one = logits(model)
    add_adapter(model, adapter, "two")
    model.set_adapter("two")
    torch.testing.assert_close(logits(model), with_one)
    with model.disable_adapter():
        torch.testing.assert_close(logits(model), plain)


def test_pickled_weights_are_refused_unread(bench: Any, adapter: Path) -> None:
    trap = adapter / "ran"

    class Bomb:
        def __reduce__(self) -> Any:
            return open, (str(trap), "w")

    (adapter / WEIGHTS).unlink()
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(Bomb()))
    job = bench.run("sample", adapter=adapter, data={"prompts": [{"prompt": "Hi"}], "n": 2})
    ended = bench.events(job, JobEnded)[0]
    assert launch.status(job).name == "failed"
    assert ended.error.endswith("only pickled weights here, which could run code; save the adapter as " + WEIGHTS)
    assert ended.traceback is None
    assert not trap.exists()
    assert not bench.events(job, ModelLoaded)


def test_settings_that_name_code_are_not_taken_over(adapter: Path) -> None:
    edit(
        adapter,
        megatron_config={"x": 1},
        megatron_core="os",
        auto_mapping={"parent_library": "evil"},
        init_lora_weights="pissa",
    )
    config = read_config(adapter)
    assert config.megatron_config is None
    assert config.auto_mapping is None
    assert config.init_lora_weights is True
    assert (config.r, config.lora_alpha) == (4, 8)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda folder: (folder / CONFIG).unlink(), "no adapter here"),
        (lambda folder: (folder / CONFIG).write_text("{"), "not valid JSON"),
        (lambda folder: edit(folder, peft_type="PREFIX_TUNING"), "not a LoRA adapter"),
        (lambda folder: edit(folder, target_modules="q", layers_to_transform=[0]), "impossible LoRA settings"),
        (lambda folder: edit(folder, r=8), "says rank 8, the weights have 4"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"\0" * 64), "is damaged"),
        (lambda folder: [(folder / "COMPLETE").unlink(), (folder / WEIGHTS).write_bytes(b"junk")], "cannot be read"),
    ],
)
def test_a_damaged_adapter_says_what_is_wrong(adapter: Path, tiny_model: Path, damage: Any, line: str) -> None:
    damage(adapter)
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    with pytest.raises(BadInput) as refused:
        load_adapter(base, adapter, train=True)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        ({"hidden_size": 32, "num_hidden_layers": 2}, "has 32 in the base and 64 in the adapter"),
        ({"hidden_size": 64, "num_hidden_layers": 1}, "the base has no layer model.layers.1"),
    ],
)
def test_an_adapter_of_another_base_is_refused(adapter: Path, shape: dict[str, int], line: str) -> None:
    other = LlamaForCausalLM(
        LlamaConfig(vocab_size=100, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2, **shape)
    )
    with pytest.raises(BadInput, match=line):
        load_adapter(other, adapter, train=True)
