"""What an arm cost: minutes of training, read from the first and last word of the jobs behind its adapter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from ada_tui.evaluate.honesty import job_of
from ada_tui.evaluate.measures import base_name
from ada_tui.jobs import JobDir
from ada_tui.protocol import JobEnded, JobStarted


def minutes(adapters: Mapping[str, str], workspace: str) -> dict[str, tuple[float, float]]:
    """Arm -> (minutes of its own training, minutes with everything it builds on), the mean over its seeds.

    Args:
        adapters: arm -> adapter folder; arms without one, and adapters from elsewhere, cost nothing that we know of.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, adapter in adapters.items():
        job = job_of(Path(workspace or ".") / adapter) if adapter and "@" not in name else None
        if job is not None:
            found[base_name(name)].append(_cost(job))
    return {name: (fmean(own for own, _ in of), fmean(whole for _, whole in of)) for name, of in found.items()}


def job_minutes(job: JobDir) -> float:
    """Minutes from the first to the last word of a job; 0 while it has not ended."""
    began = ended = 0.0
    for event in job.events():
        if isinstance(event, JobStarted):
            began = began or event.time
        elif isinstance(event, JobEnded):
            ended = event.time
    return max(0.0, ended - began) / 60


def _cost(job: JobDir) -> tuple[float, float]:
    """A job with the sampling it learned from; the same with the jobs whose adapters it started from."""
    spec = job.job()
    root = Path(spec.workspace or ".")
    own = job_minutes(job)
    source = JobDir((root / str(spec.data.get("pairs") or spec.data.get("train") or "")).parent)
    if (source.path / "job.json").is_file():
        own += job_minutes(source)
    start = str(spec.model.get("adapter") or "")
    parent = job_of(root / start) if start else None
    return own, own + (_cost(parent)[1] if parent is not None else 0.0)
