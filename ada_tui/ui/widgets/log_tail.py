"""The last lines of worker.log: what the worker's libraries print, kept away from the terminal itself."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from ada_tui.ui.draw import Line
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import palette


class LogTail(Widget):
    """As many of the newest lines as fit."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = " Log l "
        self._lines: list[str] = []

    def show(self, lines: list[str]) -> None:
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height, colours = self.size.width, self.size.height, palette(self.app.current_theme)
        line, kept = Line(colours.paper + colours.muted), self._lines[-height:]
        if y < len(kept):
            line.add(" ").add(one_line(kept[y], max(1, width - 2)))
        elif y == 0:
            line.add(" The worker has printed nothing.")
        return line.strip(width)
