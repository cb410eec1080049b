"""One chart: a title with the newest figure, the curve below it. Drawn by textual-plot, thinned to what it can show.

Importing this file imports numpy (through textual-plot), so the train and export pages import it when they open.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual_plot import HiResMode, NumericAxisFormatter, PlotWidget

from ada_tui.series import Point
from ada_tui.store import RunStore
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import palette

REDRAW = 0.2
"""Seconds between two drawings of one chart."""

POINTS = 400
"""Points drawn per curve at most."""


LABELS = {
    "dead": "flat", "truncated": "cut",
    "memory/rss": "process", "memory/reserved": "torch", "memory/device_used": "device",
}  # fmt: skip
"""What a curve is called where a chart has several."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What one chart shows: curves of the store by name."""

    title: str
    names: tuple[str, ...]
    digits: int = 2
    scale: float = 1.0
    """Figures are divided by it: bytes become GiB."""
    low: float | None = None
    high: float | None = None
    """Fixed ends of the y axis; None = where the curve is."""
    marks: bool = True
    """Show where the weights changed (x is the step)."""


class Curve(Vertical):
    """A chart of the open run."""

    def __init__(self, chart: Chart, store: RunStore) -> None:
        super().__init__(classes="curve")
        self.chart = chart
        self._drawn_at = 0.0
        self._waiting = False
        self._store = store

    def compose(self) -> ComposeResult:
        yield Static("", classes="curve-title", markup=False)
        plot = PlotWidget(allow_pan_and_zoom=False)
        plot.can_focus = False
        yield plot

    def on_mount(self) -> None:
        plot = self.query_one(PlotWidget)
        plot.margin_top, plot.margin_bottom, plot.margin_left = 0, 1, 7

    def shows(self, store: RunStore) -> bool:
        """Whether the chart is of this run."""
        return self._store is store

    def show(self, store: RunStore) -> None:
        """Draw the newest state, now or as soon as the last drawing is old enough."""
        self._store = store
        if self._waiting or not self.display:
            return
        wait = REDRAW - (time.monotonic() - self._drawn_at)
        if wait <= 0:
            self._draw()
        else:
            self._waiting = True
            self.set_timer(wait, self._draw)

    def _draw(self) -> None:
        self._waiting = False
        store = self._store
        if not self.is_attached or not self.size.width:
            return
        self._drawn_at = time.monotonic()
        plot, chart, colours = self.query_one(PlotWidget), self.chart, palette(self.app.current_theme)
        plot.clear()
        points = min(POINTS, max(40, 2 * self.size.width))
        drawn: list[Point] = []
        styles = [str(style.color.name) for style in (colours.good, colours.accent, colours.bad) if style.color]
        figures: list[tuple[str, str]] = []
        for name in chart.names:
            series = store.curves.get(name)
            if series is None:
                continue
            style = styles[len(figures) % len(styles)]
            for line in series.segments(points):
                scaled = [(x, y / chart.scale) for x, y in line]
                _plot(plot, scaled, style)
                drawn += scaled
            last = series.last
            label = LABELS.get(name, "")
            figure = f"{last / chart.scale:.{chart.digits}f}" if last is not None else "–"
            figures.append((f"  {label} {figure}" if label else f"  {figure}", style))
        self._set_axes(plot, drawn)
        if chart.marks:
            for applied in store.regimes[-12:]:
                plot.add_v_line(applied.step, str(colours.muted.color.name if colours.muted.color else "white"))
        title = one_line(f" {chart.title}", max(1, self.size.width))
        self.query_one(Static).update(Content.assemble(title, *figures))

    def _set_axes(self, plot: PlotWidget, drawn: list[Point]) -> None:
        """Ends and few ticks, so that labels never run into each other."""
        if not drawn:
            return
        xs, ys = [x for x, _ in drawn], [y for _, y in drawn]
        low, high = min(ys), max(ys)
        air = max(0.06 * (high - low), 0.001 * max(abs(low), abs(high)), 1e-9)
        low = self.chart.low if self.chart.low is not None else low - air
        high = self.chart.high if self.chart.high is not None else high + air
        left, right = min(xs), max(max(xs), min(xs) + 1)
        plot.set_xlimits(left, right)
        plot.set_ylimits(low, high)
        make = NumericAxisFormatter().get_ticks
        plot.set_xticks(make(left, right, max(2, self.size.width // 10)))
        plot.set_yticks(make(low, high, max(2, self.size.height // 4)))

    def on_resize(self) -> None:
        self._draw()


def _plot(plot: PlotWidget, line: list[Point], style: str) -> None:
    xs, ys = [x for x, _ in line], [y for _, y in line]
    if len(line) == 1:
        plot.scatter(xs, ys, marker="•", marker_style=style)
    else:
        plot.plot(xs, ys, line_style=style, hires_mode=HiResMode.QUADRANT)
