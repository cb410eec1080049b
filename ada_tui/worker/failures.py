"""Turns an exception into the one line a person reads: what happened and what to do. Only ada_tui.worker imports it."""

from __future__ import annotations

import errno

from ada_tui.errors import BadInput


class Diverged(ArithmeticError):
    """The model's output is no longer a number (NaN or infinite)."""


DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def explain(error: BaseException) -> tuple[str, bool]:
    """(one line, whether it is a known kind of failure that needs no traceback)."""
    if isinstance(error, BadInput):
        return str(error), True
    text = " ".join(str(error).split())
    if isinstance(error, Diverged):
        return (
            f"the model's output is not a number any more ({text}): its weights diverged; the last saved adapter is "
            "good, go on from it with a lower learning_rate or a higher beta"
        ), True
    if out_of_memory(error):
        return (
            "out of memory: halve grpo.group or grpo.prompts_per_step, then max_completion (sft: max_length), "
            f"or use model.bits = 4; the system said: {text[:200]}"
        ), True
    if disk_full(error):
        return f"the disk is full: free some space and start again from the last saved step; {text[:200]}", True
    if isinstance(error, PermissionError):
        return f"no permission: {text[:300]}", True
    return f"{type(error).__name__}: {text[:500]}", False


def out_of_memory(error: BaseException) -> bool:
    """CUDA's own class is looked up by name: this file must not import torch."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OutOfMemoryError" in names or isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and ("not enough memory" in str(error) or "out of memory" in str(error))


def disk_full(error: BaseException) -> bool:
    """Writers in other languages (safetensors, arrow) pass the system's error on as text only."""
    if isinstance(error, OSError) and error.errno in DISK:
        return True
    text = str(error)
    return any(f"os error {number}" in text.lower() for number in DISK) or "No space left on device" in text
