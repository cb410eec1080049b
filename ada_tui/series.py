"""A curve that is being measured: points in a ring buffer, and a picture of them with few enough points to draw.

Not here: what is measured (`store.py`) and drawing (`ui/`). Standard library only; anybody may import it.
"""

from __future__ import annotations

import math
from collections import deque

CAPACITY = 20_000
"""Points kept per curve; older ones fall out."""

Point = tuple[float, float]


class Series:
    """Points (x, y) with rising x. A y of NaN is a gap: the value was not finite or not known there."""

    __slots__ = ("points",)

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.points: deque[Point] = deque(maxlen=capacity)

    def append(self, x: float, y: float | None) -> None:
        """Add a measurement; None, NaN and infinities leave a gap."""
        self.points.append((x, y if y is not None and math.isfinite(y) else math.nan))

    def cut(self, after: float) -> None:
        """Forget every point beyond x = `after`: a resumed run measures them anew."""
        while self.points and self.points[-1][0] > after:
            self.points.pop()

    @property
    def last(self) -> float | None:
        """The newest y that is a number, or None."""
        return next((y for _, y in reversed(self.points) if not math.isnan(y)), None)

    def segments(self, points: int) -> list[list[Point]]:
        """The curve as lines between gaps, at most about `points` points in all.

        Every bucket of neighbouring points keeps its lowest and its highest, so that no peak disappears.

        >>> series = Series()
        >>> for x, y in enumerate([1.0, 2.0, None, 3.0]):
        ...     series.append(x, y)
        >>> series.segments(100)
        [[(0, 1.0), (1, 2.0)], [(3, 3.0)]]
        """
        lines: list[list[Point]] = []
        line: list[Point] = []
        for point in self.points:
            if math.isnan(point[1]):
                if line:
                    lines.append(line)
                line = []
            else:
                line.append(point)
        if line:
            lines.append(line)
        known = sum(len(part) for part in lines)
        if known <= points:
            return lines
        width = math.ceil(2 * known / points)
        return [_thin(part, width) for part in lines]


def _thin(line: list[Point], width: int) -> list[Point]:
    """The lowest and the highest point of every `width` points, in order of x; the very last point always stays."""
    out: list[Point] = []
    for start in range(0, len(line), width):
        bucket = line[start : start + width]
        low = min(bucket, key=lambda point: point[1])
        high = max(bucket, key=lambda point: point[1])
        out += sorted({low, high})
    if out[-1] != line[-1]:
        out.append(line[-1])
    return out
