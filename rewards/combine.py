"""From raw scores to what trains: totals, group advantages, shares, effective pull.

It mirrors the arithmetic of TRL 1.15's GRPOTrainer (sample standard deviation, 1e-4 in the denominator, missing values
ignored) without torch,
so that every screen shows what the trainer will do. No text is read here. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan, sqrt

from rewards.config import RewardConfig
from rewards.types import REWARD_NAMES, RawScores

EPSILON = 1e-4
"""Added to a standard deviation before dividing, as TRL does."""

FLOOR = 0.35
"""Factor of a reply with no substance at all."""


def factor(substance: float | None) -> float:
    """What substance multiplies the rewards with: 0.35..1, and 1 where it has no opinion."""
    return 1.0 if substance is None else FLOOR + (1.0 - FLOOR) * substance


def weights_for(config: RewardConfig, kind: str, has_gold: bool = False) -> tuple[tuple[str, float], ...]:
    """(reward, weight x focus) of every reward that pulls on rows of that kind."""
    cached = config.multipliers.get((kind, has_gold))
    if cached is not None:
        return cached
    of_kind = config.focus.get(kind, {})
    of_gold = config.focus.get("gold", {}) if has_gold else {}
    out = []
    for name, weight in config.weights.items():
        if name == "guard" or weight <= 0:
            continue
        multiplier = of_kind.get(name, 1.0)
        if name in of_gold:
            multiplier = max(multiplier, of_gold[name]) if name in of_kind else of_gold[name]
        if weight * multiplier > 0:
            out.append((name, weight * multiplier))
    result = config.multipliers[kind, has_gold] = tuple(out)
    return result


def total(raw: RawScores, config: RewardConfig) -> float:
    """factor x weighted mean of the rewards that have an opinion + guard weight x guard; gated: the guard alone.

    >>> config = RewardConfig(weights={"length": 1.0, "filler": 1.0, "guard": 1.0})
    >>> total(RawScores({"length": 1.0, "filler": 0.4}, 0.0, False, None, "factual"), config)
    0.7
    """
    return totals_many((raw,), config)[0]


def totals_many(raws: Iterable[RawScores], config: RewardConfig) -> list[float]:
    """`total` of many completions, fast."""
    out: list[float] = []
    guard_weight = config.weights.get("guard", 1.0)
    known: dict[tuple[str, bool], tuple[tuple[str, float], ...]] = {}
    for raw in raws:
        value = guard_weight * raw.guard
        if not raw.gated:
            key = (raw.kind, raw.has_gold)
            pairs = known.get(key)
            if pairs is None:
                pairs = known[key] = weights_for(config, *key)
            rewards = raw.rewards
            numerator = denominator = 0.0
            for name, weight in pairs:
                score = rewards.get(name)
                if score is not None:
                    numerator += weight * score
                    denominator += weight
            if denominator:
                substance = raw.substance
                mean = numerator / denominator
                value += mean if substance is None else (FLOOR + (1.0 - FLOOR) * substance) * mean
        out.append(value)
    return out


def shares(config: RewardConfig, kind: str, has_gold: bool = False) -> dict[str, float]:
    """Each reward's part of the total on rows of that kind (all rewards having an opinion); they sum to 1.

    >>> shares(RewardConfig(weights={"length": 3, "filler": 1}), "factual")
    {'length': 0.75, 'filler': 0.25}
    """
    pairs = dict(weights_for(config, kind, has_gold))
    whole = sum(pairs.values())
    return {name: pairs.get(name, 0.0) / whole if whole else 0.0 for name in config.weights if name != "guard"}


def _clean(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None and not isnan(v)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def std(values: Iterable[float | None]) -> float:
    """Sample standard deviation of the values that are there; NaN for fewer than two, as TRL's `nanstd`."""
    clean = _clean(values)
    if len(clean) < 2:
        return float("nan")
    mean = sum(clean) / len(clean)
    return sqrt(sum((v - mean) ** 2 for v in clean) / (len(clean) - 1))


def advantages(groups: Sequence[Sequence[float | None]], scale: str = "batch") -> list[list[float]]:
    """Advantages of the totals of one generation batch (`sum_then_normalize`), as TRL computes them.

    A total of None (nothing could be scored) gets 0 and does not count in the group's mean.

    >>> advantages([[1.0, 0.0], [0.5, 0.5]], "none")
    [[0.5, -0.5], [0.0, 0.0]]
    """
    if scale not in ("batch", "group", "none"):
        raise ValueError(f"scale is {scale!r}; use 'batch', 'group' or 'none'")
    everything = [value for group in groups for value in group]
    whole = std(everything) if len(everything) > 1 else 0.0
    out: list[list[float]] = []
    for group in groups:
        mean = _mean(_clean(group))
        spread = 0.0
        if scale == "batch":
            spread = whole
        elif scale == "group":
            spread = std(group) if len(group) > 1 else 0.0
        divisor = 1.0 if scale == "none" else spread + EPSILON
        out.append([_finite((value - mean) / divisor) if value is not None else 0.0 for value in group])
    return out


