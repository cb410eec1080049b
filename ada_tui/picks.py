"""Picks: which reply of a group a person found best, and which weights would have picked the same.

Picks are lines of a job's picks.jsonl, appended and synced one by one, so that none is lost; the newest counts.
`ada_tui.dataset.prefer` makes training pairs of them. The fit is pairwise logistic over the *exact* total of
`rewards.combine` (weights act by ratio, the guard's is fixed), weights >= 0, pulled towards the present ones.

Not here: any screen, blind A/B between policies (`evaluate.verdicts`). Anybody may import it; scipy and numpy are
imported inside functions.
"""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from ada_tui.jobs import JobDir, read_lines
from rewards.combine import factor, reward_names, totals_many, weights_for
from rewards.config import RewardConfig
from rewards.types import RawScores

if TYPE_CHECKING:
    import numpy as np

FILE = "picks.jsonl"
FEW = 20
"""Below so many picks a fit is a guess, and says so."""

FOLDS = 5
PULL = 0.5
"""Strength of the pull towards the present weights, in picks."""

NONE = -1
"""`Pick.chosen` when no reply is better: a tie, or the pick was taken back."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A person's verdict on one group. Positions are those of groups.jsonl."""

    group: str
    chosen: int = NONE
    rejected: int | None = None
    """The reply that is unusable or the worst, when the person said so."""
    tie: bool = False
    row_id: str = ""
    comment: str = ""
    who: str = ""
    time: float = 0.0

    @property
    def decided(self) -> bool:
        """It says that one reply is better than another."""
        return self.chosen != NONE or self.rejected is not None

    def judged(self, verdict: str, index: int) -> Pick:
        """With one more verdict on completion `index`; the same verdict again takes it back.

        Args:
            verdict: "best", "reject" or "tie" (`index` does not matter then).

        >>> Pick("g").judged("best", 2).judged("reject", 2)
        Pick(group='g', chosen=-1, rejected=2, tie=False, row_id='', comment='', who='', time=0.0)
        """
        fresh = replace(self, who="", time=0.0)
        if verdict == "tie":
            return replace(fresh, chosen=NONE, rejected=None, tie=not self.tie)
        if verdict == "best":
            chosen = NONE if self.chosen == index else index
            return replace(fresh, chosen=chosen, tie=False, rejected=None if self.rejected == chosen else self.rejected)
        rejected = None if self.rejected == index else index
        return replace(fresh, rejected=rejected, tie=False, chosen=NONE if self.chosen == rejected else self.chosen)

    def commented(self, words: str) -> Pick:
        """With another comment."""
        return replace(self, comment=words, who="", time=0.0)


def append(job: JobDir, pick: Pick) -> Pick:
    """Write a pick, with who and when, and sync it. Raises OSError."""
    pick = replace(pick, who=pick.who or getpass.getuser(), time=pick.time or time.time())
    line = orjson.dumps({"type": "pick", **asdict(pick)}) + b"\n"
    fd = os.open(job.path / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, line)
        os.fsync(fd)
    finally:
        os.close(fd)
    return pick


def read(job: JobDir) -> dict[str, Pick]:
    """The newest pick per group; lines of other types and damaged lines are passed over."""
    found: dict[str, Pick] = {}
    for _, line in read_lines(job.path / FILE):
        try:
            data = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(data, dict) and data.get("type") == "pick" and (pick := _pick(data)) is not None:
            found[pick.group] = pick
    return found


def _pick(data: Mapping[str, Any]) -> Pick | None:
    group, chosen, rejected = data.get("group"), data.get("chosen", NONE), data.get("rejected")
    if not isinstance(group, str) or type(chosen) is not int or not (rejected is None or type(rejected) is int):
        return None
    words = {name: str(data.get(name) or "") for name in ("row_id", "comment", "who")}
    when = data.get("time")
    return Pick(
        group, chosen, rejected, bool(data.get("tie")), **words, time=when if isinstance(when, int | float) else 0.0
    )


