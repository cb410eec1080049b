"""From stored groups to figures per arm: totals, every reward, length. Derived from raw scores, so reproducible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ada_tui.jobs import JobDir
from ada_tui.protocol import Group
from rewards import RewardConfig
from rewards.combine import total
from rewards.types import RawScores


@dataclass(frozen=True, slots=True)
class Arm:
    """What one policy did on the held-out rows. Dictionaries are prompt id -> mean over the samples of that prompt."""

    name: str
    totals: Mapping[str, float]
    rewards: Mapping[str, Mapping[str, float]]
    """Reward name -> prompt id -> mean raw score; guard included; prompts without an opinion left out."""
    words: Mapping[str, float]
    kinds: Mapping[str, str]
    """Prompt id -> kind."""
    samples: int
    truncated: float
    """Share of replies that were cut at the cap."""

    @property
    def total(self) -> float:
        """Mean total over prompts."""
        return fmean(self.totals.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready summary."""
        return {
            "total": self.total,
            "rewards": {name: fmean(values.values()) for name, values in self.rewards.items() if values},
            "words": fmean(self.words.values()),
            "prompts": len(self.totals),
            "samples": self.samples,
            "truncated": self.truncated,
            "kinds": self.by_kind(),
        }

    def by_kind(self) -> dict[str, float]:
        """Mean total per kind of prompt."""
        found: dict[str, list[float]] = defaultdict(list)
        for key, value in self.totals.items():
            found[self.kinds[key]].append(value)
        return {kind: fmean(values) for kind, values in sorted(found.items())}


def arms_of(job: JobDir, config: RewardConfig) -> dict[str, Arm]:
    """Every arm of an eval job, in the order in which they were run, scored under `config`."""
    by_arm: dict[str, list[Group]] = defaultdict(list)
    for group in job.groups():
        if group.source == "eval":
            by_arm[group.policy].append(group)
    return {name: _arm(name, groups, config) for name, groups in by_arm.items()}


def _arm(name: str, groups: Iterable[Group], config: RewardConfig) -> Arm:
    totals: dict[str, float] = {}
    rewards: dict[str, dict[str, float]] = defaultdict(dict)
    words: dict[str, float] = {}
    kinds: dict[str, str] = {}
    cut: list[bool] = []
    for group in groups:
        key = str(group.row.get("id") or group.id)
        raws = [RawScores.from_dict(completion.raw) for completion in group.completions]
        totals[key] = fmean(total(raw, config) for raw in raws)
        words[key] = fmean(completion.words for completion in group.completions)
        kinds[key] = raws[0].kind
        cut += [completion.truncated for completion in group.completions]
        rewards["guard"][key] = fmean(raw.guard for raw in raws)
        for reward in raws[0].rewards:
            values = [value for raw in raws if (value := raw.rewards.get(reward)) is not None]
            if values:
                rewards[reward][key] = fmean(values)
    return Arm(name, totals, dict(rewards), words, kinds, len(cut), fmean(cut))
