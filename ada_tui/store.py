"""RunStore: folds what a worker wrote into what a screen asks for: curves, phases, alarms, an index of the groups.

No I/O and no UI: `ui/session.py` (or a test) reads the lines and hands them in. Texts of completions are not kept, only
the offset at which their group stands in groups.jsonl. Anybody may import it; not thread-safe, one owner folds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from ada_tui.protocol import (
    Alarm,
    ControlApplied,
    Event,
    JobEnded,
    JobStarted,
    Memory,
    ModelLoaded,
    NotARecord,
    Outcome,
    Phase,
    Saved,
    Step,
)
from ada_tui.series import Series
from rewards.types import RawScores

ALARMS = 200
"""Alarms kept; older ones fall out."""

PROMPT_KEPT = 240
"""Characters of a prompt that the index keeps for lists; the whole prompt is on disk."""

TOPICS = ("life", "phase", "steps", "memory", "control", "alarms", "products", "groups")
"""What can have changed in a fold; a screen repaints by these."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupEntry:
    """One stored group without its texts: enough to rank it, to list it and to find it on disk."""

    offset: int
    """Where its line starts in groups.jsonl."""
    id: str
    batch_id: int
    step: int
    source: str
    policy: str
    prompt: str
    """The first characters of the prompt, raw."""
    row_id: str
    kind: str
    kind_by: str
    control_version: int
    time: float
    raws: tuple[RawScores, ...]
    """Raw scores per completion; rewards that were faulty for the group have no opinion."""
    tokens: tuple[int, ...]
    words: tuple[int, ...]
    truncated: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.raws)


@dataclass(slots=True)
class Stage:
    """A phase the job went through, or is in."""

    name: str
    detail: str
    fraction: float | None
    started: float
    ended: float | None = None


