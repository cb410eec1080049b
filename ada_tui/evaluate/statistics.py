"""Paired differences, win rates and power. The unit is the prompt: samples of one prompt are averaged first.

Nothing here reads a file or knows a reward; figures in, intervals out. Heavy imports (scipy) are inside the functions.
Methods: paired bootstrap (Efron & Tibshirani 1993, ch. 13), its percentile interval widened for small samples
(Hesterberg 2015, "What teachers should know about the bootstrap": without it, 12 prompts give 92 %, not 95 %),
sign-flip test, Holm (1979), Wilson's interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ada_tui.errors import BadInput

RESAMPLES = 10_000
CONFIDENCE = 0.95
POWER = 0.8
"""Chance of seeing an effect that is there, for "how many would it need"."""

Z_ALPHA = 1.959964
"""Normal quantile of `CONFIDENCE`, two-sided."""
Z_POWER = 0.841621
"""Normal quantile of `POWER`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better `b` is than `a`, over the prompts both answered."""

    a: str
    b: str
    mean: float
    low: float
    high: float
    """95 % interval of the mean difference."""
    n: int
    """Prompts."""
    needed: int | None = None
    """Prompts that an effect of this size needs to be told from 0 four times in five; None = no effect at all."""

    @property
    def sign(self) -> str:
        """ "+" (interval above 0), "-" (below) or "0" (cannot be told apart)."""
        return "+" if self.low > 0 else "-" if self.high < 0 else "0"

    @property
    def words(self) -> str:
        """The difference as a sentence.

        >>> Difference("sft", "grpo", 0.04, 0.01, 0.07, 61).words
        'grpo beats sft by 0.040 [0.010, 0.070] on 61 prompts'
        """
        interval = f"[{self.low:+.3f}, {self.high:+.3f}] on {self.n} prompts"
        if self.low > 0:
            return f"{self.b} beats {self.a} by {self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] on {self.n} prompts"
        if self.high < 0:
            return f"{self.b} is worse than {self.a} by {-self.mean:.3f}: {self.mean:+.3f} {interval}"
        return f"{self.b} and {self.a} cannot be told apart: {self.mean:+.3f} {interval}"

    @property
    def power_words(self) -> str:
        """What it would take to see an effect of this size.

        >>> Difference("sft", "grpo", 0.02, -0.01, 0.05, 61, needed=140).power_words
        'an effect of 0.020 needs about 140 prompts; there are 61'
        """
        if self.needed is None:
            return f"no effect at all on {self.n} prompts"
        enough = "enough" if self.needed <= self.n else f"there are {self.n}"
        return f"an effect of {abs(self.mean):.3f} needs about {self.needed} prompts; {enough}"


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often `b` is preferred to `a`; ties count half."""

    a: str
    b: str
    rate: float
    low: float
    high: float
    """95 % interval of the rate."""
    n: int
    """Prompts (rules) or verdicts (blind)."""
    by: str
    """"blind verdicts" or "rules"."""
    needed: int | None
    """Pairs that a rate like this needs to be told from a coin; None = it is one."""

    @property
    def words(self) -> str:
        """The rate as a sentence.

        >>> WinRate("sft", "grpo", 0.6, 0.48, 0.71, 60, "blind verdicts", 194).words
        'grpo against sft by blind verdicts: 60 % [48, 71] of 60; 194 would tell'
        """
        tail = "" if self.needed is None or not self.low <= 0.5 <= self.high else f"; {self.needed} would tell"
        rate = f"{100 * self.rate:.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"
        return f"{self.b} against {self.a} by {self.by}: {rate} of {self.n}{tail}"


