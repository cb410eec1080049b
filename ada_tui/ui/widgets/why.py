"""Why the focused completion got its scores: every reason of every rule, the quoted place beside it."""

from __future__ import annotations

from textual.strip import Strip

from ada_tui.ui.draw import Line, signed
from ada_tui.ui.text import crop, one_line, reveal, wrap
from ada_tui.ui.theme import Palette
from ada_tui.ui.widgets.card import NAME
from ada_tui.ui.widgets.lines import Lines
from rewards.types import Card


class Why(Lines, can_focus=False):
    """One line per reason (wrapped). Empty while nothing is focused."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = " Why "
        self._card: Card | None = None

    def show(self, card: Card | None) -> None:
        self._card = card
        self.lay_out_again()

    def lay_out(self, width: int, colours: Palette) -> list[Strip]:
        return reasons(self._card, width, colours) if self._card and width else []

    def lay_out_again(self) -> None:
        super().lay_out_again()
        self.scroll_to(y=0, animate=False)


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
