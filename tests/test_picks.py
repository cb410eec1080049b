"""Picks survive, and weights are recovered from them; what no rule measures is named, chance is called chance."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ada_tui import picks
from ada_tui.jobs import JobDir
from ada_tui.picks import Judged, Pick
from rewards import RewardConfig
from rewards.combine import totals_many
from rewards.types import RawScores

NAMES = ("length", "filler", "tone", "uncertainty", "unsolicited")
PRESENT = RewardConfig(weights={**dict.fromkeys(NAMES, 1.0), "guard": 1.0})


def raw(rng: random.Random) -> RawScores:
    return RawScores({name: round(rng.random() * 20) / 20 for name in NAMES}, 0.0, False, None, "factual")


def picked(config: RewardConfig, n: int, *, noise: float, seed: int) -> list[Judged]:
    """`n` groups of eight, the best under `config` picked; with probability `noise` any other."""
    rng, out = random.Random(seed), []
    for number in range(n):
        raws = [raw(rng) for _ in range(8)]
        totals = totals_many(raws, config)
        chosen = totals.index(max(totals))
        if rng.random() < noise:
            chosen = rng.randrange(8)
        out.append(Judged(Pick(group=f"g{number}", row_id=f"r{number}", chosen=chosen), raws))
    return out


def test_a_pick_is_on_disk_at_once_and_the_newest_counts(tmp_path: Path) -> None:
    job = JobDir(tmp_path)
    picks.append(job, Pick("g1", chosen=3))
    picks.append(job, Pick("g2", chosen=0, rejected=5, comment="[/] \x1b[31m"))
    picks.append(job, Pick("g1", chosen=1))
    with (tmp_path / picks.FILE).open("ab") as file:
        file.write(b'{"type": "pick", "group": 7}\nnot json\n{"type": "blind"}\n{"type": "pick", "group": "g9", "ch')
    found = picks.read(job)
    assert set(found) == {"g1", "g2"}
    assert found["g1"].chosen == 1
    assert found["g1"].who
    assert found["g1"].time > 0
    assert (found["g2"].rejected, found["g2"].comment) == (5, "[/] \x1b[31m")


def test_a_tie_after_a_pick_takes_it_back(tmp_path: Path) -> None:
    job = JobDir(tmp_path)
    picks.append(job, Pick("g2", chosen=1))
    picks.append(job, picks.read(job)["g2"].judged("tie", 0))
    found = picks.read(job)["g2"]
    assert found.tie
    assert not found.decided


def test_a_pick_says_which_pairs_are_in_order() -> None:
    rng = random.Random(1)
    raws = [raw(rng) for _ in range(4)]
    assert Judged(Pick("g", chosen=1), raws).pairs == [(1, 0), (1, 2), (1, 3)]
    assert Judged(Pick("g", rejected=2), raws).pairs == [(0, 2), (1, 2), (3, 2)]
    assert Judged(Pick("g", chosen=1, rejected=2), raws).pairs == [(1, 0), (1, 2), (1, 3), (0, 2), (3, 2)]
    assert Judged(Pick("g", tie=True), raws).pairs == []
    assert Judged(Pick("g", chosen=77), raws).pairs == []
    assert Judged(Pick("g", chosen=0), [raws[0], raws[0]]).pairs == []


def test_known_weights_are_recovered_from_sixty_noisy_picks() -> None:
    wanted = RewardConfig(
        weights={"length": 0.2, "filler": 3, "tone": 0.1, "uncertainty": 1.2, "unsolicited": 0.5, "guard": 1}
    )
    found = picks.fit(picked(wanted, 60, noise=0.1, seed=3), PRESENT)
    assert found is not None
    assert found.after >= 0.85
    assert found.after > found.before
    assert found.low > 0.5
    assert "held-out picks agree" in found.words
    assert sum(found.weights.values()) == pytest.approx(5.0, abs=0.05)
    assert max(found.weights, key=found.weights.__getitem__) == "filler"
    fresh = picked(wanted, 60, noise=0.0, seed=4)
    fitted = RewardConfig(weights={**found.weights, "guard": 1.0})
    now, before = picks.agreement(fresh, fitted), picks.agreement(fresh, PRESENT)
    assert now is not None
    assert before is not None
    assert now > max(0.85, before)


def test_random_picks_are_called_random() -> None:
    found = picks.fit(picked(PRESENT, 60, noise=1.0, seed=5), PRESENT)
    assert found is not None
    assert found.low <= 0.5
    assert "no better than chance" in found.words


def test_few_picks_are_a_guess() -> None:
    found = picks.fit(picked(PRESENT, 6, noise=0.0, seed=6), PRESENT)
    assert found is not None
    assert "only 6 picks" in found.words


def test_without_a_decided_pick_there_is_nothing_to_fit() -> None:
    rng = random.Random(1)
    assert picks.fit([Judged(Pick("g", tie=True), [raw(rng), raw(rng)])], PRESENT) is None


def test_a_pick_that_no_weighting_explains_is_named() -> None:
    def scores(*values: float, guard: float = 0.0) -> RawScores:
        return RawScores(dict(zip(NAMES, values, strict=True)), guard, False, None, "factual")

    best, worse, other = (
        scores(0.9, 0.9, 0.9, 0.9, 0.9),
        scores(0.5, 0.9, 0.2, 0.1, 0.9),
        scores(0.1, 1.0, 0.1, 0.1, 0.1),
    )
    left, right = scores(1, 0, 0, 0, 0), scores(0, 1, 0, 0, 0)
    dominated = Judged(Pick("dominated", chosen=1), [best, worse])
    explained = Judged(Pick("explained", chosen=1), [best, other])
    between = Judged(Pick("between", chosen=1), [left, scores(0.5, 0.5, 0, 0, 0), right])
    mix = Judged(Pick("mix", chosen=1), [left, scores(0.4, 0.4, 0, 0, 0), right])
    guarded = Judged(Pick("guarded", chosen=1), [best, scores(1.0, 0.9, 0.9, 0.9, 0.9, guard=-0.5)])
    found = picks.fit([dominated, explained, between, mix, guarded], PRESENT)
    assert found is not None
    assert set(found.unexplained) == {"dominated", "between", "mix", "guarded"}


def test_gated_replies_and_missing_opinions_count_as_the_trainer_counts_them() -> None:
    gated = RawScores({**dict.fromkeys(NAMES, 1.0), "uncertainty": None}, -1.0, True, None, "opinion")
    plain = RawScores({**dict.fromkeys(NAMES, 0.3), "uncertainty": None}, 0.0, False, 0.5, "opinion")
    better = RawScores({**dict.fromkeys(NAMES, 0.6), "uncertainty": None}, 0.0, False, 1.0, "opinion")
    judged = Judged(Pick("g", chosen=1), [gated, better, plain])
    table = picks._table(judged, NAMES, PRESENT)
    import numpy as np

    totals = totals_many(judged.raws, PRESENT)
    expected = [totals[1] - totals[0], totals[1] - totals[2]]
    ours = picks._margins(table, np.ones(5))
    assert ours[1] == pytest.approx(expected[1])
    assert ours[0] == pytest.approx(expected[0])