@dataclass(slots=True)
class RunStore:
    """The state of one job as far as its files tell."""

    started: JobStarted | None = None
    model: ModelLoaded | None = None
    ended: JobEnded | None = None
    applied: ControlApplied | None = None
    """The newest control record that the worker took over or refused."""
    last_event: float = 0.0
    """When the worker last said anything (seconds since the epoch)."""
    step: Step | None = None
    memory: Memory | None = None
    stages: list[Stage] = field(default_factory=list)
    regimes: list[ControlApplied] = field(default_factory=list)
    """Where in the run the control changed: curves mark them."""
    alarms: deque[Alarm] = field(default_factory=lambda: deque(maxlen=ALARMS))
    saved: list[Saved] = field(default_factory=list)
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    curves: dict[str, Series] = field(default_factory=dict)
    """Per name: "loss", "reward", "reward/length", "kl", ... over steps; "memory/rss", ... over seconds."""
    groups: list[GroupEntry] = field(default_factory=list)
    _place: dict[str, int] = field(default_factory=dict)
    _batches: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    _origin: float = 0.0

    @property
    def stage(self) -> Stage | None:
        """What is going on now (or went on last)."""
        return self.stages[-1] if self.stages else None

    @property
    def steps_wanted(self) -> int:
        return self.started.steps if self.started else 0

    def fold(self, event: Event) -> str:
        """Take in one event; returns the topic that changed."""
        self.last_event = max(self.last_event, event.time)
        match event:
            case Step():
                self._fold_step(event)
                return "steps"
            case Memory():
                self._fold_memory(event)
                return "memory"
            case Phase():
                self._fold_phase(event)
                return "phase"
            case ControlApplied():
                self.applied = event
                if event.error is None:
                    self.regimes.append(event)
                return "control"
            case Alarm():
                self.alarms.append(event)
                return "alarms"
            case Saved():
                self.saved.append(event)
                return "products"
            case Outcome():
                self.outcomes[event.name] = event.data
                return "products"
            case JobStarted():
                self._fold_start(event)
            case ModelLoaded():
                self.model = event
            case JobEnded():
                self.ended = event
                self._close_stage(event.time)
        return "life"

    def add(self, entry: GroupEntry) -> None:
        """Take in one group; a group seen before (same id) is replaced in its place."""
        known = self._place.get(entry.id)
        if known is not None:
            self.groups[known] = entry
            return
        self._place[entry.id] = len(self.groups)
        self._batches.setdefault((entry.source, entry.batch_id), []).append(len(self.groups))
        self.groups.append(entry)

    def batch(self, entry: GroupEntry) -> list[GroupEntry]:
        """The groups of one generation batch, `entry` among them: batch scaling of advantages is over them.

        Only training has batches; a sampled or evaluated group stands alone.
        """
        if entry.source != "train":
            return [entry]
        return [self.groups[index] for index in self._batches[entry.source, entry.batch_id]]

    def group(self, group_id: str) -> GroupEntry | None:
        place = self._place.get(group_id)
        return None if place is None else self.groups[place]

    def forget_groups(self) -> None:
        """groups.jsonl was written anew."""
        self.groups.clear()
        self._place.clear()
        self._batches.clear()

    # -- folding

    def _fold_start(self, event: JobStarted) -> None:
        self.started, self.ended = event, None
        self._origin = self._origin or event.time
        if event.resumed_from is not None:
            for name, series in self.curves.items():
                if not name.startswith("memory/"):
                    series.cut(event.resumed_from)

    def _fold_step(self, event: Step) -> None:
        self.step = event
        flat = {
            "loss": event.loss, "lr": event.lr, "grad_norm": event.grad_norm, "reward": event.reward,
            "reward_std": event.reward_std, "kl": event.kl, "entropy": event.entropy, "length": event.length,
            "truncated": event.truncated, "seconds": event.seconds,
        }  # fmt: skip
        for name, value in flat.items():
            self._point(name, event.step, value)
        for name, value in event.rewards.items():
            self._point(f"reward/{name}", event.step, _number(value))
        if event.dead_groups is not None and event.groups:
            self._point("dead", event.step, event.dead_groups / event.groups)

    def _fold_memory(self, event: Memory) -> None:
        self.memory = event
        self._origin = self._origin or event.time
        seconds = event.time - self._origin
        for name in ("rss", "allocated", "reserved", "device_used"):
            self._point(f"memory/{name}", seconds, getattr(event, name))

    def _fold_phase(self, event: Phase) -> None:
        current = self.stage
        if current is not None and current.ended is None and current.name == event.name:
            current.detail, current.fraction = event.detail, event.fraction
            return
        self._close_stage(event.time)
        if len(self.stages) >= 1000:  # a long run alternates between phases for ever
            del self.stages[:500]
        self.stages.append(Stage(event.name, event.detail, event.fraction, event.time))

    def _close_stage(self, when: float) -> None:
        if self.stages and self.stages[-1].ended is None:
            self.stages[-1].ended = when

    def _point(self, name: str, x: float, value: float | None) -> None:
        """A curve begins with its first number: a measure that a job kind does not have draws no empty chart."""
        series = self.curves.get(name)
        if series is None:
            if value is None:
                return
            series = self.curves[name] = Series()
        series.append(x, value)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def index_group(line: bytes, offset: int) -> GroupEntry:
    """The index entry of one line of groups.jsonl. Several times faster than `protocol.decode_group`, texts left out.

    Raises:
        NotARecord: the line is no group, or its raw scores cannot be read.
    """
    try:
        data = orjson.loads(line)
        row = data.get("row") or {}
        completions = data["completions"]
        raws = tuple(_raw(item) for item in completions)
        return GroupEntry(
            offset=offset,
            id=str(data.get("id") or offset),
            batch_id=int(data.get("batch_id") or 0),
            step=int(data.get("step") or 0),
            source=str(data.get("source") or "train"),
            policy=str(data.get("policy") or ""),
            prompt=str(data.get("prompt") or "")[:PROMPT_KEPT],
            row_id=str(row.get("id") or ""),
            kind=raws[0].kind if raws else str(row.get("kind") or ""),
            kind_by=str(data.get("kind_by") or ""),
            control_version=int(data.get("control_version") or 0),
            time=float(data.get("time") or 0.0),
            raws=raws,
            tokens=tuple(int(item.get("tokens") or 0) for item in completions),
            words=tuple(int(item.get("words") or 0) for item in completions),
            truncated=tuple(bool(item.get("truncated")) for item in completions),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotARecord(f"not a group: {error!r:.80}") from None


def _raw(item: dict[str, Any]) -> RawScores:
    raw = item["raw"]
    rewards: dict[str, float | None] = raw["rewards"]
    dropped = item.get("dropped")
    for name, score in rewards.items():
        if score is not None and not isinstance(score, float | int):
            raise TypeError(f"score of {name!r}")
    if dropped:
        rewards = {name: None if name in dropped else score for name, score in rewards.items()}
    substance = raw.get("substance")
    return RawScores(
        rewards=rewards,
        guard=float(raw.get("guard") or 0.0),
        gated=bool(raw.get("gated")),
        substance=None if substance is None else float(substance),
        kind=str(raw.get("kind") or ""),
        has_gold=bool(raw.get("has_gold")),
    )
