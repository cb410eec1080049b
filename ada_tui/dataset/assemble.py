"""From lines to JSON values: one a line on the fast path, and everything people really have beside it.

Records over several lines, several on one line, arrays in any layout, bytes that are not UTF-8, JSON that is nearly
right. Not here: opening and decoding files (`read.py`). Anybody may import it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from ada_tui.dataset.problems import Problem

MAX_LINE = 64 << 20
"""Bytes of the longest line, and of the largest document that is parsed as a whole."""

Note = tuple[str, str]
"""(problem code, sentence) about a record that was read all the same."""
Found = tuple[int, Any, bytes, tuple[Note, ...]]
"""(line, value, the bytes it came from or b"", notes)."""


def values(lines: Iterator[tuple[int, bytes | int]], name: str) -> Iterator[Found | Problem]:
    """Line by line as long as each line is a value; anything else goes to the assembler."""
    assembler = _Assembler(name)
    for number, line in lines:
        if isinstance(line, int):
            yield from assembler.give_up()
            size = f"the line has {line / 1e6:,.0f} MB; the longest that is read has {MAX_LINE >> 20} MB"
            yield Problem(name, number, None, "long-line", size)
            continue
        if assembler.idle:
            try:
                value = orjson.loads(line)
            except ValueError:
                if not line or line.isspace():
                    continue
            else:
                if type(value) is list and not is_turns(value):
                    for item in value:
                        yield number, item, b"", ()
                else:
                    yield number, value, line, ()
                continue
        yield from assembler.feed(number, line)
    yield from assembler.give_up(at_end=True)


def is_turns(value: list[Any]) -> bool:
    """Is the list one chat (its items are turns), not a list of chats?"""
    first = value[0] if value else None
    if isinstance(first, dict):
        return not first.keys().isdisjoint(_TURN_KEYS) and first.keys().isdisjoint(_CHAT_KEYS)
    return isinstance(first, list) and len(first) == 2 and isinstance(first[0], str)


def is_chat(line: bytes) -> bool:
    """Is the line by itself a chat in the form of a list of turns?"""
    try:
        value = orjson.loads(line)
    except ValueError:
        return False
    return isinstance(value, list) and is_turns(value)


_TURN_KEYS = frozenset({"role", "from", "speaker", "author"})
_CHAT_KEYS = frozenset({"messages", "conversations", "prompt", "instruction"})
_DECODER = json.JSONDecoder(strict=False)
_BETWEEN = re.compile(r"[\s,\]]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
RESCAN = 8
"""Lines up to which a collected record is scanned anew with every line: a raw line break inside a string needs it."""


class _Assembler:
    """Takes lines that are no single JSON value: records over several lines, several on one line, arrays in any layout,
    bytes that are not UTF-8, JSON that is nearly right. Gives a broken record up as soon as another one starts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[bytes] = []
        self._start = self._indent = self._size = self._depth = 0

    @property
    def idle(self) -> bool:
        """Nothing is being collected."""
        return not self._lines

    def feed(self, number: int, line: bytes) -> Iterator[Found | Problem]:
        """The values that are complete with this line."""
        if self._lines and self._starts_anew(line):
            yield from self.give_up()
        if not self._lines:
            yield from self._split(line, number)
            return
        self._lines.append(line)
        self._size += len(line)
        again = len(self._lines) <= RESCAN
        text = b"\n".join(self._lines) if again else line
        self._depth = _extent(_decode(text)[0], 0)[1] + (0 if again else self._depth)
        if self._depth <= 0 or self._size > MAX_LINE:
            text, self._lines = b"\n".join(self._lines), []
            yield from self._split(text, self._start)

    def _starts_anew(self, line: bytes) -> bool:
        """Does another record start on this line, no deeper than the one being collected did?"""
        body = line.lstrip()
        if body[:1] not in (b"{", b"[") or len(line) - len(body) > self._indent:
            return False
        return body[:1] == b"{" or is_chat(body)

    def give_up(self, at_end: bool = False) -> Iterator[Problem]:
        """What is being collected will never be complete."""
        if self._lines:
            text, self._lines = b"\n".join(self._lines), []
            code = "cut-line" if at_end else "broken-json"
            why = "the file ends in the middle of this record" if at_end else _why(_decode(text)[0], 0)
            yield Problem(self._name, self._start, None, code, why)

    def _split(self, raw: bytes, number: int) -> Iterator[Found | Problem]:
        """Every value in `raw`, which starts on line `number`; an open one at its end is kept for the lines to come."""
        text, notes = _decode(raw)
        position, array = 0, False
        while True:
            before, position = position, _BETWEEN.match(text, position).end()  # type: ignore[union-attr]
            if position == len(text):
                return
            line = number + text.count("\n", 0, position)
            try:
                value, end = _DECODER.raw_decode(text, position)
            except RecursionError:
                yield Problem(self._name, line, None, "broken-json", "not valid JSON: nested too deeply")
                position = _extent(text, position)[0]
                continue
            except json.JSONDecodeError:
                if text[position] == "[":
                    position, array = position + 1, True
                    continue
                end, depth = _extent(text, position)
                if depth > 0 and text[position] == "{":
                    self._keep(text, position, line, depth)
                    return
                yield Problem(self._name, line, None, "broken-json", _why(text, position))
                position = end
                continue
            if not isinstance(value, dict | list) and (before or text[end:].strip(" \t\r\n,]")):
                yield Problem(self._name, line, None, "broken-json", _why(text, position))
                return
            piece = text[position:end].encode("utf-8", "surrogatepass")
            glued = before and not array and "," not in text[before:position]
            extra = (("glued-records", "a second record stands on this line"),) if glued else ()
            for item in value if isinstance(value, list) and not is_turns(value) else [value]:
                yield line, item, b"", (*notes, *_lenience(piece), *extra)
            position = end

    def _keep(self, text: str, position: int, line: int, depth: int) -> None:
        start = text.rfind("\n", 0, position) + 1
        self._indent = position - start if text[start:position].isspace() else 0
        self._lines = [text[position:].encode("utf-8", "surrogatepass")]
        self._start, self._size, self._depth = line, len(self._lines[0]), depth


