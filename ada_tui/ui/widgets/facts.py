"""A table of facts about a job: label, value; headings between them. Used on the train and the export page."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from ada_tui.ui.draw import Line
from ada_tui.ui.text import one_line, reveal, wrap
from ada_tui.ui.theme import Palette
from ada_tui.ui.widgets.lines import Lines


@dataclass(frozen=True, slots=True)
class Fact:
    """`tone` is "", "good", "bad", "muted" or "heading"."""

    label: str
    value: str = ""
    tone: str = ""


class Facts(Lines, can_focus=False):
    """Lines of facts, values wrapped under each other."""

    LABEL = 11

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._facts: list[Fact] = []

    def show(self, facts: list[Fact]) -> None:
        if facts != self._facts:
            self._facts = facts
            self.lay_out_again()

    def lay_out(self, width: int, colours: Palette) -> list[Strip]:
        base = colours.paper + colours.ink
        tones = {"good": colours.good, "bad": colours.bad, "muted": colours.muted}
        out: list[Strip] = []
        for fact in self._facts:
            if fact.tone == "heading":
                line = Line(base).add(f" {one_line(fact.label, width - 1)}", colours.muted + colours.bold)
                out.append(line.strip(width))
                continue
            shown = reveal(fact.value.replace("\n", " "))
            parts = wrap(shown, max(6, width - self.LABEL - 3))
            for number, (start, end) in enumerate(parts):
                label = one_line(fact.label, self.LABEL) if number == 0 else ""
                line = Line(base).add(f" {label}", colours.muted).to(self.LABEL + 2)
                out.append(line.add(shown.text[start:end], tones.get(fact.tone)).strip(width))
        return out
