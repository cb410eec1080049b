"""A prompt row: one prompt with its history, and what is known about it. The unit of training and of evaluation.

Not here: reading chat files (`read.py`, `formats.py`), splitting (`split.py`). Anybody may import it.
On disk a row is one JSON object a line: id, prompt, history, system (when the chat brought one) and the columns of
`rewards.Row`, the reference among them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from ada_tui.errors import BadInput
from ada_tui.jobs import write_atomic
from ada_tui.persona import Persona
from rewards.types import Row

Message = dict[str, str]
"""{"role": "system" | "user" | "assistant", "content": text}"""


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One prompt: the last user turn, what was said before it, and the columns the rules read."""

    id: str
    prompt: str
    history: list[Message] = field(default_factory=list)
    """Earlier user and assistant turns, oldest first; never a system turn."""
    system: str | None = None
    """The system prompt the chat brought; None = the persona's."""
    row: Row = field(default_factory=Row)

    def messages(self, persona: Persona) -> list[Message]:
        """The chat up to the reply, as a chat template wants it."""
        if self.system is None:
            return persona.messages(self.history, self.prompt)
        return persona.messages([{"role": "system", "content": self.system}, *self.history], self.prompt)

    def to_json(self) -> dict[str, Any]:
        """The row as it stands on disk."""
        data: dict[str, Any] = {"id": self.id, "prompt": self.prompt, "history": self.history}
        if self.system is not None:
            data["system"] = self.system
        columns = self.row.to_columns()
        columns.pop("id", None)
        return data | columns

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PromptRow:
        """Raises ValueError when a field is missing or has the wrong type; the message names it."""
        prompt, history, system = data.get("prompt"), data.get("history") or [], data.get("system")
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError("'prompt' must be text that is not empty")
        if not isinstance(history, list) or not all(_is_turn(turn) for turn in history):
            raise ValueError("'history' must be a list of {role: user or assistant, content: text}")
        if system is not None and not isinstance(system, str):
            raise ValueError("'system' must be text")
        turns = [{"role": turn["role"], "content": turn["content"]} for turn in history]
        row = Row.from_columns(data)
        identity = row.id or content_id(prompt, turns)
        return cls(id=identity, prompt=prompt, history=turns, system=system or None, row=replace(row, id=identity))


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and turn.get("role") in ("user", "assistant") and isinstance(turn.get("content"), str)


def content_id(prompt: str, history: Iterable[Mapping[str, str]] = ()) -> str:
    """An id made of what was asked, so that labels and picks survive a re-import, a new order and a better reply.

    >>> content_id("Morning") == content_id("Morning", [])
    True
    """
    parts = [f"{turn['role']}\0{turn['content']}" for turn in history] + [f"user\0{prompt}"]
    return "r" + hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def load_rows(path: Path | str) -> list[PromptRow]:
    """Every row of a prompt-row file.

    Raises:
        BadInput: the file cannot be read or is empty, or a line is no row; the message has file and line.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{path}: cannot read the rows ({error.strerror}); make them with `ada-tui data convert`"
        ) from None
    rows: list[PromptRow] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
            if not isinstance(value, dict):
                raise ValueError(f"a JSON {type(value).__name__}, not an object")
            rows.append(PromptRow.from_json(value))
        except ValueError as error:
            raise BadInput(f"{path}:{number}: not a prompt row ({error}); see `ada-tui data check`") from None
    if not rows:
        raise BadInput(f"{path}: no rows in it; make them with `ada-tui data convert`")
    return rows


def encode_rows(rows: Iterable[PromptRow]) -> bytes:
    """One line of JSON a row. A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    return b"".join(_lines(rows))


def write_rows(path: Path | str, rows: Iterable[PromptRow]) -> None:
    """Write a prompt-row file in one step. Raises OSError."""
    write_atomic(Path(path), encode_rows(rows))


def _lines(rows: Iterable[PromptRow]) -> Iterator[bytes]:
    for row in rows:
        data = row.to_json()
        try:
            yield orjson.dumps(data) + b"\n"
        except orjson.JSONEncodeError:
            yield orjson.dumps(clean_surrogates(data)) + b"\n"


_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_surrogates(value: Any) -> Any:
    """`value` with every lone surrogate in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {clean_surrogates(key): clean_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_surrogates(item) for item in value]
    return value