# --- from picks to weights --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """A decided pick with the raw scores of its group."""

    pick: Pick
    raws: Sequence[RawScores]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(better, worse) positions that the pick says."""
        everybody = range(len(self.raws))
        out = []
        if self.pick.chosen in everybody:
            out += [(self.pick.chosen, other) for other in everybody if other != self.pick.chosen]
        if self.pick.rejected in everybody:
            worst = self.pick.rejected
            assert worst is not None
            out += [(other, worst) for other in everybody if other not in (worst, self.pick.chosen)]
        return [(a, b) for a, b in out if _differ(self.raws[a], self.raws[b])]


def _differ(a: RawScores, b: RawScores) -> bool:
    """Replies that every rule scores alike cannot teach a weight."""
    return a.to_dict() != b.to_dict()


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights learned from picks, and how far to believe them."""

    weights: dict[str, float]
    """Fitted reward weights, with the sum of the present ones; the guard is not among them."""
    picks: int
    before: float
    """Agreement of the present weights with the picks: share of their (better, worse) pairs in the right order."""
    after: float
    """Agreement on held-out picks (5-fold, no prompt on both sides)."""
    low: float
    high: float
    """95 % interval of `after` over picks."""
    unexplained: list[str] = field(default_factory=list)
    """Groups whose pick no weighting can bring to the top: what speaks for it there, no rule measures."""

    @property
    def words(self) -> str:
        """What the fit is worth, in one sentence."""
        share = f"{self.after:.0%} [{self.low:.0%}, {self.high:.0%}]"
        if self.picks < FEW:
            return f"only {self.picks} picks: a guess ({share} on held-out picks); {FEW} are the least to go by"
        if self.low <= 0.5:
            return f"no better than chance on held-out picks ({share}): the rules do not see what these picks are about"
        if self.after <= self.before:
            return f"no gain: held-out picks agree {share}, with the present weights {self.before:.0%}"
        return f"held-out picks agree {share}, with the present weights {self.before:.0%}"


