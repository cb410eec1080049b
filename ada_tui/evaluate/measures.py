"""From stored groups to figures per arm. Derived from texts and raw scores, so reproducible from the job directory.

Nothing of the training reward is looked at. Arms are named NAME, NAME@STEP (a checkpoint of it) or NAME#SEED (the same
arm trained once more from another seed). Anybody may import it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ada_tui.evaluate.audit import audit_config, counts_any
from ada_tui.evaluate.diversity import NO_REPLIES, Diversity, diversity
from ada_tui.jobs import JobDir
from ada_tui.protocol import Completion, Group, Outcome
from rewards import RewardConfig
from rewards.combine import total
from rewards.text import view
from rewards.types import ABSTAIN_KINDS, RawScores, Row
from rewards.uncertainty import contains_answer, stance

KNOWN_ANSWER = "known_answer"
"""Share of replies with the right answer, on rows that have one."""
FALSE_ABSTENTION = "false_abstention"
"""Share of replies that do not know or send elsewhere, on rows that can be answered."""
AUDIT_PHRASE = "audit_phrase"
"""Share of replies with a phrase of the audit list."""
SHARES = (KNOWN_ANSWER, FALSE_ABSTENTION, AUDIT_PHRASE)


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
    sampled: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Prompt id -> total of every sample."""
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """One of `SHARES` -> prompt id -> share of the samples; prompts it does not apply to left out."""
    diversity: Diversity = NO_REPLIES
    probes: Mapping[str, Any] = field(default_factory=dict)
    """What the worker measured on the model itself: reference_perplexity, neutral_perplexity, kl, token_entropy."""
    seeds: Mapping[str, float] = field(default_factory=dict)
    """Arm name with seed -> its mean total, when the arm was trained from several seeds."""

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
            "words_by_kind": _by_kind(self.words, self.kinds),
            **{name: fmean(values.values()) for name, values in self.shares.items() if values},
            **self.diversity.to_dict(),
            **self.probes,
            **({"seeds": dict(self.seeds)} if len(self.seeds) > 1 else {}),
        }

    def by_kind(self) -> dict[str, float]:
        """Mean total per kind of prompt."""
        return _by_kind(self.totals, self.kinds)


def base_name(arm: str) -> str:
    """The arm without its seed.

    >>> base_name("grpo#8"), base_name("grpo@20"), base_name("grpo")
    ('grpo', 'grpo@20', 'grpo')
    """
    return arm.partition("#")[0]


def arms_of(job: JobDir, config: RewardConfig, *, pooled: bool = False) -> dict[str, Arm]:
    """Every arm of an eval job, in the order in which they were run, scored under `config`.

    Args:
        pooled: put the seeds of an arm together (a prompt's mean is then over the samples of every seed).
    """
    by_arm: dict[str, list[Group]] = defaultdict(list)
    for group in job.groups():
        if group.source == "eval" and group.completions:
            by_arm[base_name(group.policy) if pooled else group.policy].append(group)
    probes = {
        event.name.removeprefix("probe:"): event.data
        for event in job.events()
        if isinstance(event, Outcome) and event.name.startswith("probe:")
    }
    withheld = job.job().params.get("withheld") or ()
    audit = audit_config(config, frozenset(withheld)) if withheld else None
    return {name: _arm(name, groups, config, audit, probes) for name, groups in by_arm.items()}


def _arm(
    name: str,
    groups: Sequence[Group],
    config: RewardConfig,
    audit: RewardConfig | None,
    probes: Mapping[str, Mapping[str, Any]],
) -> Arm:
    samples: dict[str, list[Completion]] = defaultdict(list)
    by_seed: dict[str, list[float]] = defaultdict(list)
    of_prompt: dict[str, Group] = {}
    for group in groups:
        key = str(group.row.get("id") or group.id)
        of_prompt.setdefault(key, group)
        samples[key] += group.completions
        by_seed[group.policy].append(fmean(_totals(group.completions, config)))
    sampled = {key: tuple(_totals(replies, config)) for key, replies in samples.items()}
    rewards: dict[str, dict[str, float]] = defaultdict(dict)
    shares: dict[str, dict[str, float]] = {share: {} for share in SHARES}
    for key, replies in samples.items():
        raws = [RawScores.from_dict(reply.raw) for reply in replies]
        rewards["guard"][key] = fmean(raw.guard for raw in raws)
        for reward in raws[0].rewards:
            values = [value for raw in raws if (value := raw.rewards.get(reward)) is not None]
            if values:
                rewards[reward][key] = fmean(values)
        for share, value in _shares(of_prompt[key], replies, raws[0].kind, config, audit):
            shares[share][key] = value
    everything = [reply for replies in samples.values() for reply in replies]
    return Arm(
        name=name,
        totals={key: fmean(values) for key, values in sampled.items()},
        rewards=dict(rewards),
        words={key: fmean(reply.words for reply in replies) for key, replies in samples.items()},
        kinds={key: str(replies[0].raw["kind"]) for key, replies in samples.items()},
        samples=len(everything),
        truncated=fmean(reply.truncated for reply in everything),
        sampled=sampled,
        shares={share: values for share, values in shares.items() if values},
        diversity=diversity([reply.text for reply in everything]),
        probes=_mean_probes([probes[policy] for policy in by_seed if policy in probes]),
        seeds={policy: fmean(values) for policy, values in by_seed.items()},
    )


def _totals(replies: Iterable[Completion], config: RewardConfig) -> list[float]:
    return [total(RawScores.from_dict(reply.raw), config) for reply in replies]


def _shares(
    group: Group, replies: Sequence[Completion], kind: str, config: RewardConfig, audit: RewardConfig | None
) -> Iterable[tuple[str, float]]:
    row = Row.from_columns(group.row)
    views = [view(reply.text) for reply in replies]
    if row.gold:
        yield KNOWN_ANSWER, fmean(contains_answer(v, row.gold) for v in views)
    if kind not in ABSTAIN_KINDS and kind != "defer" and row.answerable is not False:
        stances = [stance(v, config) for v in views]
        yield FALSE_ABSTENTION, fmean(s.abstains is not None or s.defers is not None for s in stances)
    if audit is not None:
        yield AUDIT_PHRASE, fmean(counts_any(group.prompt, reply.text, audit) for reply in replies)


def _mean_probes(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of several seeds averaged; what is no number is taken from the first."""
    merged: dict[str, Any] = {}
    for name in {key: None for probe in found for key in probe}:
        values = [probe[name] for probe in found if name in probe and probe[name] is not None]
        if values:
            numbers = all(isinstance(value, int | float) for value in values)
            merged[name] = fmean(values) if numbers else values[0]
    return merged


def _by_kind(values: Mapping[str, float], kinds: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for key, value in values.items():
        found[kinds[key]].append(value)
    return {kind: fmean(members) for kind, members in sorted(found.items())}
