"""The paired interval: known answers, degenerate inputs, and its coverage on simulated sets."""

from __future__ import annotations

import random

import pytest

from ada_tui.errors import BadInput
from ada_tui.evaluate import Difference, paired_difference


def scores(values: list[float]) -> dict[str, float]:
    return {f"p{i}": value for i, value in enumerate(values)}


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
    ("low", "high", "starts"),
    [(0.01, 0.07, "b beats a"), (-0.07, -0.01, "b is worse than a"), (-0.01, 0.02, "b and a cannot be told apart")],
)
def test_the_sign_in_words(low: float, high: float, starts: str) -> None:
    assert Difference("a", "b", (low + high) / 2, low, high, 10).words.startswith(starts)


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng, truth, hits, sets = random.Random(1), 0.05, 0, 200
    for seed in range(sets):
        a = [rng.gauss(0.5, 0.2) for _ in range(60)]
        b = [value + rng.gauss(truth, 0.1) for value in a]
        found = paired_difference("a", "b", scores(a), scores(b), seed=seed, resamples=1000)
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / sets <= 0.99
