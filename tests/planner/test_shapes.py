"""Presets have the published sizes; any config.json is read or refused with the field that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ada_tui.errors import BadInput
from ada_tui.planner import PRESETS, resolve
from ada_tui.planner.shapes import from_config, to_config

PUBLISHED = {
    "qwen2.5-0.5b": 0.494, "qwen2.5-1.5b": 1.544, "qwen2.5-3b": 3.086, "qwen2.5-7b": 7.616,
    "llama-3.2-1b": 1.236, "llama-3.2-3b": 3.213, "smollm2-135m": 0.1345, "smollm2-360m": 0.362,
    "smollm2-1.7b": 1.711, "gemma-2-2b": 2.614, "gemma-3-1b": 1.000,
}  # fmt: skip


@pytest.mark.parametrize(("name", "billions"), PUBLISHED.items())
def test_presets_have_the_published_number_of_parameters(name: str, billions: float) -> None:
    assert PRESETS[name].parameters / 1e9 == pytest.approx(billions, rel=0.002)


def test_every_preset_is_checked() -> None:
    assert set(PUBLISHED) == set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_shape_survives_its_config(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(to_config(PRESETS[name])))
    assert resolve(str(folder)) == PRESETS[name]
    assert resolve(str(folder / "config.json")) == PRESETS[name]


@pytest.mark.parametrize(
    "given", ["Qwen/Qwen2.5-3B-Instruct", "qwen2.5-3b", "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"]
)
def test_hub_names_of_a_preset(given: str) -> None:
    assert resolve(given) is PRESETS["qwen2.5-3b"]


def test_the_embedded_model_is_known() -> None:
    assert resolve("embedded").name == "smollm2-135m"


def test_the_text_part_of_a_multimodal_config() -> None:
    config = {"model_type": "gemma3", "text_config": {**to_config(PRESETS["gemma-3-1b"])}}
    assert from_config(config).parameters == PRESETS["gemma-3-1b"].parameters


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": -3}, "num_hidden_layers is not a plausible size (-3)"),
        ({"vocab_size": 10**12}, "vocab_size is not a plausible size"),
        ({"intermediate_size": "big"}, "intermediate_size is not a plausible size ('big')"),
        ({"num_attention_heads": 0}, "num_attention_heads is not a plausible size (0)"),
        ({"head_dim": True}, "head_dim is not a plausible size (True)"),
    ],
)
def test_configs_without_needed_fields(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        from_config({**to_config(PRESETS["qwen2.5-3b"]), **change}, where="x/config.json")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x/config.json: ")


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "\x00\x1b"])
def test_files_that_are_no_config(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=r"config\.json"):
        resolve(str(path))


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"neither a known model nor a folder.*qwen2\.5-3b"):
        resolve("no/such-model")
