"""Runs the comparison: SFT, GRPO from several seeds, every other arm, one evaluation. What is done is kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ada_tui import jobs, launch, runs
from ada_tui.errors import JobFailed
from ada_tui.evaluate.arms import POLL, plan, train
from ada_tui.evaluate.costs import job_minutes
from ada_tui.evaluate.evaluation import Evaluation, read
from ada_tui.jobs import JobDir
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace, init
from benchmarks.worth_it.profiles import SEEDED, sections

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run."""

    name: str
    """Name of the variant: its workspace and its result file; "" = the published one."""
    profile: str
    arms: tuple[str, ...]
    seeds: int
    side_by_side: int
    train_only: bool
    chats: str = ""
    """Another chat file than the bundled one."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings over those of the profile."""
    folder: Path = ROOT / "checkpoints"
    """Where its workspace is made: beside the runs of this checkout, where git looks away."""

    def workspace(self) -> Workspace:
        return init(self.folder / "-".join(filter(None, ("worth_it", self.profile, self.name))))

    def settings(self, workspace: Workspace) -> Settings:
        values = sections(self.profile, self.changes)
        if self.chats:
            values["data"] = {"chats": [str(Path(self.chats).resolve())]}
        return workspace.settings(values)


def compare(wanted: Wanted) -> Evaluation | None:
    """Everything, up to the evaluation; None after `train_only`. Raises BadInput or JobFailed."""
    workspace = wanted.workspace()
    settings = wanted.settings(workspace)
    sft = _once(workspace, "sft", lambda: runs.start_sft(workspace, settings, title=TITLE))
    wait(sft)
    start = runs.policy(workspace, sft.id)
    grpo = _once(workspace, "grpo", lambda: runs.start_grpo(workspace, settings, start, title=TITLE))
    comparison = plan(
        workspace, settings, grpo, wanted.arms, seeds=wanted.seeds, seeded=SEEDED, checkpoints=not wanted.train_only
    )
    say(f"to do: {', '.join(task.name for task in comparison.tasks) or 'nothing but the evaluation'}")
    train(comparison, wait, side_by_side=wanted.side_by_side, told=lambda name, job: say(f"{name}: {job.id}"))
    if wanted.train_only:
        return None
    # The checkpoints of a run that was still going are known only now.
    comparison = plan(workspace, settings, grpo, wanted.arms, seeds=wanted.seeds, seeded=SEEDED, checkpoints=True)
    evaluation = comparison.start_eval()
    say(f"evaluation: {evaluation.id}")
    wait(evaluation)
    say(f"evaluated in {job_minutes(evaluation):.1f} minutes")
    return read(evaluation)


TITLE = "worth_it"


def _once(workspace: Workspace, kind: str, start: Any) -> JobDir:
    """The benchmark's own job of that kind, unless it failed or died; else a new one."""
    for job in _own(jobs.all_jobs(workspace.checkpoints), kind):
        if launch.status(job).name in ("running", "paused", "done"):
            say(f"{kind}: {job.id} is {launch.status(job).name}")
            return job
    made: JobDir = start()
    say(f"{kind}: {made.id}")
    return made


def _own(found: Iterable[JobDir], kind: str) -> Iterable[JobDir]:
    return (job for job in found if (spec := job.job()).kind == kind and spec.title == TITLE)


def wait(job: JobDir) -> None:
    """Block until `job` is done. Raises JobFailed."""
    while (status := launch.status(job)).name in ("running", "paused"):
        time.sleep(POLL)
    if status.name != "done":
        raise JobFailed(f"{job.id} is {status.name}: {status.reason}; start the benchmark again")


def say(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)
