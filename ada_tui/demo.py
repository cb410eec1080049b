"""The main job on the embedded model, stage by stage: sample, SFT, GRPO, compare, export, answer.

A generator of stages, so that the command line can show bars and the app can show screens over the same code.
Every stage is the real one; only the sizes are small (`settings.DEMO_PROFILE`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ada_tui import runs
from ada_tui.errors import JobFailed
from ada_tui.evaluate import Arm, Difference, arms_of, paired_difference
from ada_tui.jobs import JobDir
from ada_tui.protocol import Outcome
from ada_tui.settings import DEMO_PROFILE, EMBEDDED, DataSettings, Settings
from ada_tui.workspace import Workspace
from rewards import RewardConfig

FIRST_WORDS = "Morning"
"""What the finished model is asked."""

SAMPLED_PROMPTS = 4
"""Held-out prompts whose groups are sampled from the base model before anything is trained."""


@dataclass(slots=True)
class Stage:
    """One stage while it runs and after it."""

    name: str
    title: str
    job: JobDir | None = None
    seconds: float = 0.0
    ok: bool = False


@dataclass(slots=True)
class Report:
    """What the demo found. Filled while it goes."""

    stages: list[Stage] = field(default_factory=list)
    arms: dict[str, Arm] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    gguf: str = ""
    modelfile: str = ""
    reply: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `ada-tui demo --headless --json`."""
        return {
            "stages": [
                {"name": s.name, "seconds": round(s.seconds, 1), "ok": s.ok, "run": s.job and s.job.id}
                for s in self.stages
            ],
            "held_out": {name: arm.total for name, arm in self.arms.items()},
            "arms": {name: arm.to_dict() for name, arm in self.arms.items()},
            "differences": [
                {"a": d.a, "b": d.b, "mean": d.mean, "ci95": [d.low, d.high], "n": d.n, "words": d.words}
                for d in self.differences
            ],
            "gguf": self.gguf,
            "modelfile": self.modelfile,
            "reply": self.reply,
        }


def profile(workspace: Workspace, steps: int | None) -> Settings:
    """The demo's settings: embedded model, bundled chats, small sizes. `steps` shortens GRPO and evaluation alike."""
    values: dict[str, dict[str, Any]] = {name: dict(section) for name, section in DEMO_PROFILE.items()}
    values["model"] = {"base": EMBEDDED, "adapter": "", "backend": "trl", "bits": 16}
    values["data"] = {"chats": DataSettings().chats, "persona": DataSettings().persona}
    if steps is not None:
        share = min(1.0, steps / values["grpo"]["steps"])
        values["grpo"]["steps"] = steps
        values["sft"]["epochs"] = max(0.25, share * values["sft"]["epochs"])
        values["evaluate"]["samples"] = 2
        values["evaluate"]["prompts"] = max(8, round(share * 60))
    return workspace.settings(values)


def run(workspace: Workspace, steps: int | None, report: Report, follow: Callable[[JobDir], Any]) -> Iterator[Stage]:
    """Run the stages in order, yielding each one when it starts (its job known as soon as there is one).

    Args:
        report: filled as the stages end.
        follow: blocks until a job has ended, e.g. with a progress bar.

    Raises:
        BadInput: something is missing. JobFailed: a stage failed; the stages before it stand in `report`.
    """
    settings = profile(workspace, steps)

    def stage(name: str, title: str, start: Callable[[], JobDir]) -> Iterator[Stage]:
        entry, began = Stage(name, title), time.monotonic()
        report.stages.append(entry)
        try:
            entry.job = start()
            yield entry
            follow(entry.job)
            entry.ok = True
        finally:
            entry.seconds = time.monotonic() - began

    prompts = _held_out_prompts(workspace, settings)
    yield from stage(
        "sample",
        "Groups from the base model",
        lambda: runs.start_sample(workspace, settings, runs.BASE, prompts, n=settings.grpo.group),
    )
    yield from stage("sft", "SFT on the chats", lambda: runs.start_sft(workspace, settings, title="demo"))
    sft = _job(report, "sft")
    yield from stage(
        "grpo",
        "GRPO with the rules",
        lambda: runs.start_grpo(workspace, settings, runs.policy(workspace, sft.id), title="demo"),
    )
    grpo = _job(report, "grpo")
    arms = {"base": runs.BASE, "sft": runs.policy(workspace, sft.id), "grpo": runs.policy(workspace, grpo.id)}
    yield from stage("eval", "Compare on held-out prompts", lambda: runs.start_eval(workspace, settings, arms, grpo))
    report.arms = arms_of(_job(report, "eval"), RewardConfig.from_dict(grpo.job().rewards))
    report.differences = [
        paired_difference(a, b, report.arms[a].totals, report.arms[b].totals)
        for a, b in (("base", "sft"), ("sft", "grpo"), ("base", "grpo"))
    ]
    yield from stage(
        "export", "GGUF for the device", lambda: runs.start_export(workspace, settings, arms["grpo"], grpo)
    )
    _read_export(_job(report, "export"), report)


def _held_out_prompts(workspace: Workspace, settings: Settings) -> list[dict[str, Any]]:
    """The question every demo ends with, then the first held-out rows of different kinds."""
    from ada_tui.dataset import load_rows, prepare

    prompts: list[dict[str, Any]] = [
        {"prompt": FIRST_WORDS, "history": [], "row": {"id": "morning", "kind": "greeting"}}
    ]
    seen = {"greeting"}
    for row in load_rows(prepare(workspace, settings).held_out):
        kind = row.row.kind or ""
        if kind not in seen and len(prompts) < SAMPLED_PROMPTS:
            seen.add(kind)
            prompts.append({"prompt": row.prompt, "history": row.history, "row": row.row.to_columns()})
    return prompts


def _job(report: Report, name: str) -> JobDir:
    job = next(stage.job for stage in report.stages if stage.name == name)
    assert job is not None
    return job


def _read_export(job: JobDir, report: Report) -> None:
    for event in job.events():
        if isinstance(event, Outcome) and event.name == "export":
            report.gguf, report.modelfile = str(event.data["gguf"]), str(event.data["modelfile"])
            report.reply = str(event.data.get("reply", ""))
            return
    raise JobFailed(f"{job.id} ended without a result; the log is {job.path / 'worker.log'}")
