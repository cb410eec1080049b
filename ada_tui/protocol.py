"""What the worker and the app say to each other: every event, the control record, the job record, the group record.

Frozen dataclasses, one line of JSON each. Not here: files (`jobs.py`), folding (`store.py`), any rule.
Anybody may import it; it imports only the standard library and orjson.

Compatibility: a reader ignores unknown types and unknown fields, and fills missing ones with the defaults below; so a
newer worker and an older app understand each other. `SCHEMA` rises only when the meaning of an existing field changes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import orjson

SCHEMA = 1

JOB_KINDS = ("sft", "grpo", "dpo", "sample", "eval", "export")
STATUSES = ("running", "paused", "done", "stopped", "failed", "dead")


# --- worker -> events.jsonl -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of everything in events.jsonl. `time` is seconds since the epoch, set by the writer."""

    type: ClassVar[str] = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    """The worker runs. Written again when the number of steps is known, and by a resumed worker (`resumed_from`)."""

    type: ClassVar[str] = "job_started"
    kind: str = ""
    pid: int = 0
    host: str = ""
    steps: int = 0
    """Optimiser steps (sft, grpo, dpo), groups (sample), prompts (eval) or stages (export) to do."""
    resumed_from: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoaded(Event):
    """What is in memory, with the proof that the right adapter is trained."""

    type: ClassVar[str] = "model_loaded"
    backend: str = ""
    reason: str = ""
    """Why this backend was chosen."""
    device: str = ""
    dtype: str = ""
    model: str = ""
    adapter: str = ""
    adapter_hash: str = ""
    rank: int = 0
    parameters: int = 0
    trainable: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Event):
    """What is going on right now, for the status line and the stage list."""

    type: ClassVar[str] = "phase"
    name: str = ""
    detail: str = ""
    fraction: float | None = None
    """0..1 within the phase; None = not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """One optimiser step. Missing figures are None, never 0."""

    type: ClassVar[str] = "step"
    step: int = 0
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    reward: float | None = None
    """Mean trained reward (the total) of the batch this step learned from."""
    reward_std: float | None = None
    rewards: dict[str, float | None] = field(default_factory=dict)
    """Mean raw score per reward, guard and substance included."""
    reward_stds: dict[str, float | None] = field(default_factory=dict)
    zero_spread: dict[str, float | None] = field(default_factory=dict)
    """Share of groups within which this reward does not differ (0..1)."""
    dead_groups: int | None = None
    """Groups whose totals are all equal: they teach nothing."""
    groups: int | None = None
    kl: float | None = None
    entropy: float | None = None
    length: float | None = None
    """Mean completion length in tokens."""
    truncated: float | None = None
    """Share of completions cut at the cap (0..1)."""
    tokens: int | None = None
    seconds: float | None = None
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds by part of the step: generate, score, train."""
    control_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Event):
    """One memory reading, once a second; it is the heartbeat as well. Bytes; None = cannot be read here."""

    type: ClassVar[str] = "memory"
    rss: int | None = None
    host_available: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    peak: int | None = None
    device_used: int | None = None
    device_total: int | None = None
    util: float | None = None
    """Device utilisation in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlApplied(Event):
    """The worker took over control record `version` from generation batch `step` on; or refused it (`error`)."""

    type: ClassVar[str] = "control_applied"
    version: int = 0
    step: int = 0
    changed: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm(Event):
    """Something a person should look at. `action` says what to do about it."""

    type: ClassVar[str] = "alarm"
    kind: str = ""
    detail: str = ""
    action: str = ""
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Event):
    """An adapter (or another product) stands complete at `path`, relative to the job directory."""

    type: ClassVar[str] = "saved"
    path: str = ""
    step: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Event):
    """A named result of the job: the measures of an arm, the files of an export."""

    type: ClassVar[str] = "outcome"
    name: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """The worker's last word. `status` is done, stopped or failed."""

    type: ClassVar[str] = "job_ended"
    status: str = "done"
    error: str | None = None
    """One line: what, where, what to do."""
    traceback: str | None = None


EVENTS: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (JobStarted, ModelLoaded, Phase, Step, Memory, ControlApplied, Alarm, Saved, Outcome, JobEnded)
}


# --- worker -> groups.jsonl -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One sampled reply with the raw scores it got. Totals, ranks and advantages are derived, never stored."""

    text: str = ""
    tokens: int = 0
    truncated: bool = False
    words: int = 0
    raw: dict[str, Any] = field(default_factory=dict)
    """`rewards.RawScores.to_dict()`."""
    dropped: list[str] = field(default_factory=list)
    """Rewards that were faulty for this group, hence missing from every total in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All completions sampled for one prompt at one time."""

    type: ClassVar[str] = "group"
    id: str = ""
    batch_id: int = 0
    """Groups of one generation batch share it: batch scaling of advantages is over them."""
    step: int = 0
    source: str = "train"
    """train, sample, probe or eval."""
    policy: str = ""
    """Who spoke: "base", "sft", or a run id with its step, e.g. "grpo-1:step-20"."""
    prompt: str = ""
    history: list[dict[str, str]] = field(default_factory=list)
    """Earlier turns as {role, content}, the system turn left out."""
    row: dict[str, Any] = field(default_factory=dict)
    """`rewards.Row.to_columns()`."""
    kind_by: str = ""
    control_version: int = 0
    completions: list[Completion] = field(default_factory=list)
    time: float = 0.0


