"""A table of facts about a job: label, value; headings between them. Used on the train and the export page."""

from __future__ import annotations

from dataclasses import dataclass

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ada_tui.ui.draw import Line
from ada_tui.ui.text import one_line, reveal, wrap
from ada_tui.ui.theme import palette


@dataclass(frozen=True, slots=True)
class Fact:
    """`tone` is "", "good", "bad", "muted" or "heading"."""

    label: str
    value: str = ""
    tone: str = ""


class Facts(ScrollView, can_focus=False):
    """Lines of facts, values wrapped under each other."""

    LABEL = 11

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._facts: list[Fact] = []
        self._lines: list[Strip] = []

    def show(self, facts: list[Fact]) -> None:
        if facts != self._facts:
            self._facts = facts
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        width, colours = self.size.width, palette(self.app.current_theme)
        base = colours.paper + colours.ink
        tones = {"good": colours.good, "bad": colours.bad, "muted": colours.muted}
        self._lines = []
        for fact in self._facts:
            if fact.tone == "heading":
                self._lines.append(
                    Line(base).add(f" {one_line(fact.label, width - 1)}", colours.muted + colours.bold).strip(width)
                )
                continue
            shown = reveal(fact.value.replace("\n", " "))
            parts = wrap(shown, max(6, width - self.LABEL - 3))
            for number, (start, end) in enumerate(parts):
                label = one_line(fact.label, self.LABEL) if number == 0 else ""
                line = Line(base).add(f" {label}", colours.muted).to(self.LABEL + 2)
                self._lines.append(line.add(shown.text[start:end], tones.get(fact.tone)).strip(width))
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        if index < len(self._lines):
            return self._lines[index]
        return Strip.blank(self.size.width, palette(self.app.current_theme).paper)
