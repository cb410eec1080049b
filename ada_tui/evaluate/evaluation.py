"""Everything an eval job says, read from its directory: arms, differences, gates, costs, examples.

`read(job)` is the one entry; the terminal, the app, markdown and HTML all show what it returns. It starts nothing and
writes nothing. Anybody may import it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ada_tui.dataset.rows import PromptRow
from ada_tui.errors import BadInput
from ada_tui.evaluate import regression
from ada_tui.evaluate.costs import minutes
from ada_tui.evaluate.gates import Gate, gates
from ada_tui.evaluate.honesty import Finding, findings
from ada_tui.evaluate.measures import Arm, arms_of, base_name
from ada_tui.evaluate.statistics import (
    Difference,
    WinRate,
    holm,
    paired_difference,
    sign_flip_p,
)
from ada_tui.evaluate.verdicts import blind_rate
from ada_tui.jobs import JobDir
from ada_tui.protocol import Completion, Group, Outcome
from rewards import RewardConfig
from rewards.combine import total
from rewards.types import RawScores, Row

EXAMPLES = 3
"""Prompts shown on each side: most improved, most worsened."""


@dataclass(frozen=True, slots=True)
class RewardDifference:
    """The difference of one reward between the reference and the subject."""

    reward: str
    difference: Difference
    p: float
    """Adjusted by Holm over all rewards."""

    @property
    def told_apart(self) -> bool:
        return self.p < 0.05

    @property
    def words(self) -> str:
        """In words; what does not survive Holm is not distinguishable, whatever its interval says."""
        d = self.difference
        if self.told_apart:
            return f"{self.reward}: {d.words} (Holm p {self.p:.3f})"
        return f"{self.reward}: not distinguishable, {d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}] (Holm p {self.p:.2f})"


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with a typical reply of both arms: the sample nearest to the arm's own mean, not the best or worst."""

    prompt: str
    kind: str
    before: str
    after: str
    before_total: float
    after_total: float
    """Means over the samples of the prompt."""


@dataclass(frozen=True, slots=True)
class Point:
    """A policy in the plane of reward and distance from SFT."""

    name: str
    kl: float
    """nats per reply."""
    total: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one comparison found."""

    job: JobDir
    reference: str
    """Arm that the subject is judged against: sft when it is there."""
    subject: str
    """Arm in question: grpo when it is there, else the last one."""
    arms: Mapping[str, Arm]
    """Seeds put together; checkpoints left out."""
    differences: list[Difference]
    rewards: list[RewardDifference]
    seeds: list[Difference]
    """Reference against each seed of the subject, when there are several."""
    gates: list[Gate]
    blind: WinRate | None
    findings: list[Finding]
    regression: Mapping[str, Mapping[str, float]]
    """Arm -> capability item -> 1 right, 0 wrong (mean over seeds)."""
    minutes: Mapping[str, tuple[float, float]]
    """Arm -> (minutes of its own training, minutes with everything it builds on)."""
    path: list[Point]
    """Checkpoints of the subject and the other trained arms, where KL was measured."""
    ceiling: list[Point]
    """Best-of-n from the reference, at the KL that selection can cost at most: ln n - (n - 1) / n."""
    better: list[Example]
    worse: list[Example]

    def difference(self, a: str, b: str) -> Difference | None:
        """The stored difference of `b` against `a`, or None."""
        return next((d for d in self.differences if (d.a, d.b) == (a, b)), None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `ada-tui eval --json`."""
        return {
            "run": self.job.id,
            "reference": self.reference,
            "subject": self.subject,
            "arms": {
                name: arm.to_dict()
                | (
                    {"minutes": self.minutes[name][0], "minutes_in_all": self.minutes[name][1]}
                    if name in self.minutes
                    else {}
                )
                | ({"regression": fmean(self.regression[name].values())} if self.regression.get(name) else {})
                for name, arm in self.arms.items()
            },
            "differences": [_plain(d) for d in self.differences],
            "rewards": [
                {"reward": r.reward, **_plain(r.difference), "holm_p": r.p, "words": r.words} for r in self.rewards
            ],
            "seeds": [_plain(d) for d in self.seeds],
            "gates": {gate.name: {"state": gate.state, "sign": gate.sign, "words": gate.words} for gate in self.gates},
            "blind": self.blind.words if self.blind else None,
            "findings": [{"arm": f.arm, "words": f.words, "fatal": f.fatal} for f in self.findings],
            "path": [{"name": p.name, "kl": p.kl, "total": p.total} for p in self.path],
            "ceiling": [{"name": p.name, "kl": p.kl, "total": p.total} for p in self.ceiling],
            "better": [_example(e) for e in self.better],
            "worse": [_example(e) for e in self.worse],
        }


def _plain(d: Difference) -> dict[str, Any]:
    return {
        "a": d.a, "b": d.b, "mean": d.mean, "ci95": [d.low, d.high], "n": d.n, "needed": d.needed, "words": d.words,
    }  # fmt: skip


def _example(e: Example) -> dict[str, Any]:
    return {
        "prompt": e.prompt, "kind": e.kind, "before": e.before, "after": e.after,
        "before_total": e.before_total, "after_total": e.after_total,
    }  # fmt: skip


