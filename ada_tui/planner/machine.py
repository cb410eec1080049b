"""The device that is planned for: a card of so many GB, or the one in this machine. Anybody may import it.

NVML first, `nvidia-smi` second; what neither tells is None, never 0. No torch.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
from dataclasses import dataclass

from ada_tui.errors import BadInput
from ada_tui.planner.constants import GIB
from ada_tui.wsl import under_wsl

SIZES = (8, 12, 16, 24, 32, 48, 80)
"""Common card sizes in GB."""
RESERVE_GIB = 0.6
"""What a desktop takes of a card that also drives the screen; under WSL2 Windows itself takes it."""
WSL_RESERVE_GIB = 1.2
IMPLAUSIBLE = 1 << 50
"""Bytes no device has: NVML under WSL answers 2^64 for what it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A device and what is not ours on it. Sizes in bytes."""

    name: str
    total: int
    reserve: int
    """Kept free for the desktop."""
    here: bool = False
    """It is the device of this machine: a calibration made here applies."""

    @property
    def usable(self) -> int:
        return max(0, self.total - self.reserve)


def card(gib: float, reserve_gib: float | None = None) -> Machine:
    """A card of `gib` GB (vendors' GB are GiB here: a "24 GB" card has 23.99 GiB). Raises BadInput."""
    if not (math.isfinite(gib) and 1 <= gib <= 1024):
        raise BadInput(f"--gpu-gb {gib:g}: must be from 1 to 1024")
    return Machine(name=f"{gib:g} GB GPU", total=int(gib * GIB), reserve=_reserve(reserve_gib, gib))


def this_machine(reserve_gib: float | None = None) -> Machine | None:
    """The first NVIDIA device here, or None when there is none (or no driver, or no permission to ask)."""
    found = _nvml() or _smi()
    if found is None:
        return None
    name, total = found
    return Machine(name=name, total=total, reserve=_reserve(reserve_gib, total / GIB), here=True)


def _reserve(gib: float | None, total_gib: float) -> int:
    if gib is None:
        gib = WSL_RESERVE_GIB if under_wsl() else RESERVE_GIB
    if not (math.isfinite(gib) and 0 <= gib < total_gib):
        raise BadInput(f"--reserve-gb {gib:g}: must be from 0 to less than the {total_gib:.0f} GB of the device")
    return int(gib * GIB)


def _nvml() -> tuple[str, int] | None:
    with contextlib.suppress(Exception):  # no driver, no library, no permission: all mean "not by this way"
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        total = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
        name = pynvml.nvmlDeviceGetName(handle)
        if 0 < total < IMPLAUSIBLE:
            return (name if isinstance(name, str) else name.decode("utf-8", "replace")), total
    return None


def _smi() -> tuple[str, int] | None:
    """`nvidia-smi`, or Windows' own beside WSL."""
    for program in ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "nvidia-smi.exe"):
        command = [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
            answer = subprocess.run(
                command, capture_output=True, text=True, timeout=5, check=True, env={**os.environ, "LC_ALL": "C"}
            )
            name, mib = answer.stdout.splitlines()[0].rsplit(",", 1)
            return name.strip(), int(mib) << 20
    return None
