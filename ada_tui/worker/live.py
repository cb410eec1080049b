"""Live control of a GRPO run: the reward configuration is swapped between generation batches, probes are answered.

`GrpoBridge` is the trainer callback; `Rollouts` stands in for the trainer's own generation; `Recorder` hears from the
rewards what was scored. None of them touches anything private of the trainer. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import dataclasses
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ada_tui.errors import BadInput
from ada_tui.protocol import Alarm, Control, ControlApplied, Group, Probe, Step
from ada_tui.worker.bridge import Bridge, Figures
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampling, generate, prompt_ids, sample_groups
from ada_tui.worker.scoring import Asked, Scorer, completion, describe, reward_config
from rewards import RewardConfig, Row
from rewards.combine import totals_many, zero_spread
from rewards.own import Found
from rewards.trl import RewardSnapshot, ScoredBatch
from rewards.types import RawScores

History = list[dict[str, str]]


class Snapshot(RewardSnapshot):
    """The configuration in force, and the seconds spent scoring since they were last asked for."""

    seconds = 0.0
    lengths: Sequence[int] = ()
    """Tokens of every completion of the newest batch."""

    def batch(self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]) -> ScoredBatch:
        began = time.monotonic()
        self.lengths = [len(ids) for ids in columns["completion_ids"]]
        try:
            return super().batch(prompts, completions, columns)
        finally:
            self.seconds += time.monotonic() - began

    def take_seconds(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds


class Rollouts:
    """TRL's `rollout_func`: replies by our `generate` instead of the trainer's own loop."""

    def __init__(self, context: JobContext, tokenizer: Any, group: int, sampling: Sampling) -> None:
        self.context, self.tokenizer, self.group, self.sampling = context, tokenizer, group, sampling
        self._seconds = 0.0

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """`prompts` holds every prompt `group` times in a row; so do the lists that are returned."""
        began = time.monotonic()
        model = trainer.accelerator.unwrap_model(trainer.model)
        unique = prompt_ids(self.tokenizer, prompts[:: self.group])
        replies = generate(
            model, unique, self.group, self.sampling, pad=self.tokenizer.pad_token_id, check=self.context.check
        )
        self._seconds += time.monotonic() - began
        return {
            "prompt_ids": [ids for ids in unique for _ in range(self.group)],
            "completion_ids": [ids for group in replies for ids in group],
            "logprobs": None,  # the trainer computes them itself
        }

    def take_seconds(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """What our own look at the groups of a step found."""

    zero_spread: dict[str, float]
    """Share of groups within which this reward does not differ."""
    dead: int
    groups: int


class Recorder:
    """Observer of the rewards: writes groups.jsonl and keeps the figures of the newest generation batch."""

    def __init__(
        self, context: JobContext, *, policy: Callable[[], str], lengths: Callable[[], Sequence[int]],
        histories: Mapping[str, History],
    ) -> None:  # fmt: skip
        """`policy` names who speaks right now, `lengths` the tokens per completion; `histories`: turns by row id."""
        self.context, self.policy, self.lengths, self.histories = context, policy, lengths, histories
        self.step = 1
        self.control_version = 0
        self.spread: Spread | None = None

    def __call__(self, scored: ScoredBatch) -> None:
        members: dict[int, list[int]] = {}
        for i, group in enumerate(scored.groups):
            members.setdefault(group, []).append(i)
        faults: dict[int, list[str]] = {}
        for group, fault in scored.faults:
            faults.setdefault(group, []).append(fault.reward)
            self.context.emit(
                Alarm(kind="reward_fault", detail=describe(fault), action="mend the reward's code", step=self.step)
            )
        for number, where in members.items():
            self.context.group(self._record(scored, number, where, sorted(set(faults.get(number, [])))))
        self.spread = measure_spread(
            [[scored.cards[i].raw for i in where] for where in members.values()], scored.config
        )

    def _record(self, scored: ScoredBatch, number: int, where: list[int], dropped: list[str]) -> Group:
        row: Row = scored.rows[where[0]]
        tokens = self.lengths()
        return Group(
            id=f"{self.step}-{number}", batch_id=self.step, step=self.step, source="train", policy=self.policy(),
            prompt=scored.prompts[where[0]], history=self.histories.get(row.id, []), row=row.to_columns(),
            kind_by=scored.cards[where[0]].kind_by, control_version=self.control_version,
            completions=[
                completion(scored.cards[i], scored.completions[i], tokens[i], scored.truncated[i], dropped)
                for i in where
            ],
        )  # fmt: skip


def measure_spread(groups: list[list[RawScores]], config: RewardConfig) -> Spread:
    """Per reward the share of groups without a spread, and the groups whose totals are all equal."""
    flat: dict[str, list[bool]] = {}
    for raws in groups:
        columns: dict[str, list[float | None]] = {
            name: [raw.rewards.get(name) for raw in raws] for name in raws[0].rewards
        }
        columns |= {"guard": [raw.guard for raw in raws], "substance": [raw.substance for raw in raws]}
        for name, values in columns.items():
            flat.setdefault(name, []).append(zero_spread(values))
    dead = sum(zero_spread(totals_many(raws, config)) for raws in groups)
    return Spread({name: sum(values) / len(values) for name, values in flat.items()}, dead, len(groups))


class GrpoBridge(Bridge):
    """`Bridge` plus rewards: takes over control records before each generation batch and answers probes."""

    def __init__(
        self, context: JobContext, *, steps: int, save_every: int, iterations: int, snapshot: Snapshot,
        recorder: Recorder, rollouts: Rollouts, own: Found,
    ) -> None:  # fmt: skip
        """`iterations`: optimiser steps per generation batch."""
        super().__init__(context, steps=steps, save_every=save_every, verb="grpo")
        self.iterations = iterations
        self.snapshot, self.recorder, self.rollouts = snapshot, recorder, rollouts
        self.own = own
        self._probed: set[str] = set()

    def about(self) -> Figures:
        return {"rewards": self.snapshot.config.fingerprint()}

    def listen(self) -> None:
        wanted = self.context.control()
        if wanted.version > self._answered:
            self._answered = wanted.version
            self._apply(wanted)
        super().listen()  # the version is answered; what is left there is "save now"
        if self.step % self.iterations == 0:  # a generation batch comes next
            self.recorder.step = self.step + 1
            self.recorder.control_version = self._answered
        for probe in wanted.probes:
            if probe.id not in self._probed and not self.context.stopping:
                self._probed.add(probe.id)
                self._answer(probe)

    def _apply(self, wanted: Control) -> None:
        changed = [name for name, on in (("paused", wanted.paused), ("stop", wanted.stop)) if on]
        error = None
        try:
            config = reward_config(self.context, self.own, wanted.rewards)
            difference = differences(self.snapshot.config, config)
            if difference and config.aggregation == "normalize_then_sum":
                raise BadInput("live edits need aggregation = sum_then_normalize: here TRL holds the weights")
            self.snapshot.config = config
            changed = difference + changed
        except BadInput as refused:
            error = str(refused)
        at = -(-self.step // self.iterations) * self.iterations + 1  # the next generation batch
        self.context.emit(ControlApplied(version=wanted.version, step=at, changed=changed, error=error))

    def _answer(self, probe: Probe) -> None:
        """Sample a group for the person's own prompt, between two steps."""
        self.context.phase("probe", probe.prompt[:80])
        asked = Asked(probe.prompt, [], Row())
        tokenizer = self.rollouts.tokenizer
        chats = [self.context.persona.messages([], probe.prompt)]
        sampling = dataclasses.replace(self.rollouts.sampling, seed=zlib.crc32(probe.id.encode()))
        for _, replies in sample_groups(
            self.model, tokenizer, chats, probe.n, sampling, rows=probe.n, check=self.context.check
        ):
            scorer = Scorer(self.snapshot.config, self.snapshot.own)
            group, _ = scorer.score(
                asked, replies, id=probe.id, batch_id=-len(self._probed), source="probe",
                policy=self.recorder.policy(), step=self.step, control_version=self._answered,
            )  # fmt: skip
            self.context.group(group)

    def figures(self, step: int, logs: Figures) -> Step:
        names = [key.split("/")[1] for key in logs if key.startswith("rewards/") and key.endswith("/mean")]
        parts = [name for name in names if name != "total"]
        spread = self.recorder.spread
        generate, score = self.rollouts.take_seconds(), self.snapshot.take_seconds()
        base = super().figures(step, logs)
        return dataclasses.replace(
            base,
            reward=logs.get("rewards/total/mean"),
            reward_std=logs.get("rewards/total/std"),
            rewards={name: logs.get(f"rewards/{name}/mean") for name in parts},
            reward_stds={name: logs.get(f"rewards/{name}/std") for name in parts},
            zero_spread=dict(spread.zero_spread) if spread else {},
            dead_groups=spread.dead if spread else None,
            groups=spread.groups if spread else None,
            kl=logs.get("kl"),
            length=logs.get("completions/mean_length"),
            truncated=logs.get("completions/clipped_ratio"),
            control_version=self.recorder.control_version,
            timings={"generate": generate, "score": score, "train": max(0.0, self._seconds - generate - score)},
        )


