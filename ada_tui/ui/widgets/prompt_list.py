"""The list of prompts: one row per stored group, the newest on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType
from textual.strip import Strip

from ada_tui.picks import Pick
from ada_tui.ranking import Ranking
from ada_tui.store import GroupEntry
from ada_tui.ui import actions
from ada_tui.ui.draw import Line
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import Palette
from ada_tui.ui.widgets.rows import Rows

SOURCES = {"train": "·", "sample": "s", "probe": "s", "eval": "e"}


class PromptList(Rows):
    """Row: cursor, source (★ picked, ≈ a tie), prompt, mean total, ◆ another winner or = flat (all totals equal)."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("prompts")]

    def __init__(
        self, ranking: Callable[[], Ranking | None], pick_of: Callable[[GroupEntry], Pick | None], *, id: str
    ) -> None:
        super().__init__(id=id)
        self._ranking = ranking
        self._pick_of = pick_of
        self._entries: list[GroupEntry] = []

    @property
    def count(self) -> int:
        return len(self._entries)

    @property
    def entry(self) -> GroupEntry | None:
        """The group under the cursor."""
        return self._entries[self.cursor] if self._entries else None

    def show(self, entries: list[GroupEntry]) -> None:
        """Take `entries` (newest first). The cursor stays on its group; a new list starts at the top."""
        current = self.entry
        self._entries = entries
        place = next((n for n, e in enumerate(entries) if current is not None and e.id == current.id), 0)
        at_top = current is None or self.scroll_offset.y == 0
        self.rows_changed()
        if place != self.cursor:
            self.cursor = place
        elif current is not self.entry:
            self.post_message(self.Moved(self, self.cursor))
        if at_top:
            self.show_cursor()

    def select(self, group_id: str) -> None:
        """Put the cursor on a group."""
        self.cursor = next((n for n, e in enumerate(self._entries) if e.id == group_id), self.cursor)

    def draw_row(self, index: int, width: int, *, at_cursor: bool, colours: Palette) -> Strip:
        entry, ranking = self._entries[index], self._ranking()
        base = (colours.lifted if at_cursor else colours.paper) + colours.ink
        line = Line(base)
        line.add("▌" if at_cursor else " ", colours.accent if self.has_focus else colours.muted)
        pick = self._pick_of(entry)
        if pick is not None and (pick.decided or pick.tie):
            line.add("★ " if pick.decided else "≈ ", colours.accent)
        else:
            line.add(SOURCES.get(entry.source, "·") + " ", colours.muted)
        room = max(4, width - 11)
        if ranking is None or not entry.raws:
            return line.add(one_line(entry.prompt, room), colours.muted).strip(width)
        ranked = ranking.now(entry)
        line.add(one_line(entry.prompt, room), colours.muted if ranked.dead else None)
        mark = ("=", colours.muted) if ranked.dead else (" ", colours.muted)
        if ranking.winner_changed(entry):
            mark = ("◆", colours.accent)
        return line.right(width, (f"{ranked.mean:5.2f} ", colours.muted), mark, (" ", base)).strip(width)
