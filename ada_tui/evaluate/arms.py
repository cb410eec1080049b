"""The arms of a comparison: what each is, which must be trained first, and training them one after another.

Every trained arm is a job of its own, marked with the run it belongs to: what is there already is not trained again,
what failed or was stopped is. Starts jobs through `runs.py`; measures nothing. Anybody may import it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from ada_tui import jobs, launch, runs
from ada_tui.errors import BadInput, JobFailed
from ada_tui.evaluate.candidates import start_sampling, write_best, write_pairs
from ada_tui.evaluate.costs import job_minutes
from ada_tui.evaluate.honesty import job_of
from ada_tui.jobs import JobDir
from ada_tui.protocol import Step
from ada_tui.runs import Policy
from ada_tui.settings import GrpoSettings, Settings
from ada_tui.workspace import Workspace
from rewards import RewardConfig

ARMS: Mapping[str, str] = {
    "base": "the stock model",
    "sft": "the SFT adapter that RUN started from",
    "sft_long": "SFT from scratch for as long as the SFT and RUN took together",
    "bon4": "the best of 4 replies of SFT by the rules: no training",
    "bon8": "the best of 8",
    "bon16": "the best of 16: the ceiling of what selection reaches",
    "rft": "rejection sampling: SFT goes on with the best of 8 of its own replies",
    "dpo": "SFT goes on with DPO on best and worst of the same 8",
    "grpo": "RUN itself",
    "shuffled": "CONTROL: RUN once more with its rewards dealt out at random; it must not gain",
}
"""Every arm, in the order in which they are shown."""

USUAL = ("base", "sft", "grpo")
"""What is compared when nobody chooses: nothing has to be trained for it."""

POLL = 0.5
"""Seconds between two looks at jobs that run side by side."""

Start = Callable[[], JobDir]


@dataclass(frozen=True, slots=True)
class Task:
    """A job that an arm needs."""

    name: str
    """The arm, with "#SEED" for a further seed; or "candidates"."""
    start: Start
    needs: str = ""
    """Task that must be done before."""


@dataclass(slots=True)
class Comparison:
    """What is to be compared. `policies` is complete once `train` has returned."""

    workspace: Workspace
    settings: Settings
    run: JobDir
    names: list[str]
    """Arms in their order, further seeds and checkpoints included."""
    policies: dict[str, Policy] = field(default_factory=dict)
    best_of: dict[str, int] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    """Jobs that are not there yet."""

    def start_eval(self) -> JobDir:
        """The eval job over all arms. Raises BadInput."""
        ordered = {name: self.policies[name] for name in self.names}
        return runs.start_eval(self.workspace, self.settings, ordered, self.run, best_of=self.best_of)


def plan(
    workspace: Workspace,
    settings: Settings,
    run: JobDir,
    names: Iterable[str],
    *,
    seeds: int = 1,
    seeded: Iterable[str] = tuple(ARMS),
    checkpoints: bool = False,
) -> Comparison:
    """What it takes to compare the arms `names` of `run`, which may still be running.

    Args:
        seeds: train every trained arm but sft from so many seeds; the first is the run's own.
        seeded: only these arms from several seeds.
        checkpoints: also measure every saved step of the run.

    Raises:
        BadInput: an unknown arm, one this run cannot offer, or fewer than two.
    """
    chosen = [name for name in ARMS if name in set(names)]
    if unknown := sorted(set(names) - set(ARMS)):
        raise BadInput(f"--arms: unknown arm {unknown[0]!r}; known are {', '.join(ARMS)}")
    offered = _there(workspace, run)
    kind = run.job().kind
    if missing := [n for n in chosen if n not in offered and n != kind and n in (*USUAL, *_needing_sft(offered))]:
        raise BadInput(f"--arms: {missing[0]!r} is not to be had from {run.id}: {_why_not(missing[0])}")
    comparison = Comparison(workspace, _like(settings, run), run, [])
    if kind in chosen and kind not in offered:
        comparison.tasks.append(Task(kind, lambda: run))
    for name in chosen:
        comparison.names.append(name)
        if name.startswith("bon"):
            comparison.policies[name] = offered["sft"]
            comparison.best_of[name] = int(name.removeprefix("bon"))
        elif name in offered:
            comparison.policies[name] = offered[name]
        elif name != kind:
            _add(comparison, name, offered["sft"])
        if name in set(seeded) - {"base", "sft"} and not name.startswith("bon"):
            for seed in range(1, seeds):
                further = f"{name}#{run.job().seed + seed}"
                comparison.names.append(further)
                _add(comparison, further, offered["sft"])
    if checkpoints and "grpo" in chosen:
        for step, folder in run.adapters()[:-1]:
            comparison.names.append(f"grpo@{step}")
            comparison.policies[f"grpo@{step}"] = Policy(f"{run.id}:step-{step}", str(folder), run.id)
    if len(comparison.names) < 2:
        raise BadInput(f"--arms: two or more are needed; {run.id} offers {', '.join(offered)}")
    return comparison


def train(
    comparison: Comparison,
    follow: Callable[[JobDir], object],
    *,
    side_by_side: int = 1,
    told: Callable[[str, JobDir], None] = lambda name, job: None,
) -> None:
    """Train what is missing.

    Args:
        follow: blocks until a job has ended; used when one runs at a time.
        side_by_side: so many jobs at once (one GPU takes several small models).
        told: called with the task and its job when it starts.

    Raises:
        JobFailed: a job failed; those that ran beside it go on. BadInput: a job cannot be started.
    """
    waiting, running = list(comparison.tasks), dict[str, JobDir]()
    while waiting or running:
        unfinished = {task.name for task in waiting} | running.keys()
        for task in [task for task in waiting if task.needs not in unfinished]:
            if len(running) < side_by_side:
                waiting.remove(task)
                job = _found(comparison.workspace, comparison.run, task.name) or task.start()
                running[task.name] = job
                told(task.name, job)
        if side_by_side == 1:
            follow(next(iter(running.values())))
        else:
            time.sleep(POLL)
        for name, job in list(running.items()):
            status = launch.status(job)
            if status.name in ("running", "paused"):
                continue
            del running[name]
            if status.name != "done":
                raise JobFailed(f"{job.id} ({name}) is {status.name}: {status.reason}; start `ada-tui eval` again")
            if name != "candidates":
                comparison.policies[name] = runs.policy(comparison.workspace, job.id)


def _there(workspace: Workspace, run: JobDir) -> dict[str, Policy]:
    """The arms that need no training."""
    spec = run.job()
    offered = {"base": runs.BASE}
    if spec.kind == "sft":
        offered["sft"] = runs.policy(workspace, run.id)
    elif spec.kind in ("grpo", "dpo"):
        if launch.status(run).name not in ("running", "paused"):
            offered[spec.kind] = runs.policy(workspace, run.id)
        if adapter := spec.model.get("adapter"):
            offered["sft"] = runs.policy(workspace, str(workspace.root / str(adapter)))
    return offered


def _needing_sft(offered: Mapping[str, Policy]) -> tuple[str, ...]:
    return () if "sft" in offered else tuple(name for name in ARMS if name not in USUAL)


def _why_not(name: str) -> str:
    if name == "grpo":
        return "it is no GRPO run; train one with `ada-tui train`"
    return "it did not start from an SFT adapter; train SFT first and start GRPO from it"


def _like(settings: Settings, run: JobDir) -> Settings:
    """The settings with the run's own [grpo] section and model, so that the control differs in nothing else."""
    spec = run.job()
    changes: dict[str, object] = {}
    if spec.kind == "grpo":
        fields = {name: spec.params[name] for name in GrpoSettings.model_fields if name in spec.params}
        changes["grpo"] = settings.grpo.model_copy(update=fields)
    changes["model"] = settings.model.model_copy(update=runs.model_of(run, settings))
    return settings.model_copy(update=changes)


