"""The person's own runs against the estimate, and the machine's overhead fitted to them. Anybody may import it.

A run's job.json and effective arguments give the request, its memory events the measured peaks. The difference to the
estimate becomes this machine's workspace and overhead, kept in the cache folder (`plan.json`), never in the repository.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ada_tui import batching
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, write_atomic
from ada_tui.planner.constants import ACTIVATIONS, OVERHEAD, Activations, Overhead
from ada_tui.planner.memory import Request, estimate
from ada_tui.planner.shapes import resolve
from ada_tui.protocol import Job, Memory, ModelLoaded, Outcome, Step

SETTLED = 2
"""Steps after which a run's peak counts as measured: the optimiser's state exists from the second on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A finished or running job: estimated and measured, in bytes. Measured values are None where nothing was read."""

    run: str
    request: Request
    predicted: int
    """Estimated peak of torch's allocations."""
    measured: int | None
    reserved: int | None
    device: int | None
    """Most that was taken on the device, by all processes."""
    seconds: tuple[float, float] | None
    """Shortest and longest step after the first."""

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return None if not self.measured else (self.predicted - self.measured) / self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What this machine adds to or takes from the estimate."""

    workspace: int
    """Bytes to add to the model's workspace; may be negative."""
    context: int | None
    """Bytes of context and of what else lies on the device; None = as measured elsewhere."""
    slack: int | None
    """Bytes that the allocator keeps beyond the peak; None = as measured elsewhere."""
    runs: tuple[str, ...]

    def activations(self, request: Request) -> Activations:
        use = ACTIVATIONS[request.backend, request.bits]
        return dataclasses.replace(use, workspace=use.workspace + self.workspace)

    def overhead(self, request: Request) -> Overhead:
        use = OVERHEAD[request.backend, request.bits]
        if self.context is not None:
            use = dataclasses.replace(use, context=self.context)
        if self.slack is not None:
            use = dataclasses.replace(use, slack_base=self.slack, slack_share=0.0)
        return use


def request_of(job: Job, *, cap: int = 0, rank: int = 0, backend: str = "") -> Request:
    """The planner's request for a GRPO job.

    Args:
        job: the job record.
        cap: completion cap in tokens; the job's own when it names one.
        rank, backend: as loaded; the job's own settings when 0 or "".

    Raises:
        BadInput: no GRPO job, or a base model whose sizes are not known here.
    """
    if job.kind != "grpo":
        raise BadInput(f"{job.id}: a {job.kind} job; the planner compares grpo jobs")
    params = job.params
    try:
        batch = batching.plan(int(params["group"]), int(params["prompts_per_step"]))
        wanted = backend or str(job.model.get("backend") or "auto")
        lora = params.get("lora")
        known = int(lora["rank"]) if isinstance(lora, dict) and "rank" in lora else 64
        return Request(
            shape=resolve(str(job.model.get("base", ""))),
            backend="unsloth" if wanted == "unsloth" else "trl",
            bits=4 if job.model.get("bits") == 4 else 16,
            group=batch.group, prompts=batch.prompts, at_once=batch.per_device,
            completion=int(params["max_completion"]) or cap or 256,
            rank=rank or known,
            beta=float(params["beta"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{job.id}: job.json lacks what the planner needs ({error})") from None


def compare(job: JobDir) -> Comparison:
    """Estimate and measurement of one run. Raises BadInput."""
    record = job.job()
    loaded, cap, seconds, readings = ModelLoaded(), 0, [], []
    for event in job.events():
        if isinstance(event, ModelLoaded):
            loaded = event
        elif isinstance(event, Outcome) and event.name == "effective_args":
            cap = int(event.data.get("cap") or 0)
        elif isinstance(event, Step) and event.seconds:
            seconds.append(event.seconds)
        elif isinstance(event, Memory):
            readings.append(event)
    request = request_of(record, cap=cap, rank=loaded.rank, backend=loaded.backend)
    settled = seconds[1:] if len(seconds) >= SETTLED else []
    return Comparison(
        run=job.id,
        request=request,
        predicted=estimate(request).peak.torch,
        measured=_most([reading.peak for reading in readings]),
        reserved=_most([reading.reserved for reading in readings]),
        device=_most([reading.device_used for reading in readings]),
        seconds=(min(settled), max(settled)) if settled else None,
    )


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value), default=None)


def fit(runs: Sequence[Comparison]) -> Calibration:
    """The machine's terms that make the median run right. Raises BadInput when no run has a measured peak."""
    usable = [run for run in runs if run.measured]
    if not usable:
        names = ", ".join(run.run for run in runs)
        raise BadInput(f"{names}: no peak was measured (the run used no CUDA device); calibrate with a run on your GPU")
    context = [run.device - run.reserved for run in usable if run.device and run.reserved]
    slack = [run.reserved - run.measured for run in usable if run.reserved and run.measured]
    return Calibration(
        workspace=int(statistics.median((run.measured or 0) - run.predicted for run in usable)),
        context=int(statistics.median(context)) if context else None,
        slack=int(statistics.median(slack)) if slack else None,
        runs=tuple(run.run for run in usable),
    )


def save(calibration: Calibration, path: Path) -> None:
    """Replace the calibration of this machine. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, orjson.dumps(dataclasses.asdict(calibration), option=orjson.OPT_INDENT_2) + b"\n")


def load(path: Path) -> Calibration | None:
    """The calibration of this machine, or None. Raises BadInput when the file is broken."""
    try:
        data: Any = orjson.loads(path.read_bytes())
        return Calibration(
            workspace=int(data["workspace"]),
            context=None if data["context"] is None else int(data["context"]),
            slack=None if data["slack"] is None else int(data["slack"]),
            runs=tuple(str(run) for run in data["runs"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise BadInput(f"{path}: not a calibration; delete it and run `ada-tui plan --calibrate RUN` again") from None