def group_advantages(totals: Sequence[float | None], scale: str = "group") -> list[float]:
    """Advantages of a lone group: what is shown for a prompt that was sampled by itself."""
    return advantages([totals], scale)[0]


def _finite(value: float) -> float:
    return 0.0 if isnan(value) else value


Columns = Sequence[Sequence[float | None]]
"""One row per completion, one column per trained reward."""


def advantages_gdpo(groups: Sequence[Columns], weights: Sequence[float]) -> list[list[float]]:
    """Advantages of one generation batch under `normalize_then_sum`: every column is normalised within its group
    first."""
    sums: list[list[float | None]] = []
    for group in groups:
        columns = list(zip(*group, strict=True))
        stats = [(_mean(_clean(column)), std(column) if len(column) > 1 else 0.0) for column in columns]
        rows: list[float | None] = []
        for row in group:
            value = 0.0
            for score, weight, (mean, spread) in zip(row, weights, stats, strict=True):
                if score is not None and not isnan(score):
                    value += _finite(weight * (score - mean) / (spread + EPSILON))
            rows.append(value if _clean(row) else None)
        sums.append(rows)
    everything = [value for rows in sums for value in rows]
    whole = std(everything) if len(everything) > 1 else 0.0
    mean = _mean(_clean(everything))
    return [[_finite((v - mean) / (whole + EPSILON)) if v is not None else 0.0 for v in rows] for rows in sums]


def gdpo_columns(raw: RawScores, config: RewardConfig, names: Sequence[str]) -> list[float | None]:
    """The trained columns of `normalize_then_sum`: factor x focus x score per reward (0 when gated), then the guard."""
    of_kind = config.focus.get(raw.kind, {})
    focus = {name: of_kind.get(name, 1.0) for name in names}
    if raw.has_gold:
        for name, value in config.focus.get("gold", {}).items():
            focus[name] = max(of_kind.get(name, value), value)
    f = factor(raw.substance)
    columns: list[float | None] = []
    for name in names:
        score = raw.rewards.get(name)
        columns.append(None if score is None else 0.0 if raw.gated else f * focus[name] * score)
    return [*columns, raw.guard]


def reward_names(config: RewardConfig) -> tuple[str, ...]:
    """The built-in rewards and the person's own, in the order in which they are shown."""
    return (*REWARD_NAMES, *(n for n in config.weights if n not in REWARD_NAMES and n != "guard"))


def batch_advantages(groups: Sequence[Sequence[RawScores]], config: RewardConfig) -> list[list[float]]:
    """Advantages of one generation batch under the configuration's aggregation and scaling."""
    if config.aggregation == "normalize_then_sum":
        names = reward_names(config)
        weights = [*(config.weights.get(name, 0.0) for name in names), config.weights.get("guard", 1.0)]
        return advantages_gdpo([[gdpo_columns(raw, config, names) for raw in group] for group in groups], weights)
    return advantages([totals_many(group, config) for group in groups], config.scale_rewards)


def effective_pull(group: Sequence[RawScores], config: RewardConfig) -> dict[str, float]:
    """How much each reward really separates the completions of a group: the spread of what it adds to the total.

    A reward on which all completions agree pulls with 0, whatever its weight.
    """
    names = list(reward_names(config))
    parts: dict[str, list[float | None]] = {name: [] for name in names}
    for raw in group:
        pairs = dict(weights_for(config, raw.kind, raw.has_gold))
        whole = sum(weight for name, weight in pairs.items() if raw.rewards.get(name) is not None)
        f = factor(raw.substance)
        for name in names:
            score = raw.rewards.get(name)
            if score is None:
                parts[name].append(None)
            else:
                parts[name].append(0.0 if raw.gated or not whole else f * pairs.get(name, 0.0) * score / whole)
    parts["guard"] = [config.weights.get("guard", 1.0) * raw.guard for raw in group]
    return {name: _finite(std(values)) for name, values in parts.items()}


def zero_spread(values: Sequence[float | None]) -> bool:
    """Whether a group's values are all the same (to TRL's tolerance): no gradient comes from them."""
    spread = std(values)
    return isnan(spread) or spread <= 1e-8


def is_dead(group: Sequence[RawScores], config: RewardConfig) -> bool:
    """Whether a group teaches nothing: every completion has the same total."""
    return zero_spread(totals_many(group, config))


def rank(totals: Sequence[float]) -> list[int]:
    """Place of each completion, 1 = best; equal totals share the better place.

    >>> rank([0.5, 0.9, 0.5])
    [2, 1, 2]
    """
    order = sorted(totals, reverse=True)
    place: dict[float, int] = {}
    for position, value in enumerate(order, 1):
        place.setdefault(value, position)
    return [place[value] for value in totals]
