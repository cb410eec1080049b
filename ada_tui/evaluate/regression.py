"""The capability items: short questions and instructions whose answers a rule can check. Did training break anything?

They are no chats and are never trained on. One JSON object a line: id, prompt, and one or more checks:

    any     one of these stands in the reply, word for word
    all     all of these do
    exact   the reply is this, but for case, quotes and a final full stop
    words   [least, most] words
    lines   [least, most] lines that are not empty
    start   the reply begins with this
    not     none of these stands in the reply

Not here: asking the model (`worker/probe.py`). Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ada_tui.errors import BadInput
from rewards.text import view
from rewards.uncertainty import contains_answer


@dataclass(frozen=True, slots=True)
class Item:
    """One question or instruction with its checks."""

    id: str
    prompt: str
    checks: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {"id": self.id, "prompt": self.prompt, **self.checks}

    @classmethod
    def from_dict(cls, data: Any) -> Item:
        """Raises ValueError when it is no item; the message says why."""
        if not isinstance(data, dict) or not isinstance(data.get("prompt"), str) or not isinstance(data.get("id"), str):
            raise ValueError("id and prompt must be text")
        checks = {name: value for name, value in data.items() if name not in ("id", "prompt")}
        if not checks or (unknown := set(checks) - set(CHECKS)):
            raise ValueError(f"unknown check {sorted(unknown)[0]!r}" if checks else "it has no check")
        for name, value in checks.items():
            if not _SHAPES[name](value):
                raise ValueError(f"{name!r} cannot be {value!r}")
        return cls(data["id"], data["prompt"], checks)


def _exact(reply: str, wanted: str) -> bool:
    return reply.strip().strip("\"'`*").rstrip(".!").strip().casefold() == wanted.casefold()


CHECKS: Mapping[str, Callable[[str, Any], bool]] = {
    "any": lambda reply, wanted: contains_answer(view(reply), tuple(wanted)),
    "all": lambda reply, wanted: all(contains_answer(view(reply), (word,)) for word in wanted),
    "exact": _exact,
    "words": lambda reply, band: band[0] <= len(reply.split()) <= band[1],
    "lines": lambda reply, band: band[0] <= sum(bool(line.strip()) for line in reply.splitlines()) <= band[1],
    "start": lambda reply, wanted: reply.lstrip("\"'`* \n").casefold().startswith(wanted.casefold()),
    "not": lambda reply, unwanted: not contains_answer(view(reply), tuple(unwanted)),
}


def passed(item: Item, reply: str) -> bool:
    """Whether `reply` meets every check of `item`.

    >>> passed(Item("x", "How many legs has a spider?", {"any": ["8", "eight"]}), "A spider has eight legs.")
    True
    """
    return all(CHECKS[name](reply, wanted) for name, wanted in item.checks.items())


def score(items: Sequence[Item], replies: Mapping[str, str]) -> dict[str, float]:
    """Item id -> 1 or 0 for every item that has a reply."""
    return {item.id: float(passed(item, replies[item.id])) for item in items if item.id in replies}


def load_items(path: Path) -> list[Item]:
    """The items of a file.

    Raises:
        BadInput: it cannot be read, or a line is no item; the message has file and line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(
            f"{path}: cannot read the capability items ({error.strerror}); set evaluate.regression"
        ) from None
    items = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                items.append(Item.from_dict(orjson.loads(line)))
            except ValueError as error:
                raise BadInput(f"{path}:{number}: not a capability item ({error}); see docs/worth-it.md") from None
    if not items:
        raise BadInput(f"{path}: no capability items in it; set evaluate.regression")
    return items


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _band(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(item, int) for item in value)


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "any": _texts, "all": _texts, "not": _texts, "exact": _text, "start": _text, "words": _band, "lines": _band,
}  # fmt: skip