def paired_difference(
    a: str, b: str, of_a: Mapping[str, float], of_b: Mapping[str, float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Difference:
    """Mean of `of_b - of_a` over their common prompts, with a 95 % bootstrap interval over prompts.

    Args:
        of_a, of_b: prompt id -> mean score of that arm.

    Raises:
        BadInput: the arms share fewer than two prompts.
    """
    shared = sorted(of_a.keys() & of_b.keys())
    if len(shared) < 2:
        raise BadInput(f"{a} and {b} share {len(shared)} prompt(s); at least two are needed for an interval")
    deltas = [of_b[key] - of_a[key] for key in shared]
    low, high = mean_interval(deltas, seed=seed, resamples=resamples)
    return Difference(a, b, math.fsum(deltas) / len(deltas), low, high, len(deltas), prompts_needed(deltas))


def mean_interval(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of at least two values; a point when they are all equal."""
    import numpy as np
    from scipy.stats import bootstrap, norm, t

    data, n = np.asarray(values, dtype=float), len(values)
    if np.ptp(data) < 1e-12:  # scipy refuses a degenerate sample
        return float(data.mean()), float(data.mean())
    level = 1 - 2 * float(norm.cdf(-math.sqrt(n / (n - 1)) * t.ppf((1 + CONFIDENCE) / 2, n - 1)))
    found = bootstrap(
        (data,), np.mean, n_resamples=resamples, confidence_level=level, method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)


def sign_flip_p(deltas: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """Two-sided p that paired differences have mean 0: scipy's permutation test, flipping signs at random."""
    import numpy as np
    from scipy.stats import permutation_test

    data = np.asarray(deltas, dtype=float)
    if not data.any():
        return 1.0
    tested = permutation_test(
        (data,), np.mean, permutation_type="samples", vectorized=True, n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(tested.pvalue)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjusted p-values: below 0.05 in the result keeps the chance of any false claim at 5 %.

    >>> holm({"length": 0.01, "tone": 0.04, "filler": 0.03})
    {'length': 0.03, 'filler': 0.06, 'tone': 0.06}
    """
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return adjusted


def win_rate(
    a: str, b: str, of_a: Mapping[str, Sequence[float]], of_b: Mapping[str, Sequence[float]], *, seed: int = 0
) -> WinRate | None:
    """How often a reply of `b` has a higher total than one of `a` to the same prompt, over all pairs of their samples.

    The interval is a bootstrap over prompts. None when they share fewer than two prompts.

    Args:
        of_a, of_b: prompt id -> totals of the samples.
    """
    shared = sorted(of_a.keys() & of_b.keys())
    if len(shared) < 2:
        return None
    shares = [_beats(of_b[key], of_a[key]) for key in shared]
    low, high = mean_interval(shares, seed=seed)
    rate = math.fsum(shares) / len(shares)
    return WinRate(a, b, rate, max(0.0, low), min(1.0, high), len(shares), "rules", pairs_needed(rate))


def _beats(ours: Sequence[float], theirs: Sequence[float]) -> float:
    points = sum(1.0 if x > y + 1e-9 else 0.5 if abs(x - y) <= 1e-9 else 0.0 for x in ours for y in theirs)
    return points / (len(ours) * len(theirs))


def verdict_rate(a: str, b: str, wins: int, losses: int, ties: int = 0) -> WinRate | None:
    """The win rate of `b` by blind verdicts, with Wilson's interval; None when nothing was decided."""
    from scipy.stats import binomtest

    decided = wins + losses
    if not decided:
        return None
    interval = binomtest(wins, decided).proportion_ci(CONFIDENCE, method="wilson")
    rate = wins / decided
    by = f"blind verdicts ({ties} ties left out)" if ties else "blind verdicts"
    return WinRate(a, b, rate, float(interval.low), float(interval.high), decided, by, pairs_needed(rate))


def prompts_needed(deltas: Sequence[float]) -> int | None:
    """Prompts at which a mean difference like this one is told from 0 with 80 % power; None when it is 0.

    >>> prompts_needed([0.1, -0.1, 0.1, 0.1])
    32
    """
    n = len(deltas)
    mean = math.fsum(deltas) / n
    if abs(mean) < 1e-12:
        return None
    variance = math.fsum((delta - mean) ** 2 for delta in deltas) / (n - 1)
    return max(2, math.ceil((Z_ALPHA + Z_POWER) ** 2 * variance / mean**2))


def pairs_needed(rate: float) -> int | None:
    """Blind pairs at which a win rate like this one is told from a coin with 80 % power; None when it is one.

    >>> pairs_needed(0.60), pairs_needed(0.65), pairs_needed(0.5)
    (194, 85, None)
    """
    gap = abs(rate - 0.5)
    if gap < 1e-12:
        return None
    return math.ceil(((Z_ALPHA * 0.5 + Z_POWER * math.sqrt(rate * (1 - rate))) / gap) ** 2)
