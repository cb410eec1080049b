"""Why the focused completion got its scores: every reason of every rule, the quoted place beside it."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ada_tui.ui.draw import Line, signed
from ada_tui.ui.text import crop, one_line, reveal, wrap
from ada_tui.ui.theme import Palette, palette
from ada_tui.ui.widgets.card import NAME
from rewards.types import Card


class Why(ScrollView, can_focus=False):
    """One line per reason (wrapped). Empty while nothing is focused."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = " Why "
        self._card: Card | None = None
        self._lines: list[Strip] = []

    def show(self, card: Card | None) -> None:
        self._card = card
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        width, colours = self.size.width, palette(self.app.current_theme)
        self._lines = reasons(self._card, width, colours) if self._card and width else []
        self.virtual_size = Size(width, len(self._lines))
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        if index < len(self._lines):
            return self._lines[index]
        return Strip.blank(self.size.width, palette(self.app.current_theme).paper)


def reasons(card: Card, width: int, colours: Palette) -> list[Strip]:
    """Every reason as lines of `width` cells: rule, what it says; then the places it points at, with their cost."""
    base = colours.paper + colours.ink
    out: list[Strip] = []
    for name, result in card.results.items():
        label = f" {crop(name, NAME):{NAME}} "
        for why in result.why:
            shown = reveal(why)
            for number, (start, end) in enumerate(wrap(shown, max(10, width - len(label) - 1))):
                line = Line(base).add(label if number == 0 else " " * len(label), colours.muted)
                out.append(line.add(shown.text[start:end].replace("\n", "⏎")).strip(width))
        for span in result.spans:
            if span.delta or not result.why:
                line = Line(base).add(" " * len(label))
                line.add(signed(span.delta), colours.good if span.delta > 0 else colours.bad).add(" ")
                line.add(f"“{one_line(span.text, max(4, width - line.width - 16))}” ")
                out.append(line.add(one_line(span.category, 14), colours.muted).strip(width))
    if not out:
        out.append(Line(base).add(" Nothing to say: no rule took anything off.", colours.muted).strip(width))
    return out
