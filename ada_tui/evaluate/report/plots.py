"""Plots as inline SVG, written by hand: no script, no font, no outside link. Colours come from the page's CSS classes.

Never colour alone: every series has its own mark and a label beside it. Text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ada_tui.text import visible

WIDTH = 740
LEFT, RIGHT, TOP, ROW = 150, 190, 30, 26
"""Margins and the height of a row, in pixels."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One row of an interval plot."""

    label: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """Points joined by a line, in the order given; each point has its own label ("" = none)."""

    css: str
    """Class of the line and its marks: "a" (circles) or "b" (squares)."""
    points: Sequence[tuple[float, float, str]]


def intervals(title: str, rows: Sequence[Interval]) -> str:
    """Means with their intervals and a line at 0, one row each."""
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    ticks = ticks_of(low, high)
    scale = _scale(ticks[0], ticks[-1], LEFT, WIDTH - RIGHT)
    height = TOP + ROW * len(rows) + 30
    parts = _axis_x(ticks, scale, height - 24)
    parts.append(f'<line class="zero" x1="{scale(0):.1f}" x2="{scale(0):.1f}" y1="{TOP - 8}" y2="{height - 24}"/>')
    for index, row in enumerate(rows):
        y = TOP + ROW * index + ROW / 2
        css = "a" if row.low > 0 else "b" if row.high < 0 else "none"
        parts += [
            _text(LEFT - 12, y + 4, row.label, "end"),
            f'<line class="{css}" x1="{scale(row.low):.1f}" x2="{scale(row.high):.1f}" y1="{y}" y2="{y}"/>',
            _mark(css, scale(row.mean), y),
            _text(WIDTH - RIGHT + 12, y + 4, f"{row.mean:+.3f} [{row.low:+.3f}, {row.high:+.3f}]", "start", "small"),
        ]
    return _svg(title, height, parts)


def before_after(title: str, names: tuple[str, str], rows: Sequence[tuple[str, float, float]]) -> str:
    """Two values per row joined by a line: circle before, square after."""
    ticks = ticks_of(0.0, max(max(before, after) for _, before, after in rows))
    scale = _scale(ticks[0], ticks[-1], LEFT, WIDTH - RIGHT)
    height = TOP + ROW * len(rows) + 30
    parts = _axis_x(ticks, scale, height - 24)
    parts += [_mark("none", LEFT, 12), _text(LEFT + 10, 16, names[0], "start", "small")]
    parts += [_mark("a", LEFT + 130, 12, square=True), _text(LEFT + 140, 16, names[1], "start", "small")]
    for index, (label, before, after) in enumerate(rows):
        y = TOP + ROW * index + ROW / 2
        parts += [
            _text(LEFT - 12, y + 4, label, "end"),
            f'<line class="none" x1="{scale(before):.1f}" x2="{scale(after):.1f}" y1="{y}" y2="{y}"/>',
            _mark("none", scale(before), y),
            _mark("a", scale(after), y, square=True),
            _text(WIDTH - RIGHT + 12, y + 4, f"{before:.1f} → {after:.1f}", "start", "small"),
        ]
    return _svg(title, height, parts)


def plane(title: str, x_name: str, y_name: str, series: Sequence[Series]) -> str:
    """Points over two axes; the series' points are joined in their order."""
    xs = [x for line in series for x, _, _ in line.points]
    ys = [y for line in series for _, y, _ in line.points]
    x_ticks, y_ticks = ticks_of(min(0.0, *xs), max(xs)), ticks_of(min(ys), max(ys))
    height, left = 360, 70
    x_scale = _scale(x_ticks[0], x_ticks[-1], left, WIDTH - 90)
    y_scale = _scale(y_ticks[0], y_ticks[-1], height - 50, 20)
    parts = _axis_x(x_ticks, x_scale, height - 46)
    for tick in y_ticks:
        y = y_scale(tick)
        parts += [
            f'<line class="grid" x1="{left}" x2="{WIDTH - 90}" y1="{y:.1f}" y2="{y:.1f}"/>',
            _text(left - 8, y + 4, _number(tick), "end", "small"),
        ]
    parts += [
        _text((left + WIDTH - 90) / 2, height - 8, x_name, "middle", "small"),
        _text(left, 12, y_name, "start", "small"),
    ]
    for line in series:
        joined = " ".join(f"{x_scale(x):.1f},{y_scale(y):.1f}" for x, y, _ in line.points)
        if len(line.points) > 1 and line.css != "none":
            parts.append(f'<polyline class="{line.css}" points="{joined}"/>')
        for x, y, label in line.points:
            parts.append(_mark(line.css, x_scale(x), y_scale(y), square=line.css == "b"))
            parts.append(_text(x_scale(x) + 8, y_scale(y) + 4, label, "start", "small"))
    return _svg(title, height, parts)


def ticks_of(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`.

    >>> ticks_of(0, 1.1)
    [0.0, 0.5, 1.0, 1.5]
    """
    span = (high - low) or max(abs(high), 1e-3)
    step = 10 ** math.floor(math.log10(span / about))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= about)
    first, last = math.floor(low / step + 1e-9), max(math.ceil(high / step - 1e-9), math.floor(low / step + 1e-9) + 1)
    return [round(number * step, 10) for number in range(first, last + 1)]


class _scale:
    """Linear: data -> pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._start = low, start
        self._factor = (end - start) / (high - low)

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) * self._factor


def _axis_x(ticks: Sequence[float], scale: _scale, y: float) -> list[str]:
    parts = []
    for tick in ticks:
        x = scale(tick)
        parts += [
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{y}"/>',
            _text(x, y + 16, _number(tick), "middle", "small"),
        ]
    return parts


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") or "0"


def _mark(css: str, x: float, y: float, *, square: bool = False) -> str:
    if square:
        return f'<rect class="{css}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def _text(x: float, y: float, text: str, anchor: str, css: str = "label") -> str:
    shown = escape(visible(text))
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>' if shown else ""


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    body = "\n".join(part for part in parts if part)
    name = escape(visible(title))
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}"><title>{name}</title>\n{body}\n</svg>'
