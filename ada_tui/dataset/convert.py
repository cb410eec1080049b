"""From chats to prompt rows: the last user turn with its history is the prompt, the reply after it the reference.

Not here: reading files, finding what is wrong with them. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from ada_tui.dataset.formats import Chat, Turn, Unusable, to_chat
from ada_tui.dataset.rows import Message, PromptRow, content_id
from ada_tui.errors import BadInput
from rewards.types import Row


@dataclass(slots=True)
class RowsRead:
    """What files gave: rows, and how many records gave none."""

    rows: list[PromptRow] = field(default_factory=list)
    skipped: int = 0


def rows_of_chat(chat: Chat, source: str = "") -> list[PromptRow]:
    """The row of a chat that ends with a reply. The columns describe its last user turn.

    Raises:
        Unusable: there is no user turn with a reply after it.
    """
    turns = [turn for turn in chat.turns if turn.role != "tool" and turn.content.strip()]
    system = next((turn.content for turn in turns if turn.role == "system"), None)
    turns = [turn for turn in turns if turn.role != "system"]
    if len(turns) < 2 or (turns[-2].role, turns[-1].role) != ("user", "assistant"):
        raise Unusable("no-reply", "the chat has no user turn followed by a reply")
    return [_row(turns, system, chat, source)]


def _row(turns: Sequence[Turn], system: str | None, chat: Chat, source: str) -> PromptRow:
    history: list[Message] = [{"role": turn.role, "content": turn.content} for turn in turns[:-2]]
    prompt, reference = turns[-2].content, turns[-1].content
    identity = str(chat.id) if isinstance(chat.id, str | int) and str(chat.id).strip() else content_id(prompt, history)
    try:
        row = Row.from_columns({**chat.columns, "reference": reference})
    except ValueError as error:
        raise Unusable("bad-column", str(error)) from None
    return PromptRow(identity, prompt, history, system, replace(row, id=identity, source=row.source or source))


def rows_of_files(files: Iterable[Path]) -> RowsRead:
    """Every usable chat of the files as a row; ids are made unique.

    Raises:
        BadInput: a file cannot be read, or no record in it is usable.
    """
    read = RowsRead()
    taken: set[str] = set()
    for path in files:
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise BadInput(f"{path}: cannot read the chats ({error.strerror}); set data.chats in ada.toml") from None
        found = 0
        for line in lines:
            if not line.strip():
                continue
            try:
                rows = rows_of_chat(to_chat(orjson.loads(line)), path.name)
            except (Unusable, orjson.JSONDecodeError):
                read.skipped += 1
                continue
            found += len(rows)
            read.rows += [_unique(row, taken) for row in rows]
        if not found:
            raise BadInput(f"{path}: no usable chat in it; `ada-tui data check` says why")
    return read


def _unique(row: PromptRow, taken: set[str]) -> PromptRow:
    """A second row of the same id gets one made of its content as well."""
    identity = row.id
    number = 2
    while identity in taken:
        identity = f"{row.id}-{number}"
        number += 1
    taken.add(identity)
    return row if identity == row.id else replace(row, id=identity, row=replace(row.row, id=identity))
