"""Paired differences with their intervals. The unit is the prompt: samples of one prompt are averaged first.

Source of the method: Efron & Tibshirani, An Introduction to the Bootstrap (1993), ch. 13; computed by scipy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ada_tui.errors import BadInput

RESAMPLES = 10_000


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


def paired_difference(
    a: str, b: str, of_a: Mapping[str, float], of_b: Mapping[str, float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Difference:
    """Mean of `of_b - of_a` over their common prompts, with a 95 % bootstrap interval over prompts (percentile).

    Args:
        of_a, of_b: prompt id -> mean score of that arm.

    Raises:
        BadInput: the arms share fewer than two prompts.
    """
    import numpy as np
    from scipy.stats import bootstrap

    shared = sorted(of_a.keys() & of_b.keys())
    if len(shared) < 2:
        raise BadInput(f"{a} and {b} share {len(shared)} prompt(s); at least two are needed for an interval")
    deltas = np.array([of_b[key] - of_a[key] for key in shared])
    mean = float(deltas.mean())
    if np.ptp(deltas) < 1e-12:  # scipy refuses a degenerate sample
        return Difference(a, b, mean, mean, mean, len(shared))
    interval = bootstrap(
        (deltas,),
        np.mean,
        n_resamples=resamples,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Difference(a, b, mean, float(interval.low), float(interval.high), len(shared))
