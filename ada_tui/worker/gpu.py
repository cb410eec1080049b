"""One memory reading: this process, the host, and the device where there is one. It is the heartbeat as well.

Each figure falls back by itself: NVML, then nvidia-smi, then torch, then None. Never a 0 shown as truth: inside WSL and
containers single queries fail while others work. Device-level figures only: per-process ones do not exist under WSL2.
torch is looked at only when the job has imported it already. Only ada_tui.worker may import this file.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import psutil

from ada_tui.protocol import Memory

IMPLAUSIBLE = 1 << 50
"""Bytes no device has: NVML under WSL answers 2^64 for what it does not know."""


class DeviceReader:
    """Reads used and total bytes and the utilisation of the device that this process uses."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._smi_works = False
        with contextlib.suppress(Exception):  # no driver, no library, no permission: all mean "not by this way"
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(_device_index())
        if self._handle is None:
            self._smi_works = _smi() is not None

    def read(self) -> tuple[int | None, int | None, float | None]:
        """(used, total, utilisation in percent)."""
        used, total, util = self._nvml() if self._handle is not None else (None, None, None)
        if (used is None or total is None) and self._smi_works and (answer := _smi()) is not None:
            used, total, util = answer
        if used is None or total is None:
            used, total = _torch_device()
        return used, total, util

    def _nvml(self) -> tuple[int | None, int | None, float | None]:
        import pynvml

        used = total = util = None
        with contextlib.suppress(pynvml.NVMLError):
            info = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
            used, total = plausible(info.used), plausible(info.total)
        with contextlib.suppress(pynvml.NVMLError):
            util = float(pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
        return used, total, util


def plausible(value: int) -> int | None:
    """`value` bytes, or None when no device can have that many."""
    return value if 0 < value < IMPLAUSIBLE else None


def read_memory(device: DeviceReader) -> Memory:
    """One reading of everything."""
    used, total, util = device.read()
    allocated, reserved, peak = _torch_allocator()
    return Memory(
        rss=psutil.Process().memory_info().rss, host_available=psutil.virtual_memory().available,
        allocated=allocated, reserved=reserved, peak=peak, device_used=used, device_total=total, util=util,
    )  # fmt: skip


class Heartbeat(threading.Thread):
    """Emits a reading every second until `stop`."""

    def __init__(self, emit: Callable[[Memory], None], every: float = 1.0) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._emit, self._every = emit, every
        self._ended = threading.Event()

    def run(self) -> None:
        device = DeviceReader()
        while True:
            # A full disk is reported by the job's own next write; a heartbeat must not end the process.
            with contextlib.suppress(OSError):
                self._emit(read_memory(device))
            if self._ended.wait(self._every):
                return

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._ended.set()
        self.join()


def _device_index() -> int:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return int(first) if first.isdigit() else 0


def _smi() -> tuple[int | None, int | None, float | None] | None:
    query = ["--query-gpu=memory.used,memory.total,utilization.gpu", "--format=csv,noheader,nounits"]
    for program in ("nvidia-smi", "nvidia-smi.exe"):
        try:
            answer = subprocess.run(
                [program, f"--id={_device_index()}", *query], capture_output=True, text=True, timeout=5, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return parse_smi(answer.stdout)
    return None


def parse_smi(text: str) -> tuple[int | None, int | None, float | None] | None:
    """(used, total, utilisation) of one line "1234, 24564, 57" in MiB and percent; "[N/A]" is None."""
    fields = [field.strip() for field in text.splitlines()[0].split(",")] if text.strip() else []
    if len(fields) != 3:
        return None
    numbers = [float(field) if field.replace(".", "", 1).isdigit() else None for field in fields]
    used, total = (None if n is None else plausible(int(n) << 20) for n in numbers[:2])
    return used, total, numbers[2]


def _torch_device() -> tuple[int | None, int | None]:
    torch = sys.modules.get("torch")
    if torch is None or not _cuda_in_use(torch):
        return None, None
    free, total = torch.cuda.mem_get_info()
    return total - free, total


def _torch_allocator() -> tuple[int | None, int | None, int | None]:
    torch = sys.modules.get("torch")
    if torch is None or not _cuda_in_use(torch):
        return None, None, None
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated()


def _cuda_in_use(torch: Any) -> bool:
    """Never initialises CUDA: a half-imported torch has no `cuda` yet."""
    cuda = vars(torch).get("cuda")
    return cuda is not None and "is_initialized" in vars(cuda) and bool(cuda.is_initialized())
