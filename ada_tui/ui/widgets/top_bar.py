"""The first line: the pages with their keys, and which run is open."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ada_tui.ui.draw import Line
from ada_tui.ui.session import Session
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import palette
from ada_tui.ui.widgets.status_line import GLYPHS

PAGES = (("review", "F2", "Review"), ("train", "F3", "Train"), ("export", "F4", "Export"), ("help", "F1", "Help"))


class TopBar(Widget):
    """Pages as tabs; the open one is lifted."""

    page: reactive[str] = reactive("review")

    class Pressed(Message):
        """A tab was clicked."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.session: Session | None = None
        self._ends: list[tuple[int, str]] = []

    def render_line(self, y: int) -> Strip:
        width, colours = self.size.width, palette(self.app.current_theme)
        line = Line(colours.paper + colours.ink).add(" ada ", colours.bold + colours.accent)
        self._ends = []
        for page, key, title in PAGES:
            here = page == self.page
            line.add(f" {key} ", colours.accent + colours.lifted if here else colours.muted)
            line.add(f"{title} ", colours.bold + colours.lifted if here else colours.muted)
            self._ends.append((line.width, page))
        if self.session is not None:
            status = self.session.status.name
            style = colours.bad if status in ("failed", "dead") else colours.good
            room = width - line.width - 16
            if room > 6:
                name = one_line(self.session.id, room)
                line.right(width, (f"{name} ", colours.ink), (f"{GLYPHS.get(status, '·')} {status} ", style))
        return line.strip(width)

    def on_click(self, event: events.Click) -> None:
        page = next((page for end, page in self._ends if event.x < end), None)
        if page is not None and event.x >= 5:
            self.post_message(self.Pressed(page))