def _found(workspace: Workspace, run: JobDir, name: str) -> JobDir | None:
    """The job made for that arm before, unless it failed, died or was stopped."""
    for job in jobs.all_jobs(workspace.checkpoints):
        try:
            arm = job.job().params.get("arm") or {}
        except BadInput:
            continue
        if (arm.get("of"), arm.get("name")) == (run.id, name) and launch.status(job).name in (
            "running", "paused", "done",
        ):  # fmt: skip
            return job
    return None


def _add(comparison: Comparison, name: str, sft: Policy) -> None:
    """Take the arm from an earlier comparison, or put its job on the list."""
    workspace, run = comparison.workspace, comparison.run
    done = _found(workspace, run, name)
    if done is not None and launch.status(done).name == "done":
        comparison.policies[name] = runs.policy(workspace, done.id)
        return
    base, _, seed = name.partition("#")
    arm = runs.Arm(of=run.id, name=name, job=run.job())
    settings = _seeded(comparison.settings, int(seed)) if seed else comparison.settings
    if base in ("rft", "dpo"):
        if not any(task.name == "candidates" for task in comparison.tasks):
            comparison.tasks.append(Task("candidates", lambda: _start_candidates(comparison, sft)))
        comparison.tasks.append(
            Task(name, lambda: _start_from_candidates(comparison, settings, arm, sft), "candidates")
        )
    elif base == "sft_long":
        after = next((task.name for task in comparison.tasks if task.name == run.job().kind), "")
        comparison.tasks.append(Task(name, lambda: _start_long(comparison, settings, arm, sft), after))
    else:
        shuffled = base == "shuffled"
        grpo = settings.grpo.model_copy(update={"shuffle_rewards": shuffled})
        chosen = settings.model_copy(update={"grpo": grpo})
        title = "CONTROL: shuffled rewards" if shuffled else f"arm {name} of {run.id}"
        comparison.tasks.append(Task(name, lambda: runs.start_grpo(workspace, chosen, sft, title=title, arm=arm)))


