"""Totals, shares, pull and ranks; and advantages against TRL's own code on random matrices."""

from __future__ import annotations

import inspect
import math
import random
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest

from rewards import RawScores, RewardConfig
from rewards.combine import (
    advantages,
    advantages_gdpo,
    batch_advantages,
    effective_pull,
    gdpo_columns,
    group_advantages,
    is_dead,
    rank,
    shares,
    std,
    total,
    totals_many,
    weights_for,
    zero_spread,
)  # fmt: skip

CONFIG = RewardConfig.default()


def raw(
    kind: str = "factual", guard: float = 0.0, gated: bool = False, substance: float | None = None, **rewards: Any
) -> RawScores:
    scores = {"length": 1.0, "filler": 1.0, "tone": 1.0, "uncertainty": 1.0, "unsolicited": 1.0, **rewards}
    return RawScores(scores, guard, gated, substance, kind)


def test_total_is_the_formula_of_the_documentation() -> None:
    scores = raw("realtime", guard=-0.2, substance=0.5, uncertainty=0.0, tone=None)
    f = 0.35 + 0.65 * 0.5
    expected = f * (1 + 1 + 5 * 0.0 + 1) / (1 + 1 + 5 + 1) - 0.2
    assert total(scores, CONFIG) == pytest.approx(expected)


def test_a_gated_completion_is_worth_the_guard_alone() -> None:
    assert total(raw(guard=-1.0, gated=True), CONFIG) == -1.0
    assert total(raw(guard=-1.0, gated=True), CONFIG.with_weight("guard", 0.5)) == -0.5


def test_without_any_active_weight_the_guard_is_left() -> None:
    config = CONFIG
    for name in ("length", "filler", "tone", "uncertainty", "unsolicited"):
        config = config.with_weight(name, 0)
    assert total(raw(guard=-0.3), config) == pytest.approx(-0.3)
    assert shares(config, "factual") == dict.fromkeys(("length", "filler", "tone", "uncertainty", "unsolicited"), 0.0)


def test_only_ratios_of_weights_matter() -> None:
    tenfold = RewardConfig(
        weights={n: 10 * w for n, w in CONFIG.weights.items() if n != "guard"} | {"guard": 1}, focus=CONFIG.focus
    )
    scores = raw("opinion", filler=0.4, length=0.5)
    assert total(scores, tenfold) == pytest.approx(total(scores, CONFIG))


def test_focus_of_gold_rows_and_of_kinds() -> None:
    assert dict(weights_for(CONFIG, "realtime"))["uncertainty"] == 5
    assert dict(weights_for(CONFIG, "defer"))["uncertainty"] == 6
    assert dict(weights_for(CONFIG, "factual", True))["uncertainty"] == 3
    assert dict(weights_for(CONFIG, "greeting"))["length"] == 2
    assert sum(shares(CONFIG, "realtime").values()) == pytest.approx(1)


def test_effective_pull_is_the_spread_of_what_is_added() -> None:
    group = [raw(filler=0.4), raw(filler=1.0), raw(filler=1.0, guard=-0.2)]
    pull = effective_pull(group, CONFIG)
    assert pull["length"] == 0
    assert pull["filler"] == pytest.approx(std([0.4 / 4.5, 1 / 4.5, 1 / 4.5]))
    assert pull["guard"] == pytest.approx(std([0, 0, -0.2]))


def test_dead_groups_and_ranks() -> None:
    assert is_dead([raw(), raw()], CONFIG)
    assert not is_dead([raw(), raw(filler=0.4)], CONFIG)
    assert zero_spread([0.7] * 8)
    assert zero_spread([0.7])
    assert rank([0.1, 0.9, 0.9, 0.3]) == [4, 1, 1, 3]
    assert group_advantages([0.5, 0.5]) == [0.0, 0.0]


