"""Model and user text made drawable: hidden characters shown, every drawn character traceable to its raw offset.

It judges nothing and knows no colours. Whatever a terminal could take as an instruction, or draw wider or narrower than
we count, is replaced here, so that no border ever shifts. Only `ada_tui.ui` imports it; `ada_tui.text` is the plain
one-line version for the command line.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len

LONGEST = 6_000
"""Characters of one text that are drawn; the rest is counted, not shown."""

MARKS = 2
"""Combining marks that may sit on one letter."""

_NAMES = {
    0x00AD: "SHY", 0x200B: "ZWSP", 0x200C: "ZWNJ", 0x200E: "LRM", 0x200F: "RLM", 0x202A: "LRE", 0x202B: "RLE",
    0x202C: "PDF", 0x202D: "LRO", 0x202E: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI",
    0x2069: "PDI", 0xFEFF: "BOM",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """What is drawn of a raw text."""

    text: str
    """Hidden characters as symbols; newlines kept, tabs as spaces."""
    origin: tuple[int, ...]
    """Raw offset of every drawn character, and the raw length at the end."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The drawn range of the raw range `start:end`."""
        return bisect_left(self.origin, start), bisect_left(self.origin, end)


@lru_cache(maxsize=512)
def reveal(raw: str) -> Shown:
    """`raw` as it may be drawn.

    >>> reveal("a\\x1b[31mb\\u202ec").text
    'a␛[31mb⟨RLO⟩c'
    """
    cut = raw[:LONGEST]
    if cut.isascii() and cut.isprintable():
        shown, origin = cut, list(range(len(cut)))
    else:
        parts: list[str] = []
        origin = []
        marks = 0
        for offset, char in enumerate(cut):
            marks = marks + 1 if unicodedata.combining(char) else 0
            symbol = _symbol(char) if marks <= MARKS else ("◌" if marks == MARKS + 1 else "")
            parts.append(symbol)
            origin += [offset] * len(symbol)
        shown = "".join(parts)
    if len(raw) > LONGEST:
        more = f" … {len(raw) - LONGEST} more characters"
        shown += more
        origin += [LONGEST] * len(more)
    return Shown(shown, (*origin, len(raw)))


@lru_cache(maxsize=4096)
def _symbol(char: str) -> str:
    code = ord(char)
    if char == "\n" or 0x20 <= code < 0x7F:
        return char
    if char == "\t":
        return "    "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code in _NAMES:
        return f"⟨{_NAMES[code]}⟩"
    if code == 0x200D:
        return "⊕"  # a joiner: terminals disagree about how wide the joined emoji is
    if 0xFE00 <= code <= 0xFE0F or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return ""  # presentation only
    if 0x1F1E6 <= code <= 0x1F1FF:
        return chr(ord("A") + code - 0x1F1E6)  # half a flag
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"⟨U+{code:04X}⟩"
    if category == "Zs":
        return " "
    return char


def one_line(raw: str, width: int) -> str:
    """The beginning of a text in at most `width` cells, newlines as ⏎, cut with an ellipsis.

    >>> one_line("Good morning\\nto you", 14)
    'Good morning⏎…'
    """
    text = reveal(raw[: 4 * width + 8]).text.replace("\n", "⏎")
    return crop(text, width, more=len(raw) > 4 * width + 8)


def crop(text: str, width: int, *, more: bool = False) -> str:
    """`text` in at most `width` cells; an ellipsis tells that something (or `more`) is missing."""
    if cell_len(text) <= width and not more:
        return text
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > width - 1:
            return text[:index] + "…"
    return text + "…" if width else ""


@lru_cache(maxsize=2048)
def wrap(shown: Shown, width: int) -> tuple[tuple[int, int], ...]:
    """The lines of `shown` in `width` cells as (start, end) of its text, broken at spaces where there are any."""
    lines: list[tuple[int, int]] = []
    text, position = shown.text, 0
    for paragraph in text.split("\n"):
        lines += _wrap_line(text, position, position + len(paragraph), max(1, width))
        position += len(paragraph) + 1
    return tuple(lines)


def _wrap_line(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    lines: list[tuple[int, int]] = []
    while True:
        used, index, space = 0, start, -1
        while index < end:
            char = text[index]
            cells = 1 if char < "\u0300" else cell_len(char)
            if used + cells > width:
                break
            if char == " ":
                space = index
            used += cells
            index += 1
        if index >= end:
            lines.append((start, end))
            return lines
        if text[index] == " ":
            lines.append((start, index))
            start = index + 1
        elif space > start:
            lines.append((start, space))
            start = space + 1
        else:
            index = max(index, start + 1)
            lines.append((start, index))
            start = index
