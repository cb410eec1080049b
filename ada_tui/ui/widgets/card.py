"""One completion as a card: place, total, text with its marks, one bar per reward. Draws strips; it is no widget.

`Cards` lays cards out; the large view draws the same text. A card's background, not a border, sets it off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ada_tui.ui.draw import Line, column, moved, signed
from ada_tui.ui.text import crop, reveal, wrap
from ada_tui.ui.theme import Palette
from rewards.types import RawScores, Span

NAME = 11
"""Cells of a reward's name; longer names of one's own are cut."""


@dataclass(frozen=True, slots=True)
class CardView:
    """Everything that one card shows."""

    index: int
    """Place in the stored group."""
    position: int
    """1 = first card; the digit that picks it."""
    best: bool
    worst: bool
    total: float
    moved: int
    advantage: float
    over_batch: bool
    raw: RawScores
    names: tuple[str, ...]
    muted: frozenset[str]
    """Rewards of weight 0."""
    text: str
    words: int
    tokens: int
    truncated: bool
    verdict: str = ""
    """"★" the person's pick, "✗" rejected."""
    spans: tuple[Span, ...] = ()
    """Matched places; only the focused card has them."""

    @property
    def glyph(self) -> str:
        return "●" if self.best else "○" if self.worst else " "

    @property
    def fixed(self) -> int:
        """Lines that are no text: heading, blank, one per reward, guard and substance, figures."""
        return 4 + len(self.names)


def draw_card(view: CardView, width: int, height: int, *, chosen: bool, focused: bool, colours: Palette) -> list[Strip]:
    """A card of exactly `width` x `height` cells. `chosen`: it is the one explained; `focused`: keys go to it."""
    base = (colours.lifted if chosen else colours.card) + colours.ink
    edge = Segment("▌" if chosen else " ", base + (colours.accent if focused else colours.muted))
    body = max(1, height - view.fixed)
    inner = width - 2
    lines = [_heading(view, base, inner, colours)]
    lines += text_lines(view.text, view.spans, inner, body, base, colours)
    lines += [Line(base)] * (height - len(lines) - (view.fixed - 2))
    lines += [_reward(view, name, base, inner, colours) for name in view.names]
    lines += [_guard(view, base, inner, colours), _figures(view, base, inner, colours)]
    return [_framed(line.strip(inner), edge, base) for line in lines[:height]]


def draw_row_of_card(view: CardView, width: int, *, colours: Palette) -> list[Strip]:
    """A card that is folded away: two lines."""
    base = colours.card + colours.ink
    inner = width - 2
    heading = _heading(view, base, inner, colours, columns=True)
    (first,) = text_lines(view.text.replace("\n", " "), (), inner, 1, base, colours)
    return [_framed(line.strip(inner), Segment(" ", base), base) for line in (heading, first)]


def _framed(strip: Strip, edge: Segment, base: Style) -> Strip:
    return Strip([edge, *strip, Segment(" ", base)], strip.cell_length + 2)


def height_of(view: CardView, width: int) -> int:
    """Lines that a card of `width` cells needs to show all of its text."""
    return view.fixed + len(wrap(reveal(view.text), width - 2))


def _heading(view: CardView, base: Style, width: int, colours: Palette, *, columns: bool = False) -> Line:
    line = Line(base)
    line.add(f"{view.glyph} ", colours.good if view.best else colours.bad)
    line.add(f"{view.position} ", colours.muted)
    line.add(f"{view.total:5.2f} ", colours.bold)
    line.add(f"{moved(view.moved):3}", colours.good if view.moved > 0 else colours.bad)
    if columns:
        line.add(" ")
        for name in view.names:
            score = view.raw.rewards.get(name)
            line.add(column(score), colours.muted if score is None or name in view.muted else _tone(score, colours))
        line.add(f" {view.words} words", colours.muted)
    right = [("⊘ gated", colours.bad)] if view.raw.gated else []
    if view.verdict:
        right.append((f" {view.verdict}", colours.accent if view.verdict == "★" else colours.bad))
    if view.truncated:
        right.append((" ✂", colours.bad))
    return line.right(width, *right)


def text_lines(
    text: str, spans: Sequence[Span], width: int, height: int | None, base: Style, colours: Palette
) -> list[Line]:
    """`text` wrapped to `width`, its spans marked; an ellipsis ends it when `height` lines are not enough."""
    shown = reveal(text)
    wrapped = wrap(shown, width)
    kept = wrapped if height is None else wrapped[:height]
    cut = len(kept) < len(wrapped)
    marks = sorted((*shown.place(span.start, span.end), span.delta) for span in spans)
    lines = []
    for number, (start, end) in enumerate(kept):
        line = Line(base)
        last = cut and number == len(kept) - 1
        if last and not marks:
            lines.append(line.add(crop(shown.text[start:end], width, more=True)))
            continue
        if last:
            end = start + len(crop(shown.text[start:end], width, more=True)) - 1
        position = start
        for mark_start, mark_end, delta in marks:
            if mark_end <= position or mark_start >= end:
                continue
            line.add(shown.text[position : max(position, mark_start)])
            position = max(position, mark_start)
            stop = min(end, mark_end)
            line.add(shown.text[position:stop], colours.marked_good if delta > 0 else colours.marked_bad)
            position = stop
        line.add(shown.text[position:end])
        lines.append(line.add("…", colours.muted) if last else line)
    if not text.strip():
        lines = [Line(base).add("(empty)", colours.muted)]
    return lines


def _tone(score: float, colours: Palette) -> Style:
    return colours.good if score >= 0.5 else colours.bad


def _reward(view: CardView, name: str, base: Style, width: int, colours: Palette) -> Line:
    score, silent = view.raw.rewards.get(name), name in view.muted
    line = Line(base).add(f"{crop(name, NAME):{NAME}} ", colours.muted)
    if score is None:
        return line.add("  –  ", colours.muted).add("no opinion" if width >= line.width + 15 else "", colours.muted)
    line.add(f"{score:4.2f} ", colours.muted if silent else None)
    room = max(3, min(width - line.width, 24))
    return line.bar(score, room, colours.muted if silent else _tone(score, colours), colours.faint)


def _guard(view: CardView, base: Style, width: int, colours: Palette) -> Line:
    line = (
        Line(base).add("guard ", colours.muted).add(signed(view.raw.guard), colours.bad if view.raw.guard < 0 else None)
    )
    substance = view.raw.substance
    line.add("  subst ", colours.muted)
    if substance is None:
        return line.add("  –", colours.muted)
    return line.add(f"{substance:4.2f}", colours.bad if substance < 0.5 else None)


def _figures(view: CardView, base: Style, width: int, colours: Palette) -> Line:
    line = Line(base).add("adv ", colours.muted)
    line.add(
        signed(view.advantage), colours.good if view.advantage > 0 else colours.bad if view.advantage < 0 else None
    )
    line.add(" /batch" if view.over_batch else " /group", colours.muted)
    return line.right(width, (f"{view.words}w {view.tokens}t", colours.muted))
