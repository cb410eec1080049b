"""Creep is told from noise, and spilling from a slow step."""

from __future__ import annotations

import random

import pytest

from ada_tui.planner import GIB
from ada_tui.planner.watch import full_at_step, spills

TOTAL = 24 * GIB


def test_creep_is_extrapolated() -> None:
    noise = random.Random(1)
    readings = [(step, 18 * GIB + step * 9_500_000 + noise.randrange(GIB // 10)) for step in range(60)]
    step = full_at_step(readings, TOTAL)
    assert step is not None
    assert step == pytest.approx(6 * GIB / 9_500_000, rel=0.1)


def test_noise_one_large_batch_and_a_first_rise_are_no_creep() -> None:
    noise = random.Random(2)
    steady = [(step, 18 * GIB + noise.randrange(GIB // 4)) for step in range(60)]
    assert full_at_step(steady, TOTAL) is None
    assert full_at_step([*steady[:30], (30, 23 * GIB), *steady[31:]], TOTAL) is None
    assert full_at_step([(0, 8 * GIB), *[(step, 18 * GIB) for step in range(1, 40)]], TOTAL) is None
    assert full_at_step([(step, 18 * GIB - step * GIB // 50) for step in range(40)], TOTAL) is None


def test_few_readings_tell_nothing() -> None:
    assert full_at_step([(step, step * GIB) for step in range(7)], TOTAL) is None
    assert full_at_step([(5, GIB)] * 20, TOTAL) is None


def test_a_device_that_is_full_already() -> None:
    readings = [(step, 20 * GIB + step * GIB // 4) for step in range(20)]
    assert full_at_step(readings, TOTAL) == 19


@pytest.mark.parametrize(
    ("reserved", "seconds", "util", "says"),
    [
        (25 * GIB, [], None, "more is reserved than the device has"),
        (TOTAL - GIB // 8, [5, 5, 5, 5, 40], 99.0, "the device is full"),
        (10 * GIB, [5, 5, 5, 5, 40], 12.0, "40 s at 12 % utilisation"),
    ],
)
def test_spilling_is_named(reserved: int, seconds: list[float], util: float | None, says: str) -> None:
    found = spills(reserved, TOTAL, seconds, util)
    assert found is not None
    assert says in found


@pytest.mark.parametrize(
    ("reserved", "total", "seconds", "util"),
    [
        (TOTAL - GIB // 8, TOTAL, [5, 5, 5, 5, 6], 99.0),
        (10 * GIB, TOTAL, [5, 5, 5, 5, 40], 99.0),
        (10 * GIB, TOTAL, [5, 5, 5, 5, 40], None),
        (10 * GIB, TOTAL, [5, 40], 3.0),
        (None, None, [], None),
    ],
)
def test_what_is_not_spilling(
    reserved: int | None, total: int | None, seconds: list[float], util: float | None
) -> None:
    assert spills(reserved, total, seconds, util) is None
