"""Text that is laid out once per width and theme and then scrolled line by line.

Subclasses say what the lines are; help, facts and reasons are made of it. Not for rows one can choose: `rows.py`.
"""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ada_tui.ui.theme import Palette, palette


class Lines(ScrollView):
    """A scrolled page. Subclasses give `lay_out` and call `lay_out_again` when what they show has changed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []

    def lay_out(self, width: int, colours: Palette) -> list[Strip]:
        """Every line, `width` cells wide."""
        raise NotImplementedError

    def lay_out_again(self) -> None:
        width = self.size.width
        self._lines = self.lay_out(width, palette(self.app.current_theme))
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def on_resize(self) -> None:
        self.lay_out_again()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self.lay_out_again()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        if index < len(self._lines):
            return self._lines[index]
        return Strip.blank(self.size.width, palette(self.app.current_theme).paper)
