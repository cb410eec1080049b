"""Intervals, tests and power: known answers, degenerate inputs, and coverage on simulated sets."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from ada_tui.errors import BadInput
from ada_tui.evaluate import Difference, paired_difference, statistics
from ada_tui.evaluate.statistics import holm, mean_interval, sign_flip_p, verdict_rate, win_rate

SETS = 500


def scores(values: list[float]) -> dict[str, float]:
    return {f"p{i}": value for i, value in enumerate(values)}


def test_the_examples_in_the_docstrings() -> None:
    found = doctest.testmod(statistics)
    assert found.attempted >= 5
    assert found.failed == 0


def test_a_constant_difference_has_a_point_interval() -> None:
    found = paired_difference("a", "b", scores([0.1, 0.2, 0.3]), scores([0.3, 0.4, 0.5]))
    assert [found.mean, found.low, found.high] == pytest.approx([0.2, 0.2, 0.2], abs=1e-12)
    assert found.n == 3


def test_only_common_prompts_count() -> None:
    a, b = scores([0.1, 0.2, 0.3]), scores([0.1, 0.2, 0.3, 0.9])
    assert paired_difference("a", "b", a, b).n == 3


def test_one_prompt_is_not_enough() -> None:
    with pytest.raises(BadInput, match="at least two"):
        paired_difference("a", "b", {"x": 1.0}, {"x": 2.0})


@pytest.mark.parametrize(
    ("low", "high", "starts", "sign"),
    [
        (0.01, 0.07, "b beats a", "+"),
        (-0.07, -0.01, "b is worse than a", "-"),
        (-0.01, 0.02, "b and a cannot be told apart", "0"),
    ],
)
def test_the_sign_in_words(low: float, high: float, starts: str, sign: str) -> None:
    found = Difference("a", "b", (low + high) / 2, low, high, 10)
    assert found.words.startswith(starts)
    assert found.sign == sign


def normal(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Differences of two arms with normal noise."""
    return rng.normal(0.05, 0.1, n), 0.05


def rewards(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Differences as rules give them: skewed, in steps of 0.05, many of them exactly 0."""
    steps = rng.choice([-0.2, -0.05, 0.0, 0.05, 0.4], p=[0.1, 0.2, 0.4, 0.15, 0.15], size=n)
    return steps, 0.0375


@pytest.mark.parametrize(("draw", "n"), [(normal, 12), (normal, 60), (rewards, 61)])
def test_the_interval_covers_the_truth_95_times_in_100(draw, n: int) -> None:
    rng, hits = np.random.default_rng(20), 0
    for seed in range(SETS):
        deltas, truth = draw(rng, n)
        low, high = mean_interval(deltas, seed=seed, resamples=1000)
        hits += low <= truth <= high
    assert 0.93 <= hits / SETS <= 0.97


def test_the_sign_flip_test_is_right_under_no_effect_and_sees_one() -> None:
    rng = np.random.default_rng(3)
    p_values = np.array([sign_flip_p(rng.normal(0, 1, 30), seed=i, resamples=400) for i in range(300)])
    assert 0.02 <= (p_values < 0.05).mean() <= 0.085
    assert sign_flip_p(rng.normal(1, 1, 30)) < 0.01
    assert sign_flip_p([0.0] * 30) == 1.0


def test_holm_keeps_false_claims_at_five_percent_over_seven_rewards() -> None:
    rng = np.random.default_rng(4)
    families = [dict(enumerate(rng.uniform(size=7).tolist())) for _ in range(2000)]
    wrong = sum(min(holm({str(k): p for k, p in family.items()}).values()) < 0.05 for family in families)
    assert 0.035 <= wrong / 2000 <= 0.065


def test_win_rate_counts_ties_half() -> None:
    found = win_rate("a", "b", {"x": [0.5, 0.5], "y": [0.2, 0.2]}, {"x": [0.5, 0.5], "y": [0.9, 0.9]})
    assert found is not None
    assert (found.rate, found.n) == (0.75, 2)
    assert win_rate("a", "b", {"x": [1.0]}, {"x": [0.0]}) is None


def test_blind_verdicts_with_wilsons_interval() -> None:
    found = verdict_rate("a", "b", 60, 40, ties=3)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.502, 0.691), abs=0.001)  # Wilson 1927
    assert found.needed == 194
    assert verdict_rate("a", "b", 0, 0) is None


def test_the_prompts_it_asks_for_are_the_ones_it_needs() -> None:
    """With as many prompts as `needed` says, about 80 % of new sets show the effect."""
    rng = np.random.default_rng(5)
    pilot = rng.normal(0.05, 0.1, 4000).tolist()
    needed = statistics.prompts_needed(pilot)
    assert needed is not None
    seen = 0
    for seed in range(300):
        low, _ = mean_interval(rng.normal(0.05, 0.1, needed), seed=seed, resamples=600)
        seen += low > 0
    assert 0.72 <= seen / 300 <= 0.88