# --- TRL's own code ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trl_advantages() -> Any:
    """The lines of GRPOTrainer that turn rewards into advantages, taken from the installed TRL and run as they are."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    trainer = pytest.importorskip("trl.trainer.grpo_trainer", reason="trl is not installed")
    source = inspect.getsource(trainer.GRPOTrainer._generate_and_score_completions)
    start = source.index("unscorable_mask = torch.isnan(rewards_per_func)")
    start = source.rindex("\n", 0, start) + 1
    end = source.index("advantages = torch.nan_to_num(advantages, nan=0.0)")
    end = source.index("\n", end) + 1
    code = compile(textwrap.dedent(source[start:end]), "trl", "exec")

    def run(
        matrix: list[list[float | None]], weights: list[float], group: int, aggregation: str, scale: str
    ) -> list[float]:
        values = torch.tensor([[math.nan if v is None else v for v in row] for row in matrix], dtype=torch.float32)
        space: dict[str, Any] = {
            "torch": torch, "nanstd": trainer.nanstd, "rewards_per_func": values, "num_generations": group,
            "device": "cpu",
            "self": SimpleNamespace(
                multi_objective_aggregation=aggregation, scale_rewards=scale, reward_weights=torch.tensor(weights),
                reward_funcs=weights,
            ),
        }  # fmt: skip
        exec(code, space)
        result: list[float] = space["advantages"].tolist()
        return result

    return run


def random_matrix(rng: random.Random, groups: int, size: int, columns: int) -> list[list[list[float | None]]]:
    """Groups with None columns (decided by the row) and flat groups among them."""
    out: list[list[list[float | None]]] = []
    for _ in range(groups):
        absent = {c for c in range(columns) if rng.random() < 0.25}
        if rng.random() < 0.1:
            absent = set(range(columns))
        flat = rng.random() < 0.25
        first = [None if c in absent else rng.randrange(21) / 20 for c in range(columns)]
        rows: list[list[float | None]] = []
        for _ in range(size):
            fresh = [None if c in absent else rng.randrange(21) / 20 for c in range(columns)]
            rows.append(list(first) if flat else fresh)
        out.append(rows)
    return out


@pytest.mark.parametrize("scale", ["batch", "group", "none"])
@pytest.mark.parametrize("seed", range(12))
def test_sum_then_normalize_equals_trl(trl_advantages: Any, scale: str, seed: int) -> None:
    rng = random.Random(seed)
    size, columns = rng.choice([2, 4, 8]), rng.choice([1, 3, 6])
    groups = random_matrix(rng, rng.choice([1, 4, 8]), size, columns)
    weights = [rng.choice([0.0, 0.5, 1.0, 2.0]) for _ in range(columns)]
    theirs = trl_advantages([row for g in groups for row in g], weights, size, "sum_then_normalize", scale)
    totals = [
        [
            None
            if all(v is None for v in row)
            else sum(w * v for w, v in zip(weights, row, strict=True) if v is not None)
            for row in g
        ]
        for g in groups
    ]
    ours = [value for group in advantages(totals, scale) for value in group]
    assert ours == pytest.approx(theirs, abs=2e-3, rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_normalize_then_sum_equals_trl(trl_advantages: Any, seed: int) -> None:
    rng = random.Random(seed)
    size, columns = rng.choice([2, 4, 8]), rng.choice([1, 3, 6])
    groups = random_matrix(rng, rng.choice([2, 4, 8]), size, columns)
    weights = [rng.choice([0.5, 1.0, 2.0]) for _ in range(columns)]
    theirs = trl_advantages([row for g in groups for row in g], weights, size, "normalize_then_sum", "batch")
    ours = [value for group in advantages_gdpo(groups, weights) for value in group]
    assert ours == pytest.approx(theirs, abs=5e-3, rel=1e-3)


def test_batch_advantages_follow_the_configuration() -> None:
    groups = [[raw(filler=0.4), raw()], [raw(length=0.5), raw()]]
    by_batch = batch_advantages(groups, CONFIG)
    assert by_batch == advantages([totals_many(g, CONFIG) for g in groups], "batch")
    gdpo = RewardConfig(weights=CONFIG.weights, focus=CONFIG.focus, aggregation="normalize_then_sum")
    assert batch_advantages(groups, gdpo)[0][0] < 0 < batch_advantages(groups, gdpo)[0][1]
    names = ("length", "filler")
    assert gdpo_columns(raw("greeting", substance=0.0, length=0.5), gdpo, names) == pytest.approx(
        [0.35 * 2 * 0.5, 0.35, 0.0]
    )
    assert gdpo_columns(raw(guard=-1.0, gated=True, tone=None), gdpo, ("length", "tone")) == [0.0, None, -1.0]


def test_weight_changes_never_alter_raw_scores() -> None:
    group = [raw(filler=0.4), raw(length=0.5)]
    before = [g.to_dict() for g in group]
    for weight in (0.0, 0.5, 7.0):
        totals_many(group, CONFIG.with_weight("filler", weight))
    assert [g.to_dict() for g in group] == before
