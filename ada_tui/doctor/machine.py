"""The system: Python, GPU as NVML sees it, WSL, memory, disk, terminal."""

from __future__ import annotations

import locale
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from ada_tui.doctor.finding import Finding
from ada_tui.workspace import Workspace
from ada_tui.wsl import under_wsl

GIB = 1 << 30
DISK_WANTED = 20 * GIB
"""A 3B export needs 16-bit (6), f16 (6) and quantised (2) side by side, and checkpoints."""
WSL_LIBRARY = Path("/usr/lib/wsl/lib/libnvidia-ml.so.1")


def check(workspace: Workspace) -> Iterator[Finding]:
    yield _python()
    yield _gpu()
    if under_wsl():
        yield from _wsl(workspace)
    yield _memory()
    yield _disk(workspace)
    yield _terminal(os.environ)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("python", ok, version, "" if ok else "use Python 3.11, 3.12 or 3.13")


def _gpu() -> Finding:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        fix = ""
        if under_wsl() and not WSL_LIBRARY.exists():
            fix = "WSL sees no GPU: update the Windows NVIDIA driver, then `wsl --shutdown`"
        elif Path("/dev/nvidia0").exists():
            fix = "the driver is there but NVML is not: install the driver's libnvidia-ml.so.1"
        return Finding("gpu", not fix, f"no NVIDIA GPU seen ({error}); training runs on the CPU", fix)
    try:
        seen = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            info = pynvml.nvmlDeviceGetMemoryInfo(handle)
            free, total = info.free / GIB, info.total / GIB
            seen.append(f"{pynvml.nvmlDeviceGetName(handle)}: {free:.1f} of {total:.1f} GiB free")
        return Finding("gpu", bool(seen), "; ".join(seen) or "NVML lists no device", "" if seen else "check nvidia-smi")
    except pynvml.NVMLError as error:
        return Finding("gpu", False, f"NVML cannot read the device ({error})", "run nvidia-smi and follow what it says")
    finally:
        pynvml.nvmlShutdown()


def _wsl(workspace: Workspace) -> Iterator[Finding]:
    on_windows = workspace.root.parts[:2] == ("/", "mnt") and len(workspace.root.parts) > 2
    yield Finding(
        "wsl: files",
        not on_windows,
        f"workspace at {workspace.root}",
        "files under /mnt are slow: move the workspace into the Linux home" if on_windows else "",
    )
    total = psutil.virtual_memory().total / GIB
    yield Finding(
        "wsl: memory",
        total >= 16,
        f"WSL may use {total:.0f} GiB",
        "" if total >= 16 else "raise it: %UserProfile%\\.wslconfig, [wsl2] memory=24GB, then `wsl --shutdown`",
    )
    yield Finding(
        "wsl: paging",
        True,
        "WSL can spill VRAM to system RAM without an error; a step that takes three times as long says so",
    )
    yield Finding(
        "wsl: idle",
        True,
        "WSL shuts a distro down when its last window closes; a run keeps it up only while a window is open"
        " ([wsl2] vmIdleTimeout=-1 in .wslconfig changes that)",
    )


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    free = memory.available / GIB
    detail = f"{free:.1f} of {memory.total / GIB:.1f} GiB free"
    return Finding(
        "memory", free >= 3, detail, "" if free >= 3 else "close programs: the embedded model alone needs 3 GiB"
    )


def _disk(workspace: Workspace) -> Finding:
    place = workspace.root
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    if not writable:
        return Finding("disk", False, f"{place} is not writable", "choose a folder you may write: ada-tui -w FOLDER")
    ok = free >= DISK_WANTED
    fix = (
        ""
        if ok
        else f"free {(DISK_WANTED - free) / GIB:.0f} GiB before exporting a 3B model (the embedded one needs 2)"
    )
    return Finding("disk", ok, f"{free / GIB:.0f} GiB free in {place}", fix)


def _terminal(environ: Mapping[str, str]) -> Finding:
    term, encoding = environ.get("TERM", ""), locale.getpreferredencoding(False)
    width, height = shutil.get_terminal_size()
    detail = f"TERM={term or '-'}, {encoding}, {width}x{height}"
    if "utf" not in encoding.lower():
        return Finding("terminal", False, detail, "use a UTF-8 locale: export LANG=C.UTF-8")
    if term in ("", "dumb"):
        return Finding("terminal", False, detail, "TERM says nothing can be drawn; the commands work, the app does not")
    if (width, height) < (80, 24) or height < 24:
        return Finding("terminal", False, detail, "enlarge the window to 80x24 or more")
    return Finding("terminal", True, detail)