def _seeded(settings: Settings, seed: int) -> Settings:
    sections = {name: getattr(settings, name) for name in ("sft", "grpo", "dpo")}
    return settings.model_copy(
        update={name: section.model_copy(update={"seed": seed}) for name, section in sections.items()}
    )


def _start_candidates(comparison: Comparison, sft: Policy) -> JobDir:
    workspace, run = comparison.workspace, comparison.run
    spec = run.job()
    return start_sampling(
        workspace, comparison.settings, sft, workspace.root / str(spec.data["train"]),
        title=f"replies for rft and dpo of {run.id}", arm=runs.Arm(of=run.id, name="candidates", job=spec),
    )  # fmt: skip


def _start_from_candidates(comparison: Comparison, settings: Settings, arm: runs.Arm, sft: Policy) -> JobDir:
    candidates = _found(comparison.workspace, comparison.run, "candidates")
    assert candidates is not None
    config = RewardConfig.from_dict(candidates.job().rewards)
    title = f"arm {arm.name} of {arm.of}"
    if arm.name.startswith("dpo"):
        pairs = write_pairs(candidates, config)
        return runs.start_dpo(comparison.workspace, settings, sft, pairs, title=title, arm=arm)
    best = write_best(candidates, config)
    return runs.start_sft(comparison.workspace, settings, start=sft, rows=best, title=title, arm=arm)


def _start_long(comparison: Comparison, settings: Settings, arm: runs.Arm, sft: Policy) -> JobDir:
    """SFT with so many steps that it takes the time of the SFT and the run together."""
    parent = job_of(comparison.workspace.root / sft.adapter)
    if parent is None or parent.job().kind != "sft":
        raise BadInput(f"--arms: sft_long needs an SFT run to measure; {sft.name} came from elsewhere")
    seconds = [event.seconds for event in parent.events() if isinstance(event, Step) and event.seconds]
    if not seconds:
        raise BadInput(f"--arms: sft_long needs the step times of {parent.id}, which has none")
    typical = fmean(sorted(seconds)[: max(1, math.ceil(0.9 * len(seconds)))])  # without the slow first steps
    steps = len(seconds) + math.ceil(60 * job_minutes(comparison.run) / typical)
    params = parent.job().params
    known = {name: params[name] for name in type(settings.sft).model_fields if name in params and name != "seed"}
    long = settings.sft.model_copy(update={**known, "steps": steps})
    lora = settings.lora.model_copy(update=params.get("lora") or {})
    chosen = settings.model_copy(update={"sft": long, "lora": lora})
    return runs.start_sft(comparison.workspace, chosen, title=f"arm {arm.name} of {arm.of}", arm=arm)
