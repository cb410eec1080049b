"""Writing and reading benchmark results, with what is needed to compare two of them: machine, versions, date.

It measures nothing. Every package of `benchmarks` may import it.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
"""Where the JSON documents are."""


def write_result(name: str, figures: dict[str, Any], packages: tuple[str, ...] = ("rapidfuzz",)) -> Path:
    """Write `results/NAME.json`, replacing the previous one in one step."""
    document = {"name": name, "date": datetime.now(UTC).date().isoformat(), "machine": machine(),
                "versions": versions(packages), "figures": figures}  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def read_result(name: str) -> dict[str, Any] | None:
    """The figures of a result, or None when it was never measured."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return None
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def machine() -> dict[str, Any]:
    """Processor, its cores and the system, without names of hosts or people."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()}


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Python's version and those of the packages that are installed."""
    out = {"python": platform.python_version()}
    for package in packages:
        try:
            out[package] = version(package)
        except PackageNotFoundError:
            continue
    return out
