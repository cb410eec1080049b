"""The base model and its tokenizer: found, checked, and agreeing on where a reply ends. Also the choice of device.

What is checked before any training: a chat template is there; every token that may end a reply is known (config,
generation config, tokenizer and the template's own terminator are compared); padding is none of them. Weights are read
from safetensors only, and a model's own code runs only when the person's ada.toml says so.
Only ada_tui.worker may import it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from ada_tui.errors import BadInput
from ada_tui.settings import EMBEDDED
from ada_tui.worker.context import JobContext

FAST_BF16 = ("amx_bf16", "avx512_bf16")
"""Instruction sets with which a CPU multiplies bfloat16 faster than float32."""

PAD_HINTS = ("pad", "reserved", "unused", "empty", "fim", "repo", "file")
"""What the names of tokens that no chat uses look like, best first."""


@dataclass(frozen=True, slots=True)
class Device:
    """Where and in which precision to compute, and why."""

    name: str
    dtype: torch.dtype
    reason: str

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")


def choose_device() -> Device:
    """CUDA in bfloat16 where there is one; else the CPU in whatever it multiplies faster."""
    if torch.cuda.is_available():
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return Device("cuda", torch.bfloat16, f"CUDA: {torch.cuda.get_device_name()}")
        return Device("cuda", torch.float32, f"CUDA: {torch.cuda.get_device_name()} has no bfloat16, float16 overflows")
    return _choose_on_cpu(cpu_flags())


def _choose_on_cpu(flags: frozenset[str]) -> Device:
    """From the instruction sets alone: a timing would decide differently on a busy machine, and arms of one comparison
    must not differ in precision. AMX multiplies bfloat16 3 to 8 times faster (measured), AVX512-BF16 twice."""
    found = next((name for name in FAST_BF16 if name in flags), None)
    if found is not None:
        return Device("cpu", torch.bfloat16, f"no CUDA; this CPU has {found}, so bfloat16 is faster")
    return Device("cpu", torch.float32, "no CUDA; this CPU has no fast bfloat16")


def cpu_flags() -> frozenset[str]:
    """Instruction sets of this CPU as the kernel names them; empty where it does not."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def base_path(context: JobContext) -> str:
    """Folder or hub id of the job's base model; the embedded one is unpacked now if need be.

    Raises:
        BadInput: the folder is no model, or the embedded model cannot be had.
    """
    base = str(context.job.model.get("base") or EMBEDDED)
    if base == EMBEDDED:
        from ada_tui.worker.embedded import materialise

        return str(materialise(lambda what, fraction: context.phase("model", what, fraction)))
    folder = context.resolve(base)
    if not folder.is_dir():
        if Path(base).is_absolute() or base.startswith((".", "~")) or base.count("/") != 1:
            raise BadInput(f"{folder}: no such model folder; set model.base in ada.toml to a folder or a hub id")
        return base
    if not (folder / "config.json").is_file():
        raise BadInput(f"{folder}: no config.json, so this is no model folder; set model.base in ada.toml")
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        raise BadInput(f"{folder}: no safetensors weights here (pickled ones are not read); convert them first")
    return str(folder)


def load_tokenizer(base: str, trust_remote_code: bool) -> Any:
    """The tokenizer, left-padding. Raises BadInput when it is missing or has no chat template."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(base, trust_remote_code=trust_remote_code, padding_side="left")
    except Exception as error:  # transformers raises anything from OSError to KeyError for an unusable folder
        raise BadInput(
            f"{base}: its tokenizer cannot be loaded ({_first_line(error)}); copy the model's tokenizer files there"
        ) from None
    if not tokenizer.chat_template:
        raise BadInput(
            f"{base}: the tokenizer has no chat template; take the Instruct model, or add chat_template.jinja"
        )
    return tokenizer


def load_base(base: str, device: Device, trust_remote_code: bool, **more: Any) -> Any:
    """The model on its device, in its precision.

    Raises:
        BadInput: the folder holds no usable model, or wants to run code of its own.
    """
    try:
        config = AutoConfig.from_pretrained(base, trust_remote_code=trust_remote_code)
        model = AutoModelForCausalLM.from_pretrained(
            base, config=config, dtype=device.dtype, trust_remote_code=trust_remote_code, use_safetensors=True,
            attn_implementation="sdpa", **more,
        )  # fmt: skip
    except (OSError, ValueError, KeyError) as error:
        if "trust_remote_code" in str(error):
            raise BadInput(
                f"{base}: this model wants to run its own Python code; refused unless model.trust_remote_code = true"
            ) from None
        raise BadInput(f"{base}: cannot be loaded as a language model ({_first_line(error)})") from None
    return model if "quantization_config" in more else model.to(device.name)


def settle_tokens(model: Any, tokenizer: Any, base: str) -> list[str]:
    """Make model and tokenizer agree on end and padding tokens; returns what had to be changed, one line each.

    Raises:
        BadInput: there is no token left to pad with.
    """
    changed = []
    terminator = template_terminator(tokenizer)
    if terminator is not None and terminator != tokenizer.eos_token_id:
        changed.append(
            f"eos: the template ends a turn with {tokenizer.convert_ids_to_tokens(terminator)!r}, "
            f"the tokenizer said {tokenizer.eos_token!r}"
        )
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(terminator)
    if tokenizer.eos_token_id is None:
        raise BadInput(f"{base}: neither tokenizer nor chat template names an end token; set eos_token in its config")
    ends = {tokenizer.eos_token_id}
    for source in (model.config.eos_token_id, model.generation_config.eos_token_id):
        ends.update([source] if isinstance(source, int) else source or [])
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id in ends:
        old = tokenizer.pad_token
        tokenizer.pad_token = _free_token(tokenizer, ends, base)
        changed.append(f"pad: {tokenizer.pad_token!r} instead of {old!r}, which also ends a reply")
    model.config.eos_token_id = tokenizer.eos_token_id
    model.config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = sorted(ends)
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return changed


def template_terminator(tokenizer: Any) -> int | None:
    """The special token that the chat template puts right after a reply; None when it puts none."""
    mark = "qxz"
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": mark}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)
    after = tokenizer(text.rpartition(mark)[2], add_special_tokens=False)["input_ids"]
    special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    return next((token for token in after if token in special), None)


def _free_token(tokenizer: Any, ends: set[int], base: str) -> str:
    """A special token that ends nothing and stands in no chat."""
    template = str(tokenizer.chat_template)
    free = [
        token.content
        for index, token in sorted(tokenizer.added_tokens_decoder.items())
        if token.special and index not in ends and token.content not in template
    ]
    for hint in PAD_HINTS:
        for token in free:
            if hint in token.lower():
                return str(token)
    if free:
        return str(free[-1])
    raise BadInput(f"{base}: the tokenizer has no unused special token to pad with; set pad_token in its config")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
