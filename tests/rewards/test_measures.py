"""The targets that the documentation reports: labelled data where it is at hand, the hack table, speed with slack."""

from __future__ import annotations

import pytest

from benchmarks.rewards import detectors, docs, hacks, speed
from benchmarks.rewards.labelled import WHY_ABSENT, auc, halves
from rewards import KINDS, RewardConfig, Row, score

CONFIG = RewardConfig.default()
SLACK = 4.0
"""Shared machines are slower than the one that is reported; a regression of the algorithm is far beyond this."""


@pytest.mark.parametrize("detector", detectors.DETECTORS, ids=lambda d: d.name)
def test_detectors_hold_on_the_half_nobody_tuned_to(detector: detectors.Detector) -> None:
    records = detectors.records_of(detector.data)
    if records is None:
        pytest.skip(WHY_ABSENT)
    figures = detector.measure(halves(records, detector.key)[1], CONFIG)
    for name, target in detector.targets.items():
        assert detectors.meets(figures[name], target), (name, figures[name], target)


def test_a_good_reply_beats_every_hack_under_every_aggregation() -> None:
    table = hacks.measure(CONFIG, per_kind=3)
    assert set(table["kinds"]) == set(KINDS)
    assert min(table["kinds"].values()) >= 3
    assert table["losses"] == []


def test_the_bundled_replies_are_not_gated() -> None:
    for prompt in hacks.prompts():
        card = score(prompt.text, prompt.good, prompt.row, CONFIG)
        assert not card.raw.gated, (prompt, card.results["guard"].why)


def test_speed() -> None:
    assert speed.card_ms(1200, CONFIG) <= SLACK * speed.TARGETS["card_1200_ms"]
    assert speed.card_ms(300, CONFIG) <= SLACK * speed.TARGETS["card_300_ms"]
    assert speed.reweight_ms() <= SLACK * speed.TARGETS["reweight_500x8_ms"]
    assert speed.pattern_growth(CONFIG) <= speed.TARGETS["patterns_140_over_14"] * 1.5
    assert speed.worst(CONFIG, seconds=2)[0] <= SLACK * speed.TARGETS["worst_4000_ms"]


@pytest.mark.parametrize(
    "unit",
    ["](", "i ", "a.", "```", '"a', "!", "- a\n", "1. ", "\u200b", "great question ", "don't know ", "aA", "é", "((("],
)
def test_no_repeated_text_is_slow(unit: str) -> None:
    text = (unit * 4000)[:4000]
    speed.fresh()
    seconds = speed.best(lambda: (speed.fresh(), score("Hi", text, Row(kind="factual"), CONFIG)), 2)
    assert seconds * 1000 <= SLACK * speed.TARGETS["worst_4000_ms"]


def test_auc_by_hand() -> None:
    assert auc([3, 2], [1, 0]) == 1.0
    assert auc([0], [1]) == 0.0
    assert auc([1, 1], [1, 1]) == 0.5


def test_the_documentation_shows_the_stored_figures() -> None:
    before = docs.PAGE.read_text(encoding="utf-8")
    changed = docs.rewrite()
    if changed:
        docs.PAGE.write_text(before, encoding="utf-8")
    assert not changed, "run `python -m benchmarks.rewards --docs`"
