"""Products of the stages, kept under the hash of everything they were made from: a second export starts where the first
one got to, and nothing half-made ever has a final name. Only ada_tui.export and ada_tui.worker.export import it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson

from ada_tui.jobs import write_atomic

CHUNK = 1 << 22


class Store:
    """A folder of products. A product is a file or a folder named after its key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def find(self, key: str) -> Path | None:
        """The product of `key`, or None."""
        path = self.root / key
        return path if path.exists() else None

    def make(self, key: str, build: Callable[[Path], None]) -> Path:
        """The product of `key`, made by `build(temporary path)` when it is not there yet.

        Raises what `build` raises; the temporary path is removed then.
        """
        if found := self.find(key):
            return found
        scratch = Path(tempfile.mkdtemp(dir=self.root, prefix=".making-"))
        try:
            build(scratch / key)
            (scratch / key).rename(self.root / key)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return self.root / key

    def keep_only(self, keys: Iterable[str]) -> None:
        """Remove every product but these, and what a killed job left."""
        wanted = {*keys, HASHES}
        for path in self.root.iterdir():
            if path.name not in wanted:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def hash_of(self, files: Iterable[Path]) -> str:
        """SHA-256 over names and contents of `files`. A file is read once: size and time stand for it from then on."""
        index = self.root / HASHES
        try:
            known: dict[str, str] = orjson.loads(index.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            known = {}
        total = hashlib.sha256()
        for path in sorted(files):
            status = path.stat()
            stamp = f"{path}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
            if stamp not in known:
                known[stamp] = sha256(path)
            total.update(f"{path.name}\0{known[stamp]}\n".encode())
        write_atomic(index, orjson.dumps(known))
        return total.hexdigest()


HASHES = "hashes.json"


def key(stage: str, *parts: object) -> str:
    """A name for the product of `stage` made from `parts` (hashes, parameters, versions of tools)."""
    return f"{stage}-{hashlib.sha256(orjson.dumps([str(part) for part in parts])).hexdigest()[:20]}"


def sha256(path: Path, report: Callable[[int], None] | None = None) -> str:
    """The hash of a file, in hex; `report` is told the bytes read so far."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if report:
                report(done)
    return digest.hexdigest()


def place(source: Path, target: Path) -> None:
    """`source` under the name `target` as one step: a hard link where the file system has them, else a copy."""
    temporary = target.with_name(f".{target.name}.partial")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    temporary.replace(target)
