"""Folders that are either complete or not there: written under a temporary name, hashed, renamed, marker last.

Model folders in the cache and adapters in a job directory are written this way. Standard library only; only
ada_tui.worker may import it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

MARKER = "COMPLETE"
"""Written last: {"files": {name: {"size", "sha256"}}, ...}."""


def write_folder(target: Path, fill: Callable[[Path], None], about: dict[str, Any] | None = None) -> None:
    """Make `target` by letting `fill` write into a temporary folder beside it. An existing `target` is replaced.

    `about` is stored in the marker. When anything fails nothing new stands under the final name.

    Raises:
        OSError: as from the system.
        Exception: whatever `fill` raises.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial"))
    try:
        temp.chmod(0o755)
        fill(temp)
        files = {path.name: _describe(path) for path in sorted(temp.iterdir()) if path.is_file()}
        marker = temp / MARKER
        marker.write_bytes(orjson.dumps({"files": files, **(about or {})}, option=orjson.OPT_INDENT_2))
        _sync(marker)
        _put_in_place(temp, target)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise


def incomplete(folder: Path, *, hashes: bool = False) -> str | None:
    """Why `folder` is not whole, or None when it is. Sizes are always compared, contents only with `hashes`."""
    try:
        marker = orjson.loads((folder / MARKER).read_bytes())
        files = {str(name): (int(item["size"]), str(item["sha256"])) for name, item in marker["files"].items()}
    except OSError:
        return "the COMPLETE marker is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the COMPLETE marker cannot be read"
    for name, (size, digest) in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size} bytes instead of {size}"
        if hashes and _sha256(path) != digest:
            return f"{name} was changed after it was written"
    return None


def digest_of(folder: Path, name: str) -> str:
    """SHA-256 of a file of `folder`: from its marker when it has one, else computed."""
    if incomplete(folder) is None:
        recorded = orjson.loads((folder / MARKER).read_bytes())["files"]
        if name in recorded:
            return str(recorded[name]["sha256"])
    return _sha256(folder / name)


def _describe(path: Path) -> dict[str, Any]:
    path.chmod(0o644)
    _sync(path)
    return {"size": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _put_in_place(temp: Path, target: Path) -> None:
    """Rename; what stands there already is moved aside first, or kept when somebody else has just completed it."""
    if target.exists():
        if incomplete(target) is None and temp.parent == target.parent and _same_files(temp, target):
            shutil.rmtree(temp)
            return
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
        with contextlib.suppress(FileNotFoundError):
            target.rename(aside / target.name)
        temp.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
        return
    temp.rename(target)


def _same_files(first: Path, second: Path) -> bool:
    return (first / MARKER).read_bytes() == (second / MARKER).read_bytes()
