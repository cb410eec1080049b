"""Write chats again with everything put right that can be put right without guessing; the source is never touched.

The output is ChatML JSON Lines (preference records keep their pair), one chat a line, ids and other fields kept, and
beside it a report of every change. Not here: the repairs themselves (`normalise.py`, `texts.py`).
Anybody may import it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ada_tui.dataset.checks import Checked, Report, scan
from ada_tui.dataset.formats import COLUMNS, LISTS
from ada_tui.dataset.problems import Problem
from ada_tui.dataset.rows import clean_surrogates
from ada_tui.errors import BadInput
from ada_tui.jobs import write_atomic

REPAIRED = frozenset({
    "lenient-json", "glued-records", "not-utf8", "duplicate-id", "unanswered", "not-alternating", "assistant-first",
    "system-misplaced", "system-twice", "tool-turns", "pre-templated", "special-token", "control-characters",
    "lone-surrogate", "mojibake", "bad-column",
})  # fmt: skip
"""Problems that writing the chat again removes. The others need a person."""

_STRUCTURE = frozenset({
    *LISTS, "system", "history", "prompt", "completion", "response", "answer", "reference", "chosen", "rejected",
    "instruction", "input", "output", "text", "id",
})  # fmt: skip


@dataclass(slots=True)
class Fixed:
    """What was written and what was changed on the way."""

    out: Path
    changes_file: Path
    written: int = 0
    changes: list[dict[str, str | int | None]] = field(default_factory=list)
    report: Report = field(default_factory=Report)


def fix(paths: Iterable[Path], out: Path) -> Fixed:
    """Check `paths` and write every usable chat, repaired, to `out`; the report of changes to `<out>.changes.json`.

    Raises:
        BadInput: `out` is one of the sources, or cannot be written, or there is no usable chat.
    """
    paths = list(paths)
    if any(path.exists() and out.exists() and path.samefile(out) for path in paths):
        raise BadInput(f"{out}: this is a source file, and sources are never changed; choose another name")
    fixed = Fixed(out, out.with_name(out.name + ".changes.json"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                for line in _lines(paths, fixed):
                    file.write(line)
            if not fixed.written:
                raise BadInput(f"{paths[0]}: no usable chat, so there is nothing to fix; `ada-tui data check` says why")
            Path(name).chmod(0o644)
            Path(name).replace(out)
        finally:
            Path(name).unlink(missing_ok=True)
        summary = {"out": str(out), "written": fixed.written, "changes": fixed.changes, "left": fixed.report.to_json()}
        write_atomic(fixed.changes_file, orjson.dumps(clean_surrogates(summary), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror}); choose a folder you may write") from None
    return fixed


def _lines(paths: list[Path], fixed: Fixed) -> Iterator[bytes]:
    for checked in scan(paths, fixed.report):
        for turn, code, message in checked.changes:
            if code in REPAIRED:
                fixed.changes.append(Problem(checked.file, checked.line, turn, code, message).to_json())
        fixed.written += 1
        yield orjson.dumps(clean_surrogates(_record(checked))) + b"\n"


def _record(checked: Checked) -> dict[str, Any]:
    chat, normal = checked.chat, checked.normal
    messages = [{"role": turn.role, "content": turn.content} for turn in normal.turns]
    if normal.system is not None:
        messages.insert(0, {"role": "system", "content": normal.system})
    record: dict[str, Any] = {"id": checked.id} if checked.id else {}
    if chat.rejected is not None:
        worse = {"role": "assistant", "content": chat.rejected}
        record |= {"prompt": messages[:-1], "chosen": messages[-1:], "rejected": [worse]}
    elif not normal.complete:
        record["prompt"] = messages
    else:
        record["messages"] = messages
    extra = chat.record if isinstance(chat.record, dict) else {}
    refused = COLUMNS - chat.columns.keys()
    return record | {key: value for key, value in extra.items() if key not in _STRUCTURE | refused}
