"""LoRA adapters on disk: checked before they are loaded, saved whole or not at all.

An adapter is a PEFT folder. Foreign ones never run code: weights come from safetensors, and only plain LoRA settings
are taken over from adapter_config.json. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel, set_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from ada_tui.errors import BadInput
from ada_tui.worker.folders import MARKER, digest_of, incomplete, write_folder

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"

TAKEN = (
    "r", "lora_alpha", "lora_dropout", "target_modules", "exclude_modules", "bias", "use_rslora", "use_dora",
    "fan_in_fan_out", "modules_to_save", "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern",
    "lora_bias", "task_type",
)  # fmt: skip
"""Settings of a foreign adapter that are taken over: data, nothing that names code."""


def read_config(folder: Path) -> LoraConfig:
    """The LoRA settings of an adapter folder.

    Raises:
        BadInput: there is no whole LoRA adapter in safetensors here.
    """
    path = folder / CONFIG
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(f"{folder}: no adapter here ({CONFIG} is missing); give a PEFT folder or a run") from None
    except ValueError:
        raise BadInput(f"{path}: not valid JSON; the adapter is damaged, use another checkpoint") from None
    if not isinstance(data, dict) or data.get("peft_type") != "LORA":
        raise BadInput(f"{path}: not a LoRA adapter; only LoRA can be trained on")
    if not (folder / WEIGHTS).is_file():
        kind = (
            "only pickled weights here, which could run code"
            if (folder / "adapter_model.bin").exists()
            else "no weights"
        )
        raise BadInput(f"{folder}: {kind}; save the adapter as {WEIGHTS}")
    if (folder / MARKER).exists() and (why := incomplete(folder)) is not None:
        raise BadInput(f"{folder}: the adapter is damaged ({why}); use another checkpoint")
    try:
        return LoraConfig(**{key: data[key] for key in TAKEN if data.get(key) is not None})
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: impossible LoRA settings ({error})") from None


def check_fits(folder: Path, config: LoraConfig, base: Any) -> None:
    """Compare the shapes in the adapter's file with the layers of the base model; nothing is loaded.

    Raises:
        BadInput: a layer is missing, has another size, or the rank differs from the settings.
    """
    layers = dict(base.named_modules())
    advice = "it was trained on another model: set model.base to that one, or use another adapter"
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as weights:
            shapes = {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise BadInput(f"{folder / WEIGHTS}: cannot be read ({error}); the adapter is damaged") from None
    if not shapes:
        raise BadInput(f"{folder / WEIGHTS}: empty; the adapter is damaged, use another checkpoint")
    for name, shape in shapes.items():
        path, found, side = name.removeprefix("base_model.model.").partition(".lora_")
        if not found or side[:1] not in "AB":
            continue
        layer = layers.get(path)
        if layer is None:
            raise BadInput(f"{folder}: does not fit: the base has no layer {path}; {advice}")
        rank, size, wanted = (
            (shape[0], shape[1], layer.in_features)
            if side.startswith("A")
            else (shape[1], shape[0], layer.out_features)
        )
        if size != wanted:
            raise BadInput(
                f"{folder}: does not fit: {path} has {wanted} in the base and {size} in the adapter; {advice}"
            )
        if not config.rank_pattern and rank != config.r:
            raise BadInput(f"{folder}: {CONFIG} says rank {config.r}, the weights have {rank}; the adapter is damaged")


def load_adapter(base: Any, folder: Path, *, train: bool, name: str = "default") -> PeftModel:
    """`base` with the adapter of `folder` under `name`. Raises BadInput."""
    config = read_config(folder)
    check_fits(folder, config, base)
    return PeftModel.from_pretrained(base, str(folder), adapter_name=name, is_trainable=train, config=config)


def add_adapter(model: PeftModel, folder: Path, name: str) -> None:
    """One more adapter, for inference, on a model that has one already. Raises BadInput."""
    config = read_config(folder)
    check_fits(folder, config, model.get_base_model())
    model.add_adapter(name, config)
    set_peft_model_state_dict(model, load_file(folder / WEIGHTS), adapter_name=name)


@contextmanager
def speaking(model: Any, adapter: str | None) -> Iterator[None]:
    """Let `adapter` answer, or the base itself (None)."""
    if adapter is not None:
        model.set_adapter(adapter)
        yield
    elif isinstance(model, PeftModel):
        with model.disable_adapter():
            yield
    else:
        yield


def save_adapter(model: PeftModel, target: Path, about: dict[str, Any]) -> None:
    """Write the adapter "default" of `model` to `target`, whole or not at all.

    Args:
        about: stored in the marker beside the hashes, e.g. the step.

    Raises:
        OSError, SafetensorError: as from the system (disk full); nothing stands under the final name then.
    """

    def fill(folder: Path) -> None:
        model.save_pretrained(folder, selected_adapters=["default"], save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)  # a model card for the hub, with our paths in it

    write_folder(target, fill, about)


def adapter_hash(folder: Path) -> str:
    """First 16 digits of the weights' SHA-256: tells adapters apart in the events."""
    return digest_of(folder, WEIGHTS)[:16]
