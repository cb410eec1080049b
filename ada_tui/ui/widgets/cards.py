"""The completions of one prompt as cards: side by side, as many as fit; unfolded one at a time where it is narrow."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ada_tui.ui import actions
from ada_tui.ui.theme import palette
from ada_tui.ui.widgets.card import CardView, draw_card, draw_row_of_card, height_of
from rewards.types import Span

NARROWEST = 27
"""Cells below which a card's bars say nothing any more."""

PLEASANT = 36
"""Cells that a card gets when there is room."""

STACKED = 80
"""Below this many cells cards are stacked, the focused one unfolded."""

TEXT = 3
"""Lines of text that a card shows at least."""


UNFOLDED = 9
"""Lines of text that an unfolded card of a stack shows at most; `enter` shows all."""


class Cards(ScrollView, can_focus=True):
    """All cards of the chosen group. Focus stays with its completion when the order changes."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("cards")]
    at: reactive[int] = reactive(0)
    """Position of the focused card."""

    class Focused(Message):
        """Another completion is the focused one."""

        def __init__(self, view: CardView | None) -> None:
            super().__init__()
            self.view = view

    class Judged(Message):
        """The person said something about a completion: `verdict` is best, reject, tie or comment."""

        def __init__(self, view: CardView, verdict: str) -> None:
            super().__init__()
            self.view = view
            self.verdict = verdict

    class Opened(Message):
        """The focused completion is wanted large."""

        def __init__(self, view: CardView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._views: list[CardView] = []
        self._regions: list[Region] = []
        self._drawn: dict[tuple[int, bool], list[Strip]] = {}
        self._columns = 1

    @property
    def focused_view(self) -> CardView | None:
        return self._views[self.at] if self._views else None

    def show(self, views: list[CardView], *, keep: bool) -> None:
        """Show other cards. `keep`: it is the same group, so stay with the focused completion."""
        current = self.focused_view
        self._views = views
        place = 0
        if keep and current is not None:
            place = next((n for n, view in enumerate(views) if view.index == current.index), 0)
        else:
            self.scroll_to(y=0, animate=False)
        self._arrange()
        if self.at == place:
            self.post_message(self.Focused(self.focused_view))
        self.at = place

    def mark(self, index: int, spans: tuple[Span, ...]) -> None:
        """Show the matched places of one completion; those of the others disappear."""
        self._views = [dataclasses.replace(v, spans=spans if v.index == index else ()) for v in self._views]
        self._drawn.clear()
        self.refresh()

    # -- layout

    def _arrange(self) -> None:
        """Give every card its region on the scrolled surface."""
        self._drawn.clear()
        width, height, count = self.size.width, self.size.height, len(self._views)
        if not count or not width:
            self._regions = []
            self.virtual_size = Size(width, 0)
            self.refresh()
            return
        if width < STACKED:
            self._stack(width)
        else:
            self._grid(width, height, count)
        self.virtual_size = Size(width, self._regions[-1].bottom)
        self.refresh()

    def _stack(self, width: int) -> None:
        self._columns, y, self._regions = 1, 0, []
        for position, view in enumerate(self._views):
            tall = 2
            if position == self.at:
                tall = max(view.fixed + TEXT, min(view.fixed + UNFOLDED, height_of(view, width)))
            self._regions.append(Region(0, y, width, tall))
            y += tall + 1

    def _grid(self, width: int, height: int, count: int) -> None:
        lowest = max(view.fixed for view in self._views) + TEXT
        columns = max(1, min(count, (width + 1) // (PLEASANT + 1)))
        if math.ceil(count / columns) * (lowest + 1) - 1 > height:  # they do not all fit: narrower cards, more of them
            columns = max(1, min(count, (width + 1) // (NARROWEST + 1)))
        rows = math.ceil(count / columns)
        columns = math.ceil(count / rows)
        seen = max(1, min(rows, (height + 1) // (lowest + 1)))
        wide = (width + 1) // columns - 1
        needed = max(height_of(view, wide) for view in self._views)
        tall = max(lowest, min(needed, (height + 1) // seen - 1))
        self._columns = columns
        self._regions = [
            Region((n % columns) * (wide + 1), (n // columns) * (tall + 1), wide, tall) for n in range(count)
        ]

    def on_resize(self) -> None:
        self._arrange()
        self._show_focused()

    def _show_focused(self) -> None:
        if self._regions and self.size.height:
            region, top = self._regions[self.at], self.scroll_offset.y
            if region.y < top:
                self.scroll_to(y=region.y, animate=False)
            elif region.bottom > top + self.size.height:
                self.scroll_to(y=max(0, min(region.y, region.bottom - self.size.height)), animate=False)

    # -- drawing

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.current_theme)
        width, line = self.size.width, y + self.scroll_offset.y
        parts: list[Strip] = []
        x = 0
        for position, region in enumerate(self._regions):
            if not region.y <= line < region.bottom:
                continue
            if region.x > x:
                parts.append(Strip.blank(region.x - x, colours.paper))
            parts.append(self._card(position, region)[line - region.y])
            x = region.right
        if x < width:
            parts.append(Strip.blank(width - x, colours.paper))
        return Strip.join(parts)

    def _card(self, position: int, region: Region) -> list[Strip]:
        focused = position == self.at
        key = (position, focused and self.has_focus)
        found = self._drawn.get(key)
        if found is None:
            view, colours = self._views[position], palette(self.app.current_theme)
            if region.height == 2:
                found = draw_row_of_card(view, region.width, colours=colours)
            else:
                found = draw_card(
                    view, region.width, region.height, chosen=focused, focused=self.has_focus, colours=colours
                )
            self._drawn[key] = found
        return found

    def notify_style_update(self) -> None:
        self._drawn.clear()
        super().notify_style_update()

    def on_focus(self) -> None:
        self._drawn.clear()
        self.refresh()

    def on_blur(self) -> None:
        self._drawn.clear()
        self.refresh()

    # -- moving

    def validate_at(self, value: int) -> int:
        return max(0, min(value, len(self._views) - 1))

    def watch_at(self, old: int, new: int) -> None:
        if old == new:
            return
        if self.size.width < STACKED:
            self._arrange()
        self._drawn.clear()
        self._show_focused()
        self.refresh()
        self.post_message(self.Focused(self.focused_view))

    def action_left(self) -> None:
        self.at -= 1

    def action_right(self) -> None:
        self.at += 1

    def action_up(self) -> None:
        self.at = self.at - self._columns if self.at >= self._columns else self.at

    def action_down(self) -> None:
        self.at += self._columns

    def action_detail(self) -> None:
        if self.focused_view is not None:
            self.post_message(self.Opened(self.focused_view))

    def action_pick(self, digit: str) -> None:
        position = int(digit) - 1
        if position < len(self._views):
            self.at = position
            self.post_message(self.Judged(self._views[position], "best"))

    def action_reject(self) -> None:
        self._judge("reject")

    def action_tie(self) -> None:
        self._judge("tie")

    def action_comment(self) -> None:
        self._judge("comment")

    def _judge(self, verdict: str) -> None:
        if self.focused_view is not None:
            self.post_message(self.Judged(self.focused_view, verdict))

    def action_copy(self) -> None:
        if self.focused_view is not None:
            self.app.copy_to_clipboard(self.focused_view.text)
            self.notify("Copied.", timeout=2, markup=False)

    def on_click(self, event: events.Click) -> None:
        x, y = event.x, event.y + self.scroll_offset.y
        for position, region in enumerate(self._regions):
            if region.contains(x, y):
                if position == self.at and event.chain == 2:
                    self.action_detail()
                self.at = position