def read(job: JobDir) -> Evaluation:
    """What the eval job at `job` found.

    Raises:
        BadInput: it is no eval job, or it holds fewer than two arms.
    """
    spec = job.job()
    if spec.kind != "eval":
        raise BadInput(f"{job.id}: is a {spec.kind} job; name an eval job, or the run to compare")
    config = RewardConfig.from_dict(spec.rewards)
    every = arms_of(job, config, pooled=True)
    arms = {name: arm for name, arm in every.items() if "@" not in name}
    if len(arms) < 2:
        raise BadInput(f"{job.id}: holds {len(arms)} arm(s); two are needed. The log is {job.path / 'worker.log'}")
    reference = next((name for name in ("sft", "base") if name in arms), next(iter(arms)))
    subject = "grpo" if "grpo" in arms else next(name for name in reversed(arms) if name != reference)
    blind = blind_rate(job, reference, subject)
    groups = [group for group in job.groups() if group.source == "eval" and group.completions]
    adapters = {str(name): str(path) for name, path in spec.data.get("arms", {}).items()}
    return Evaluation(
        job=job,
        reference=reference,
        subject=subject,
        arms=arms,
        differences=_differences(arms, reference, subject),
        rewards=_rewards(arms[reference], arms[subject]),
        seeds=_seeds(job, config, arms[reference], arms[subject]),
        gates=gates(arms[reference], arms[subject], arms.get("shuffled"), blind),
        blind=blind,
        findings=findings(adapters, _rows(groups), spec.workspace, spec.params.get("withheld") or ()),
        regression=_regression(job),
        minutes=minutes(adapters, spec.workspace),
        path=[Point(name, arm.probes["kl"], arm.total) for name, arm in every.items() if "kl" in arm.probes],
        ceiling=_ceiling(arms, reference, spec.data.get("best_of") or {}),
        **_examples(groups, config, arms[reference], arms[subject]),
    )


def _differences(arms: Mapping[str, Arm], reference: str, subject: str) -> list[Difference]:
    """Base against reference, reference against every other arm, then the subject against base, control and ceiling."""
    others = [name for name in arms if name not in (reference, "base")]
    pairs = [("base", reference)] if "base" in arms and reference != "base" else []
    pairs += [(reference, name) for name in others]
    rivals = [name for name in arms if name not in (reference, subject) and (name != "base" or reference != "base")]
    pairs += [(name, subject) for name in rivals]
    return [paired_difference(a, b, arms[a].totals, arms[b].totals) for a, b in pairs]


def _rewards(reference: Arm, subject: Arm) -> list[RewardDifference]:
    found: dict[str, tuple[Difference, float]] = {}
    for name, ours in subject.rewards.items():
        theirs = reference.rewards.get(name, {})
        shared = sorted(ours.keys() & theirs.keys())
        if len(shared) >= 2:
            difference = paired_difference(reference.name, subject.name, theirs, ours)
            found[name] = difference, sign_flip_p([ours[key] - theirs[key] for key in shared])
    adjusted = holm({name: p for name, (_, p) in found.items()})
    return [RewardDifference(name, difference, adjusted[name]) for name, (difference, _) in found.items()]


def _seeds(job: JobDir, config: RewardConfig, reference: Arm, subject: Arm) -> list[Difference]:
    if len(subject.seeds) < 2:
        return []
    apart = arms_of(job, config)
    return [paired_difference(reference.name, name, reference.totals, apart[name].totals) for name in subject.seeds]


def _rows(groups: Iterable[Group]) -> list[PromptRow]:
    rows = {}
    for group in groups:
        row = Row.from_columns(group.row)
        rows[row.id or group.id] = PromptRow(row.id or group.id, group.prompt, group.history, row=row)
    return list(rows.values())


def _regression(job: JobDir) -> dict[str, dict[str, float]]:
    items = [regression.Item.from_dict(item) for item in job.job().data.get("regression") or ()]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for event in job.events():
        if isinstance(event, Outcome) and event.name.startswith("regression:"):
            arm = base_name(event.name.removeprefix("regression:"))
            for key, value in regression.score(items, event.data.get("replies") or {}).items():
                found[arm][key].append(value)
    return {arm: {key: fmean(values) for key, values in of_arm.items()} for arm, of_arm in found.items()}


def _ceiling(arms: Mapping[str, Arm], reference: str, best_of: Mapping[str, Any]) -> list[Point]:
    points = [Point(reference, 0.0, arms[reference].total)] if best_of else []
    for name, n in sorted(best_of.items(), key=lambda item: int(item[1])):
        if name in arms:
            points.append(Point(name, math.log(int(n)) - (int(n) - 1) / int(n), arms[name].total))
    return points


def _examples(groups: Iterable[Group], config: RewardConfig, before: Arm, after: Arm) -> dict[str, list[Example]]:
    replies: dict[tuple[str, str], list[Completion]] = defaultdict(list)
    prompts: dict[str, str] = {}
    for group in groups:
        key = str(group.row.get("id") or group.id)
        prompts[key] = group.prompt
        replies[base_name(group.policy), key] += group.completions
    gains = {key: after.totals[key] - before.totals[key] for key in before.totals.keys() & after.totals.keys()}
    order = sorted(gains, key=lambda key: (gains[key], key))

    def typical(arm: Arm, key: str) -> str:
        """The reply whose total is nearest to the mean of its prompt."""

        def distance(reply: Completion) -> float:
            return abs(total(RawScores.from_dict(reply.raw), config) - arm.totals[key])

        return min(replies[arm.name, key], key=distance).text

    def example(key: str) -> Example:
        texts = typical(before, key), typical(after, key)
        return Example(prompts[key], before.kinds[key], *texts, before.totals[key], after.totals[key])

    return {
        "better": [example(key) for key in reversed(order[-EXAMPLES:]) if gains[key] > 0],
        "worse": [example(key) for key in order[:EXAMPLES] if gains[key] < 0],
    }