def fit(judged: Sequence[Judged], config: RewardConfig) -> Fit | None:
    """Weights that agree best with `judged`; None when no pick says that one reply is better than another."""
    import numpy as np

    usable = [one for one in judged if one.pairs]
    if not usable:
        return None
    names = list(reward_names(config))
    tables = [_table(one, names, config) for one in usable]
    present = np.array([config.weights.get(name, 0.0) for name in names])
    before = [_agreement(table, present) for table in tables]
    after = _held_out(usable, tables, present)
    found = _solve(tables, present)
    low, high = _interval(after)
    return Fit(
        weights={name: round(float(value), 2) for name, value in zip(names, found, strict=True)},
        picks=len(usable), before=float(np.mean(before)), after=float(np.mean(after)), low=low, high=high,
        unexplained=[one.pick.group for one, table in zip(usable, tables, strict=True) if not _explainable(table)],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Table:
    """The pairs of one pick as arrays of shape (pairs, rewards) and (pairs,)."""

    better: np.ndarray
    """focus x substance factor x score of the better reply; 0 without opinion or when gated."""
    worse: np.ndarray
    focus: np.ndarray
    """Focus where the row gives the reward an opinion, else 0: the same for a whole group."""
    guard: np.ndarray
    """Guard weight x (guard of the better - guard of the worse)."""


def _table(one: Judged, names: Sequence[str], config: RewardConfig) -> _Table:
    import numpy as np

    raw = one.raws[0]
    unit = replace(config, weights={**dict.fromkeys(names, 1.0), "guard": 1.0})
    focus_of = dict(weights_for(unit, raw.kind, raw.has_gold))
    focus = np.array([focus_of.get(n, 0.0) if raw.rewards.get(n) is not None else 0.0 for n in names])

    def row(of: RawScores) -> list[float]:
        scores = [of.rewards.get(name) for name in names]
        return [0.0 if score is None or of.gated else factor(of.substance) * float(score) for score in scores]

    better = np.array([row(one.raws[a]) for a, _ in one.pairs]) * focus
    worse = np.array([row(one.raws[b]) for _, b in one.pairs]) * focus
    weight = config.weights.get("guard", 1.0)
    guard = np.array([weight * (one.raws[a].guard - one.raws[b].guard) for a, b in one.pairs])

    return _Table(better, worse, focus, guard)


def _margins(table: _Table, weights: np.ndarray) -> np.ndarray:
    """Total of the better minus total of the worse reply, per pair."""
    whole = float(table.focus @ weights)
    rewards = (table.better - table.worse) @ weights / whole if whole > 0 else 0.0
    return rewards + table.guard


def _agreement(table: _Table, weights: np.ndarray) -> float:
    margins = _margins(table, weights)
    return float(((margins > 1e-9) + 0.5 * (abs(margins) <= 1e-9)).mean())


def _solve(tables: Sequence[_Table], present: np.ndarray) -> np.ndarray:
    """Non-negative weights (summing like `present`) of the least logistic loss; the sharpness is fitted along."""
    import numpy as np
    from scipy.optimize import minimize

    size = len(present)
    scale = float(present.sum()) or float(size)
    start = np.append(present * size / scale if present.any() else np.ones(size), np.log(8.0))
    prior = start[:-1].copy()

    def loss(x: np.ndarray) -> float:
        weights, sharpness = x[:-1], np.exp(x[-1])
        fitted = sum(float(np.logaddexp(0.0, -sharpness * _margins(table, weights)).mean()) for table in tables)
        return fitted + PULL * float(((weights - prior) ** 2).sum()) + 0.1 * float((x[-1] - np.log(8.0)) ** 2)

    bounds = [(0.0, 4.0 * size)] * size + [(0.0, 5.0)]
    found = minimize(loss, start, method="L-BFGS-B", bounds=bounds).x[:-1]
    return found * scale / found.sum() if found.sum() > 0 else present


def _held_out(judged: Sequence[Judged], tables: Sequence[_Table], present: np.ndarray) -> list[float]:
    """Agreement per pick under weights fitted to the other folds; picks on one prompt share a fold."""
    import zlib

    folds = [zlib.crc32((one.pick.row_id or one.pick.group).encode()) % FOLDS for one in judged]
    out = [0.0] * len(tables)
    for fold in set(folds):
        others = [table for table, where in zip(tables, folds, strict=True) if where != fold]
        weights = _solve(others, present) if others else present
        for index, where in enumerate(folds):
            if where == fold:
                out[index] = _agreement(tables[index], weights)
    return out


def _interval(values: Sequence[float]) -> tuple[float, float]:
    from ada_tui.evaluate.statistics import mean_interval

    return mean_interval(values) if len(values) > 1 else (0.0, 1.0)


def _explainable(table: _Table) -> bool:
    """Whether any weights >= 0 put the pick where the person put it: a linear program with denominator 1."""
    import numpy as np
    from scipy.optimize import linprog

    opinions = table.focus > 0
    if not opinions.any():
        return bool((table.guard > 0).all())
    gain = (table.better - table.worse)[:, opinions] / table.focus[opinions]  # per unit of weight x focus
    pairs, size = gain.shape
    slack = np.hstack([-(gain + table.guard[:, None]), np.ones((pairs, 1))])  # t <= margin of every pair
    found = linprog(
        c=np.append(np.zeros(size), -1.0), A_ub=slack, b_ub=np.zeros(pairs),
        A_eq=[np.append(np.ones(size), 0.0)], b_eq=[1.0], bounds=[(0, 1)] * size + [(-3, 3)],
    )  # fmt: skip
    return bool(found.status == 0 and found.x[-1] > 1e-9)


def agreement(judged: Sequence[Judged], config: RewardConfig) -> float | None:
    """Share of (better, worse) pairs that `config` orders as the picks do; ties count half. None without picks."""
    shares = []
    for one in judged:
        totals = totals_many(one.raws, config)
        pairs = one.pairs
        if pairs:
            right = sum((totals[a] > totals[b]) + 0.5 * (totals[a] == totals[b]) for a, b in pairs)
            shares.append(right / len(pairs))
    return sum(shares) / len(shares) if shares else None
