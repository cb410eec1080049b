"""A run's memory over time: does it creep towards the end of the device, does it spill to host memory. No I/O.

Under WSL2 the driver pages to host memory instead of failing, and steps become several times slower: nothing is raised,
so it has to be noticed. Anybody may import it; the worker turns what is found into alarms.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

MIN_POINTS = 8
"""Fewer readings tell no slope."""
WINDOW = 120
"""Readings that are looked at: an old rise is over."""
SPILL_MARGIN = 0.02
"""Reserved to within this share of the device: what comes next goes to host memory."""
SLOW = 3.0
"""A step this many times the median is suspicious."""
IDLE = 50.0
"""Utilisation in percent under which a slow step is paging rather than computing."""


def full_at_step(readings: Sequence[tuple[int, int]], limit: int) -> int | None:
    """The step at which memory reaches `limit` if it goes on like this; None when it does not creep.

    Args:
        readings: (step, peak or reserved bytes), one per step, oldest first.
        limit: bytes that can be used.

    The slope is the median over all pairs (Theil-Sen), so that one large batch is no creep, and it must also show
    between the medians of the first and the last third.

    >>> full_at_step([(step, 10_000 + 10 * step) for step in range(40)], 16_400)
    640
    """
    readings = readings[-WINDOW:]
    if len(readings) < MIN_POINTS:
        return None
    slopes = [
        (b - a) / (t - s) for i, (s, a) in enumerate(readings) for t, b in readings[i + 1 :] if t > s
    ]  # fmt: skip
    third = len(readings) // 3
    early = statistics.median(size for _, size in readings[:third])
    late = statistics.median(size for _, size in readings[-third:])
    slope = statistics.median(slopes) if slopes else 0.0
    if slope <= 0 or late - early < 0.01 * limit:
        return None
    step, size = readings[-1]
    return max(step, step + round((limit - size) / slope))


def spills(reserved: int | None, total: int | None, seconds: Sequence[float], util: float | None) -> str | None:
    """Why this run seems to page to host memory, in words; None when nothing points to it.

    Args:
        reserved, total: bytes that torch reserved and the device has; None = not known.
        seconds: step times so far, oldest first.
        util: utilisation of the device in percent during the last step; None = not known.
    """
    if reserved and total and reserved > total:
        return "more is reserved than the device has: the driver pages to host memory"
    slow = len(seconds) >= 4 and seconds[-1] > SLOW * statistics.median(seconds[:-1])
    nearly_full = bool(reserved and total and reserved > (1 - SPILL_MARGIN) * total)
    if slow and nearly_full:
        return f"the last step took {seconds[-1]:.0f} s and the device is full: the driver may page to host memory"
    if slow and util is not None and util < IDLE:
        return f"the last step took {seconds[-1]:.0f} s at {util:.0f} % utilisation: paging or another process"
    return None
