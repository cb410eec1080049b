"""What stands where there is nothing yet: why it is empty, and which key does what about it."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from ada_tui.ui.draw import Line
from ada_tui.ui.text import reveal, wrap
from ada_tui.ui.theme import palette


class Empty(Widget):
    """A heading and a few `(key, what it does)` lines in the middle of the space."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._heading = ""
        self._words = ""
        self._keys: list[tuple[str, str]] = []

    def say(self, heading: str, words: str, keys: list[tuple[str, str]]) -> None:
        self._heading, self._words, self._keys = heading, words, keys
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height, colours = self.size.width, self.size.height, palette(self.app.current_theme)
        measure = max(10, min(60, width - 4))
        shown = reveal(self._words)
        lines: list[list[tuple[str, Style]]] = [[(self._heading, colours.bold + colours.ink)], []]
        lines += [[(shown.text[a:b], colours.muted)] for a, b in wrap(shown, measure)]
        lines.append([])
        lines += [[(f"{key:>3}  ", colours.accent), (words, colours.ink)] for key, words in self._keys]
        top = max(0, (height - len(lines)) // 2 - 1)
        line = Line(colours.paper).to((width - measure) // 2)
        if 0 <= y - top < len(lines):
            for text, style in lines[y - top]:
                line.add(text, style)
        return line.strip(width)
