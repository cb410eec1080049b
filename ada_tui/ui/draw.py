"""Small parts of a drawn line: bars, signed figures, and a line that is exactly as wide as it should be.

Widgets that draw their lines themselves use it. It knows no widget. Only `ada_tui.ui` imports it.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(value: float, width: int) -> tuple[str, str]:
    """`value` (0..1) as (filled part, rest of the track) of a thin bar; anything above 0 shows at least half a cell.

    >>> bar(0.5, 5)
    ('━━╸', '──')
    """
    halves = round(max(0.0, min(1.0, value)) * width * 2)
    if value > 0 and halves == 0:
        halves = 1
    full, half = divmod(halves, 2)
    return "━" * full + "╸" * half, "─" * (width - full - half)


def column(value: float | None) -> str:
    """`value` (0..1) as one block of that height; a dot when there is no value."""
    return "·" if value is None else _HEIGHTS[min(7, int(max(0.0, min(1.0, value)) * 8))]


def signed(value: float, digits: int = 2) -> str:
    """With its sign, zero without.

    >>> signed(0.5), signed(-0.0001), signed(-1.25)
    ('+0.50', ' 0.00', '-1.25')
    """
    text = f"{value:+.{digits}f}"
    return f" {text[1:]}" if float(text) == 0 else text


def moved(places: int) -> str:
    """Places gained or lost: ▲2, ▼1, or nothing."""
    return f"▲{places}" if places > 0 else f"▼{-places}" if places < 0 else ""


def gib(value: float | None) -> str:
    """Bytes as GiB; "n/a" when it cannot be read."""
    return "n/a" if value is None else f"{value / 2**30:.1f} GiB"


def duration(seconds: float) -> str:
    """
    >>> duration(4), duration(75), duration(7300)
    ('4 s', '1:15', '2:01 h')
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


class Line:
    """A line under construction: styled pieces, then `strip(width)`."""

    __slots__ = ("_base", "_segments", "width")

    def __init__(self, base: Style) -> None:
        self._base = base
        self._segments: list[Segment] = []
        self.width = 0

    def add(self, text: str, style: Style | None = None) -> Line:
        if text:
            self._segments.append(Segment(text, self._base + style if style else self._base))
            self.width += cell_len(text)
        return self

    def bar(self, value: float, width: int, style: Style, track: Style) -> Line:
        """A bar of exactly `width` cells."""
        filled, rest = bar(value, width)
        return self.add(filled, style).add(rest, track)

    def to(self, column: int) -> Line:
        """Blanks up to `column`; nothing when the line is there already."""
        if self.width < column:
            self.add(" " * (column - self.width))
        return self

    def indent(self, cells: int) -> Line:
        """Blanks in front of what is there."""
        self._segments.insert(0, Segment(" " * cells, self._base))
        self.width += cells
        return self

    def right(self, width: int, *pieces: tuple[str, Style]) -> Line:
        """`pieces` so that they end at `width`; left out when there is no room."""
        needed = sum(cell_len(text) for text, _ in pieces)
        if self.width + needed <= width:
            self.to(width - needed)
            for text, style in pieces:
                self.add(text, style)
        return self

    def strip(self, width: int) -> Strip:
        """Cropped or padded to exactly `width` cells."""
        return Strip(self._segments, self.width).adjust_cell_length(width, self._base)
