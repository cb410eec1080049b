"""Merge a LoRA adapter into the 16-bit base, tensor by tensor: memory is a few tensors, whatever the model's size.

Every shard of the base is copied byte for byte except the weights the adapter changes (W + scale * B A, computed in
float32, written in the base's own dtype). Never onto a 4-bit base. Not here: adapters that are more than plain LoRA on
linear layers; they are refused. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import fnmatch
import json
import math
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open

from ada_tui.errors import BadInput

COPIED = ("*.json", "*.jinja", "*.txt", "*.model")
"""Files of the base that belong to config and tokenizer. Code (*.py) is never among them."""

DTYPES: dict[str, torch.dtype] = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
CHUNK = 16 << 20
PREFIX = "base_model.model."


@dataclass(frozen=True, slots=True)
class Merged:
    """What the merge did."""

    changed: int
    """Weights that differ from the base."""
    delta: float
    """Frobenius norm of all changes together, as written (after rounding to the base's dtype)."""
    norm: float
    """Frobenius norm of the base weights that were changed."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank change of one weight: `scale * B @ A`; or a whole weight (`modules_to_save`) in `full`."""

    a: torch.Tensor | None = None
    b: torch.Tensor | None = None
    scale: float = 1.0
    transposed: bool = False
    full: torch.Tensor | None = None

    def applied(self, weight: torch.Tensor) -> torch.Tensor:
        """The merged weight; it and `weight` are float32 of one shape. Raises ValueError when the shapes do not fit."""
        if self.full is not None:
            if self.full.shape != weight.shape:
                raise ValueError(f"{list(self.full.shape)} against {list(weight.shape)}")
            return self.full.float()
        assert self.a is not None
        assert self.b is not None
        delta = (self.b.float() @ self.a.float()).mul_(self.scale)
        if self.transposed:
            delta = delta.T
        if delta.shape != weight.shape:
            raise ValueError(f"{list(delta.shape)} against {list(weight.shape)}")
        return delta.add_(weight)


def merge(base: Path, adapter: Path, out: Path, progress: Callable[[str, float], None]) -> Merged:
    """Write the merged model folder `out`.

    Raises:
        BadInput: the base is no 16-bit safetensors model, the adapter is of another model, of an unsupported kind,
            damaged, or changes nothing.
    """
    shards = shards_of(base)
    loras = read_adapter(adapter)
    out.mkdir()
    copy_config(base, out)
    total = sum(shard.stat().st_size for shard in shards)
    done, delta2, norm2, changed = 0, 0.0, 0.0, set[str]()
    for shard in shards:

        def tell(name: str, bytes_done: int, before: int = done) -> None:
            progress(name, (before + bytes_done) / total)

        for name, delta, norm in _merge_shard(shard, out / shard.name, loras, tell):
            changed.add(name)
            delta2, norm2 = delta2 + delta**2, norm2 + norm**2
        done += shard.stat().st_size
    if missing := sorted(set(loras) - changed):
        raise BadInput(
            f"{adapter}: {missing[0]} (and {len(missing) - 1} more) is not in {base}; it is an adapter of another base"
        )
    if not math.isfinite(delta2):
        raise BadInput(f"{adapter}: the adapter holds NaN or infinity; export an earlier step")
    if delta2 == 0:
        raise BadInput(f"{adapter}: the adapter changes nothing (weight delta 0); train it, or export the base model")
    return Merged(len(changed), math.sqrt(delta2), math.sqrt(norm2))


def copy_config(base: Path, out: Path) -> None:
    """Config and tokenizer files of `base`, the links to model code taken out. Raises BadInput for a quantised base."""
    for path in sorted(base.iterdir()):
        if path.is_file() and any(fnmatch.fnmatch(path.name, pattern) for pattern in COPIED):
            shutil.copyfile(path, out / path.name)
    for name in ("config.json", "tokenizer_config.json"):
        path = out / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{base / name}: cannot be read ({error}); the model folder is incomplete") from None
        if name == "config.json" and "quantization_config" in data:
            raise BadInput(f"{base}: the base is quantised; set model.base to its 16-bit original and export again")
        if data.pop("auto_map", None) is not None:
            path.write_text(json.dumps(data, indent=2), encoding="utf-8")


def shards_of(base: Path) -> list[Path]:
    """The safetensors files of a model folder. Raises BadInput."""
    index = base / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError):
            raise BadInput(f"{index}: cannot be read; download the model again") from None
        shards = [base / Path(name).name for name in sorted(names)]
    else:
        shards = [base / "model.safetensors"]
    for shard in shards:
        if not shard.is_file():
            raise BadInput(f"{shard}: not found; the base must be a model folder with safetensors weights")
    return shards