def differences(old: RewardConfig, new: RewardConfig) -> list[str]:
    """What an edit changed, one short line each: "weights.length 1 -> 2", "fillers +2 -1", "lexicons.casual"."""
    lines = []
    for table, before, after in (
        ("weights", old.weights, new.weights),
        ("parameters", old.parameters, new.parameters),
    ):
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                lines.append(f"{table}.{name} {_number(before.get(name))} -> {_number(after.get(name))}")
    for kind in sorted({*old.focus, *new.focus}):
        if dict(old.focus.get(kind, {})) != dict(new.focus.get(kind, {})):
            lines.append(f"focus.{kind}")
    if added_removed := _added_removed(old.fillers, new.fillers):
        lines.append(f"fillers {added_removed}")
    names = sorted({*old.lexicons, *new.lexicons})
    lines += [f"lexicons.{name}" for name in names if old.lexicons.get(name) != new.lexicons.get(name)]
    if old.fuzzy != new.fuzzy:
        lines.append(f"fuzzy {old.fuzzy} -> {new.fuzzy}")
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _added_removed(old: Iterable[Any], new: Iterable[Any]) -> str:
    before, after = set(old), set(new)
    parts = [f"+{len(after - before)}" if after - before else "", f"-{len(before - after)}" if before - after else ""]
    return " ".join(filter(None, parts))
