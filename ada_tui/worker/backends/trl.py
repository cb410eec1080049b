"""Plain transformers + peft: CPU, or CUDA where there is one. Only ada_tui.worker may import it."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import torch
from peft import PeftModel

from ada_tui.errors import BadInput
from ada_tui.protocol import ModelLoaded
from ada_tui.worker import model as models
from ada_tui.worker.adapters import adapter_hash, load_adapter
from ada_tui.worker.backends import Loaded
from ada_tui.worker.context import JobContext
from ada_tui.wsl import under_wsl


class TrlBackend:
    """See `backends.Backend`."""

    name = "trl"

    def load(self, context: JobContext, *, train: bool, adapter: str | None = None) -> Loaded:
        began = time.monotonic()
        settings = context.job.model
        adapter = str(settings.get("adapter") or "") if adapter is None else adapter
        trust = settings.get("trust_remote_code") is True
        base = models.base_path(context)
        context.phase("model", f"loading {context.job.model.get('base', 'embedded')}")
        device = models.choose_device()
        tokenizer = models.load_tokenizer(base, trust)
        model = models.load_base(base, device, trust, **_quantised(settings, device))
        changed = models.settle_tokens(model, tokenizer, base)
        folder = context.resolve(adapter) if adapter else None
        if folder is not None:
            model = load_adapter(model, folder, train=train)
        if not train:
            model.eval()
        trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        context.emit(
            ModelLoaded(
                backend=self.name, reason="; ".join([device.reason, *changed]), device=device.name,
                dtype=device.dtype_name, model=base, adapter=str(folder or ""),
                adapter_hash=adapter_hash(folder) if folder else "", rank=_rank(model),
                parameters=sum(p.numel() for p in model.parameters()), trainable=trainable if folder else 0,
                seconds=time.monotonic() - began,
            )
        )  # fmt: skip
        return Loaded(model, tokenizer, device.name, device.dtype_name, base, device.reason)

    def trainer_args(self, loaded: Loaded) -> dict[str, Any]:
        on_cuda = loaded.device == "cuda"
        has_8bit = on_cuda and importlib.util.find_spec("bitsandbytes") is not None
        return {
            "use_cpu": not on_cuda,
            "bf16": loaded.dtype == "bfloat16",
            "gradient_checkpointing": on_cuda,  # memory is short there, time is short on a CPU
            "optim": "adamw_8bit" if has_8bit else "adamw_torch",
            "dataloader_pin_memory": on_cuda and not under_wsl(),  # WSL2 runs out of pinned memory long before VRAM
        }


def _quantised(settings: dict[str, Any], device: models.Device) -> dict[str, Any]:
    """Keyword arguments for 4-bit base weights, {} for 16 bits. Raises BadInput."""
    if settings.get("bits", 16) != 4:
        return {}
    if device.name != "cuda" or importlib.util.find_spec("bitsandbytes") is None:
        raise BadInput(
            "model.bits = 4 needs CUDA and bitsandbytes, which are not here; set model.bits = 16 in ada.toml"
        )
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )  # fmt: skip
    return {"quantization_config": config, "device_map": {"": 0}}


def _rank(model: Any) -> int:
    return int(model.peft_config["default"].r) if isinstance(model, PeftModel) else 0