def read_adapter(folder: Path) -> dict[str, Lora]:
    """Name of a base weight -> its change. Raises BadInput for anything but plain LoRA on linear layers."""
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{folder}: no adapter there ({error}); give the folder that holds adapter_config.json"
        ) from None
    unusual = [name for name in ("use_dora", "use_qalora", "alora_invocation_tokens", "trainable_token_indices",
               "target_parameters", "layer_replication", "arrow_config") if config.get(name)]  # fmt: skip
    if config.get("peft_type") != "LORA" or unusual or config.get("bias", "none") != "none":
        what = ", ".join(unusual) or f"type {config.get('peft_type')}, bias {config.get('bias')}"
        raise BadInput(
            f"{folder}: only plain LoRA can be merged here, this adapter has {what}; merge it with PEFT first"
        )
    path = folder / "adapter_model.safetensors"
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); the adapter is incomplete") from None
    found: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        match = re.fullmatch(r"(.+)\.(lora_A|lora_B)(?:\.default)?\.weight", name)
        module, part = (match[1], match[2]) if match else (name.removesuffix(".weight"), "full")
        if part == "full" and "lora_" in name:
            raise BadInput(f"{path}: {name}: only LoRA on linear layers can be merged here; merge it with PEFT first")
        found.setdefault(module.removeprefix(PREFIX), {})[part] = tensor
    if half := [module for module, parts in found.items() if set(parts) not in ({"lora_A", "lora_B"}, {"full"})]:
        raise BadInput(f"{path}: {half[0]} has only half of its matrices; the adapter is incomplete")
    return {f"{module}.weight": _lora(module, parts, config) for module, parts in found.items()}


def _lora(module: str, parts: dict[str, torch.Tensor], config: dict[str, Any]) -> Lora:
    if "full" in parts:
        return Lora(full=parts["full"])
    rank = parts["lora_A"].shape[0]
    alpha = _pattern(config.get("alpha_pattern"), module, config["lora_alpha"])
    scale = alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank
    return Lora(parts["lora_A"], parts["lora_B"], scale, bool(config.get("fan_in_fan_out")))


def _pattern(patterns: dict[str, float] | None, module: str, default: float) -> float:
    """PEFT's rule: the first key that is the module's name or a regular expression for its end."""
    for key, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return default


def _merge_shard(
    source: Path, target: Path, loras: dict[str, Lora], tell: Callable[[str, int], None]
) -> list[tuple[str, float, float]]:
    """Copy one safetensors file, the changed weights replaced; [(name, norm of change, norm of weight)]."""
    changes = []
    with source.open("rb") as reader, target.open("wb") as writer:
        header, tensors = _header(reader, source)
        writer.write(header)
        for name, info in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
            start, end = info["data_offsets"]
            if writer.tell() != len(header) + start:
                raise BadInput(f"{source}: tensors do not follow each other; download the model again")
            if name not in loras:
                _copy(reader, writer, end - start, source)
            else:
                if info["dtype"] not in DTYPES:
                    raise BadInput(f"{source}: {name} is stored as {info['dtype']}; the base must be 16-bit")
                data = bytearray(reader.read(end - start))
                if len(data) != end - start:
                    raise BadInput(f"{source}: ends too early; download the model again")
                weight = torch.frombuffer(data, dtype=DTYPES[info["dtype"]]).reshape(info["shape"])
                exact = weight.float()
                try:
                    merged = loras[name].applied(exact).to(weight.dtype)
                except ValueError as error:
                    raise BadInput(
                        f"{name}: the adapter's shape does not fit the base ({error}); other base?"
                    ) from None
                writer.write(merged.contiguous().view(torch.uint8).numpy().data)
                changes.append((name, float(merged.float().sub_(exact).norm()), float(exact.norm())))
            tell(name, writer.tell())
    return changes


def _header(reader: BinaryIO, path: Path) -> tuple[bytes, dict[str, Any]]:
    """(the header's bytes, tensor name -> {dtype, shape, data_offsets}). Raises BadInput."""
    start = reader.read(8)
    try:
        (size,) = struct.unpack("<Q", start)
        if size > 100 << 20:
            raise ValueError("its header is too long")
        body = reader.read(size)
        tensors = json.loads(body)
    except (struct.error, ValueError) as error:
        raise BadInput(f"{path}: not a safetensors file ({error}); download the model again") from None
    tensors.pop("__metadata__", None)
    return start + body, tensors


def _copy(reader: BinaryIO, writer: BinaryIO, size: int, path: Path) -> None:
    while size:
        chunk = reader.read(min(size, CHUNK))
        if not chunk:
            raise BadInput(f"{path}: ends too early; download the model again")
        writer.write(chunk)
        size -= len(chunk)