# --- app -> job.json, control.json ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked, written once when the job directory is made. Everything the worker needs stands in here."""

    schema: int = SCHEMA
    id: str = ""
    kind: str = "grpo"
    title: str = ""
    created: float = 0.0
    workspace: str = ""
    """Absolute path. Data paths below are relative to it or absolute."""
    parent: str = ""
    """Run id whose adapter this job starts from ("" = none)."""
    model: dict[str, Any] = field(default_factory=dict)
    """{"base": "embedded" | folder | hub id, "adapter": folder or "", ...}: `settings.ModelSettings`."""
    persona: dict[str, Any] = field(default_factory=dict)
    """{"name", "system", "sampling": {...}}: `persona.Persona`."""
    data: dict[str, Any] = field(default_factory=dict)
    """{"train": path, "held_out": path} of prompt rows, or {"prompts": [...]} for a sample job."""
    rewards: dict[str, Any] = field(default_factory=dict)
    """`rewards.RewardConfig.to_dict()` at the start."""
    params: dict[str, Any] = field(default_factory=dict)
    """The settings section of this kind: `settings.SftSettings`, `GrpoSettings`, ..."""
    seed: int = 0
    version: str = ""
    """ada-tui's version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A request to sample a group now, between two steps."""

    id: str = ""
    prompt: str = ""
    n: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What is wanted NOW. Declarative: the newest record is the whole truth, so a lost one costs nothing."""

    version: int = 0
    rewards: dict[str, Any] | None = None
    """The whole reward configuration; None = as in job.json."""
    paused: bool = False
    stop: bool = False
    save: int = 0
    """Counter: a rise asks for one more checkpoint."""
    probes: list[Probe] = field(default_factory=list)


# --- one line of JSON each --------------------------------------------------------------------------------------------

Record = Event | Group | Job | Control
R = TypeVar("R", Job, Control, Group)


class NotARecord(ValueError):
    """The line is no JSON object, or a known field has an impossible value."""


def encode(record: Record) -> bytes:
    """One line of JSON with its newline. Non-finite numbers become null, lone surrogates become U+FFFD."""
    plain = finite(dataclasses.asdict(record))
    if type_name := getattr(type(record), "type", None):
        plain = {"type": type_name, **plain}
    try:
        return orjson.dumps(plain) + b"\n"
    except orjson.JSONEncodeError:
        return orjson.dumps(_without_surrogates(plain)) + b"\n"


def decode_event(line: bytes) -> Event | None:
    """The event in `line`, or None for a type this version does not know.

    Raises:
        NotARecord: the line is not a JSON object.
    """
    data = _object(line)
    name = data.get("type", "")
    if not isinstance(name, str):
        raise NotARecord(f"an event type cannot be {name!r:.60}")
    cls = EVENTS.get(name)
    return None if cls is None else _build(cls, data)


def decode_group(line: bytes) -> Group:
    """The group in `line`. Raises NotARecord."""
    return group_from_dict(_object(line))


def group_from_dict(data: Mapping[str, Any]) -> Group:
    """A group from its plain form. Raises NotARecord."""
    completions = data.get("completions") or []
    if not isinstance(completions, list) or not all(isinstance(item, dict) for item in completions):
        raise NotARecord("'completions' must be a list of objects")
    group = _build(Group, data)
    return dataclasses.replace(group, completions=[_build(Completion, item) for item in completions])


def decode_job(data: bytes) -> Job:
    """The job record. Raises NotARecord, also for a schema newer than ours."""
    plain = _object(data)
    if not isinstance(plain.get("schema"), int) or plain["schema"] > SCHEMA:
        raise NotARecord(f"job schema {plain.get('schema')!r} is newer than {SCHEMA}: update ada-tui")
    job = _build(Job, plain)
    if job.kind not in JOB_KINDS:
        raise NotARecord(f"unknown job kind {job.kind!r}; known are {', '.join(JOB_KINDS)}")
    return job


def decode_control(data: bytes) -> Control:
    """The control record. Raises NotARecord."""
    plain = _object(data)
    probes = plain.get("probes") or []
    if not isinstance(probes, list) or not all(isinstance(item, dict) for item in probes):
        raise NotARecord("'probes' must be a list of objects")
    return dataclasses.replace(_build(Control, plain), probes=[_build(Probe, item) for item in probes])


def finite(value: Any) -> Any:
    """`value` with every NaN and infinity in it replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def _object(line: bytes) -> dict[str, Any]:
    try:
        data = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise NotARecord(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise NotARecord(f"a JSON {type(data).__name__}, not an object")
    return data


_SHAPES: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "bool": (bool,), "float": (int, float),
    "float | None": (int, float, type(None)), "int | None": (int, type(None)), "str | None": (str, type(None)),
}  # fmt: skip
T = TypeVar("T")


def _build(cls: type[T], data: Mapping[str, Any]) -> T:
    """`cls` from plain data: unknown fields ignored, missing ones defaulted, wrongly typed ones refused."""
    values: dict[str, Any] = {}
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        if f.name not in data:
            continue
        value, annotation = data[f.name], str(f.type)
        wanted = _SHAPES.get(annotation)
        if wanted is None:
            wanted = (list,) if annotation.startswith("list") else (dict,)
            if annotation.endswith("| None"):
                wanted = (*wanted, type(None))
        if value is None and type(None) not in wanted:
            continue  # null = not known: the default says the same
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise NotARecord(f"{cls.__name__}.{f.name} cannot be {value!r:.60}")
        values[f.name] = value
    return cls(**values)
