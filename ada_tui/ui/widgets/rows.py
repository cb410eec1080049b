"""A list of one-line rows of which only the visible ones are ever drawn, however many there are.

It owns the cursor and the scrolling and knows nothing of what a row means: `PromptList` and `RunList` draw them.
"""

from __future__ import annotations

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ada_tui.ui.theme import Palette, palette


class AtRow(Message):
    """Something happened at row `index` of `rows`."""

    def __init__(self, rows: Rows, index: int) -> None:
        super().__init__()
        self.rows = rows
        self.index = index

    @property
    def control(self) -> Rows:
        return self.rows


class Rows(ScrollView, can_focus=True):
    """A virtual list. Subclasses give `count` and `draw_row`, and carry the bindings."""

    cursor: reactive[int] = reactive(0)

    class Moved(AtRow):
        """The cursor stands on another row (or the same row shows another thing)."""

    class Chosen(AtRow):
        """Enter, or a click on the row under the cursor."""

    @property
    def count(self) -> int:
        raise NotImplementedError

    def draw_row(self, index: int, width: int, *, at_cursor: bool, colours: Palette) -> Strip:
        raise NotImplementedError

    @property
    def colours(self) -> Palette:
        return palette(self.app.current_theme)

    def rows_changed(self) -> None:
        """The rows, or their number, are different now."""
        self.virtual_size = Size(self.size.width, self.count)
        if self.cursor >= self.count:
            self.cursor = max(0, self.count - 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width, colours = self.size.width, self.colours
        if index >= self.count:
            return Strip.blank(width, self.rich_style)
        return self.draw_row(index, width, at_cursor=index == self.cursor, colours=colours)

    def validate_cursor(self, value: int) -> int:
        return max(0, min(value, self.count - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        if old != new:
            self.show_cursor()
            self.refresh()
            self.post_message(self.Moved(self, new))

    def show_cursor(self) -> None:
        """Scroll so that the cursor is seen."""
        top, height = self.scroll_offset.y, self.size.height
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def on_resize(self) -> None:
        self.rows_changed()
        self.show_cursor()

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if 0 <= index < self.count:
            again = index == self.cursor
            self.cursor = index
            if again:
                self.post_message(self.Chosen(self, index))

    def action_up(self) -> None:
        self.cursor -= 1

    def action_down(self) -> None:
        self.cursor += 1

    def action_page_up(self) -> None:
        self.cursor -= max(1, self.size.height - 1)

    def action_page_down(self) -> None:
        self.cursor += max(1, self.size.height - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = self.count - 1

    def action_choose(self) -> None:
        if self.count:
            self.post_message(self.Chosen(self, self.cursor))
