"""The stages of a job one below the other: done, going on with a bar, how long each took."""

from __future__ import annotations

import time

from textual.strip import Strip
from textual.widget import Widget

from ada_tui.store import Stage
from ada_tui.ui.draw import Line, duration
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import palette


class Stages(Widget):
    """The newest stages that fit. The last one is going on unless the job has ended."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = " Stages "
        self._stages: list[Stage] = []
        self._status = ""

    def show(self, stages: list[Stage], status: str) -> None:
        self._stages, self._status = stages, status
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height, colours = self.size.width, self.size.height, palette(self.app.current_theme)
        kept = self._stages[-height:]
        line = Line(colours.paper + colours.ink)
        if y >= len(kept):
            return line.strip(width)
        stage = kept[y]
        going = stage is self._stages[-1] and stage.ended is None and self._status in ("running", "paused")
        broken = stage is self._stages[-1] and self._status in ("failed", "dead")
        glyph, style = ("✗", colours.bad) if broken else ("▶", colours.accent) if going else ("✓", colours.good)
        line.add(f" {glyph} ", style).add(f"{one_line(stage.name, 14):14} ")
        if going and stage.fraction is not None:
            line.bar(stage.fraction, 12, colours.accent, colours.faint).add(f" {stage.fraction:4.0%} ", colours.muted)
        if stage.detail and width - line.width > 16:
            line.add(one_line(stage.detail, width - line.width - 9), colours.muted)
        seconds = (stage.ended or time.time()) - stage.started
        if going or stage.ended is not None:
            line.right(width, (f"{duration(seconds)} ", colours.muted))
        return line.strip(width)
