"""From chats to prompt rows: the last user turn with its history is the prompt, the reply after it the reference.

Not here: reading files and finding what is wrong (`checks.py`), splitting (`split.py`). Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ada_tui.dataset.checks import Checked, Report, scan
from ada_tui.dataset.formats import Turn
from ada_tui.dataset.labels import Labels, prefill
from ada_tui.dataset.rows import PromptRow, content_id
from ada_tui.errors import BadInput
from rewards.types import Row


@dataclass(slots=True)
class RowsRead:
    """What chat files gave: rows, and the report on everything else."""

    rows: list[PromptRow] = field(default_factory=list)
    report: Report = field(default_factory=Report)


def rows_of_chat(checked: Checked, every_turn: bool = False) -> list[PromptRow]:
    """The row of a chat's last user turn; with `every_turn` one for each earlier user turn as well, last one first.

    The columns of the record describe its last turn, so the earlier rows have none.
    """
    turns = checked.normal.turns
    last = len(turns) - (2 if checked.normal.complete else 1)
    source = Path(checked.file).name
    columns = Row.from_columns({**checked.chat.columns, "source": checked.chat.columns.get("source") or source})
    rows = [_row(turns, last, checked, checked.id, columns)]
    if every_turn:
        for at in range(last - 2, -1, -2):
            identity = f"{checked.id}:turn-{at // 2 + 1}" if checked.id else ""
            rows.append(_row(turns, at, checked, identity, Row(source=source)))
    return rows


def _row(turns: Sequence[Turn], at: int, checked: Checked, identity: str, columns: Row) -> PromptRow:
    history = [{"role": turn.role, "content": turn.content} for turn in turns[:at]]
    prompt = turns[at].content
    reference = turns[at + 1].content if at + 1 < len(turns) else ""
    identity = identity or content_id(prompt, history)
    return PromptRow(
        identity, prompt, history, checked.normal.system, replace(columns, id=identity, reference=reference)
    )


def rows_of_files(files: Iterable[Path], labels: Labels | None = None, every_turn: bool = False) -> RowsRead:
    """Every usable chat of the files as rows: ids unique, labels applied, kind and answerable pre-filled by rule.

    Raises:
        BadInput: a file cannot be read, or holds no usable chat; the message has file, line and the first reason.
    """
    read = RowsRead()
    taken: set[str] = set()
    for path in files:
        before, problems = read.report.ok, len(read.report.problems)
        for checked in scan([path], read.report):
            for row in rows_of_chat(checked, every_turn):
                read.rows.append(_unique(row, taken))
        if read.report.ok == before:
            new = read.report.problems[problems:]
            first = f" ({new[0].message})" if new else ""
            line = f":{new[0].line}" if new and new[0].line else ""
            raise BadInput(f"{path}{line}: no usable chat in this file{first}; `ada-tui data check` lists all problems")
    rows = read.rows if labels is None else [labels.apply(row) for row in read.rows]
    read.rows = [prefill(row) for row in rows]
    return read


def _unique(row: PromptRow, taken: set[str]) -> PromptRow:
    """A second row of the same id gets one made of its reply as well."""
    identity, number = row.id, 2
    while identity in taken:
        identity = f"{row.id}-{number}"
        number += 1
    taken.add(identity)
    return row if identity == row.id else replace(row, id=identity, row=replace(row.row, id=identity))