def _decode(raw: bytes) -> tuple[str, tuple[Note, ...]]:
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        note = ("not-utf8", f"byte {error.start + 1} of the line is not UTF-8; the line was read as Windows-1252")
        return raw.decode("cp1252", "replace"), (note,)


def _lenience(piece: bytes) -> tuple[Note, ...]:
    """What a strict reader would have refused, apart from lone surrogates, which have a code of their own."""
    try:
        json.loads(piece)
    except ValueError:
        return (("lenient-json", "the JSON has a raw control character or line break inside a string"),)
    if b"NaN" in piece or b"Infinity" in piece:
        return (("lenient-json", "the JSON holds NaN or Infinity"),)
    return ()


def _extent(text: str, position: int) -> tuple[int, int]:
    """(end, open brackets) of the value at `position`; what has no bracket ends with its line."""
    depth = 0
    for match in _TOKEN.finditer(text, position):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0:
                return match.end(), 0
        elif depth == 0:
            break
    if depth <= 0:
        end = text.find("\n", position)
        return (len(text) if end < 0 else end), depth
    return len(text), depth


def _why(text: str, position: int) -> str:
    try:
        _DECODER.raw_decode(text, position)
    except RecursionError:
        return "not valid JSON: nested too deeply"
    except json.JSONDecodeError as error:
        return f"not valid JSON: {error.msg[0].lower()}{error.msg[1:]} (character {error.pos + 1})"
    return "not valid JSON: more text after the value"


def element_lines(text: str, items: list[Any]) -> Iterator[int]:
    """The line on which each item of a JSON array starts."""
    position, line, seen = text.index("[") + 1, 1, 0
    for item in items:
        position = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]
        line, seen = line + text.count("\n", seen, position), position
        yield line
        position = (
            _extent(text, position)[0] if isinstance(item, dict | list) else _DECODER.raw_decode(text, position)[1]
        )
