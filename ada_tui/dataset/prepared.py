"""From the chats of a workspace to its prompt rows: read, split, written once, reused while nothing changed.

Not here: the checks with their messages (`checks.py`). Anybody may import it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ada_tui.dataset.convert import rows_of_files
from ada_tui.dataset.labels import FILE as LABELS_FILE
from ada_tui.dataset.labels import Labels
from ada_tui.dataset.rows import PromptRow, write_rows
from ada_tui.dataset.split import Split, split_rows
from ada_tui.errors import BadInput
from ada_tui.jobs import write_atomic
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace

VERSION = 1
"""Rises when the same chats would give other rows, so that stored ones are made anew."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """Where the rows are and what is in them."""

    train: Path
    held_out: Path
    counts: dict[str, int]
    """Rows by side: train, held_out; and `skipped`, the records that could not be used."""
    kinds: dict[str, int]
    """Rows by kind of prompt, both sides together."""
    clusters: int
    """Topic clusters."""


def prepare(workspace: Workspace, settings: Settings) -> PreparedData:
    """Prompt rows of `settings.data.chats` in `<workspace>/data/rows/<fingerprint>/`, split by topic.

    The fingerprint covers the chats, the labels and the split's settings: same input, same folder, nothing done twice.

    Raises:
        BadInput: a chat file is missing or has no usable chat, or data/rows cannot be written.
    """
    files = [workspace.resolve(path) for path in settings.data.chats]
    if not files:
        raise BadInput(f"{workspace.root / 'ada.toml'}: data.chats names no file; add your chats there")
    labels = workspace.root / "data" / LABELS_FILE
    folder = workspace.root / "data" / "rows" / _fingerprint(files, labels, settings)
    summary = folder / "split.json"
    if summary.is_file():
        return _prepared(folder, orjson.loads(summary.read_bytes()))
    read = rows_of_files(files, Labels.load(labels))
    split = split_rows(read.rows, settings.data.held_out, settings.data.seed)
    try:
        return _write(folder, split, read.report.skipped, settings)
    except OSError as error:
        raise BadInput(
            f"{folder.parent}: cannot write the prompt rows ({error.strerror}); make the folder writable or free space"
        ) from None


def _fingerprint(files: list[Path], labels: Path, settings: Settings) -> str:
    digest = hashlib.sha256(f"{VERSION} {settings.data.held_out} {settings.data.seed}".encode())
    for path in [*files, *([labels] if labels.is_file() else [])]:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise BadInput(f"{path}: cannot read the chats ({error.strerror}); set data.chats in ada.toml") from None
    return digest.hexdigest()[:16]


def _write(folder: Path, split: Split, skipped: int, settings: Settings) -> PreparedData:
    """The folder appears under its name only when all three files in it are complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".partial-"))
    try:
        partial.chmod(0o755)
        summary = _write_files(partial, split, skipped, settings.data.held_out, settings.data.seed)
        if not folder.exists():
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _prepared(folder, summary)


def write_split(folder: Path, split: Split, skipped: int, share: float, seed: int) -> PreparedData:
    """train.jsonl, held_out.jsonl and split.json in a folder of the person's choice. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _prepared(folder, _write_files(folder, split, skipped, share, seed))
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror}); choose a folder you may write") from None


def _write_files(folder: Path, split: Split, skipped: int, share: float, seed: int) -> dict[str, Any]:
    summary = {
        "counts": {"train": len(split.train), "held_out": len(split.held_out), "skipped": skipped},
        "kinds": {"train": _kinds(split.train), "held_out": _kinds(split.held_out)},
        "clusters": split.clusters,
        "share": share,
        "seed": seed,
    }
    write_rows(folder / "train.jsonl", split.train)
    write_rows(folder / "held_out.jsonl", split.held_out)
    write_atomic(folder / "split.json", orjson.dumps(summary, option=orjson.OPT_INDENT_2))
    return summary


def _kinds(rows: list[PromptRow]) -> dict[str, int]:
    return dict(sorted(Counter(row.row.kind or "unknown" for row in rows).items()))


def _prepared(folder: Path, summary: dict[str, Any]) -> PreparedData:
    total: Counter[str] = Counter()
    for side in summary["kinds"].values():
        total.update(side)
    return PreparedData(
        train=folder / "train.jsonl",
        held_out=folder / "held_out.jsonl",
        counts=summary["counts"],
        kinds=dict(sorted(total.items())),
        clusters=summary["clusters"],
    )
