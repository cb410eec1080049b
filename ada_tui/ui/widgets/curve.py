"""One chart: a title with the newest figure, the curve below it. Drawn by textual-plot, thinned to what it can show.

Importing this file imports numpy (through textual-plot), so the train and export pages import it when they open.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual_plot import HiResMode, PlotWidget

from ada_tui.series import Series
from ada_tui.store import RunStore
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import palette

REDRAW = 0.2
"""Seconds between two drawings of one chart."""

POINTS = 400
"""Points drawn per curve at most."""


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

    def __init__(self, chart: Chart) -> None:
        super().__init__(classes="curve")
        self.chart = chart
        self._drawn_at = 0.0
        self._waiting = False
        self._store: RunStore | None = None

    def compose(self) -> ComposeResult:
        yield Static("", classes="curve-title", markup=False)
        plot = PlotWidget(allow_pan_and_zoom=False)
        plot.can_focus = False
        yield plot

    def on_mount(self) -> None:
        plot = self.query_one(PlotWidget)
        plot.margin_top, plot.margin_bottom, plot.margin_left = 0, 1, 7

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
        if store is None or not self.is_attached:
            return
        self._drawn_at = time.monotonic()
        plot, chart, colours = self.query_one(PlotWidget), self.chart, palette(self.app.current_theme)
        plot.clear()
        plot.set_ylimits(chart.low, chart.high)
        points = min(POINTS, max(40, 2 * self.size.width))
        styles = [str(style.color.name) for style in (colours.good, colours.accent, colours.bad) if style.color]
        figures = []
        for number, name in enumerate(chart.names):
            series = store.curves.get(name)
            if series is None:
                continue
            style = styles[number % len(styles)]
            _plot(plot, series, style, points, chart.scale)
            last = series.last
            if last is not None:
                label = f"{name.rpartition('/')[2]} " if len(chart.names) > 1 else ""
                figures.append(f"{label}{last / chart.scale:.{chart.digits}f}")
        if chart.marks:
            for applied in store.regimes[-12:]:
                plot.add_v_line(applied.step, str(colours.muted.color.name if colours.muted.color else "white"))
        title = f" {chart.title}  {'  '.join(figures)}"
        self.query_one(Static).update(one_line(title, max(1, self.size.width)))

    def on_resize(self) -> None:
        if self._store is not None:
            self._draw()


def _plot(plot: PlotWidget, series: Series, style: str, points: int, scale: float) -> None:
    for line in series.segments(points):
        xs, ys = [x for x, _ in line], [y / scale for _, y in line]
        if len(line) == 1:
            plot.scatter(xs, ys, marker="•", marker_style=style)
        else:
            plot.plot(xs, ys, line_style=style, hires_mode=HiResMode.QUADRANT)
