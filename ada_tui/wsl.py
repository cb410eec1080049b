"""Whether we run inside Windows' subsystem for Linux. Anybody may import it."""

from __future__ import annotations

from pathlib import Path


def under_wsl(version: Path = Path("/proc/version")) -> bool:
    """Whether this Linux is Windows' subsystem, as its kernel says."""
    try:
        return "microsoft" in version.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False
