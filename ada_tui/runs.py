"""From settings to a started job: what each kind of job is asked, and where its adapter comes from.

The app and the command line both start jobs through here. Not here: the process (`launch.py`), the files (`jobs.py`).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ada_tui import __version__, jobs, launch, persona
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace

if TYPE_CHECKING:
    from rewards import RewardConfig


@dataclass(frozen=True, slots=True)
class Policy:
    """A model that can speak: the base, or the base with an adapter."""

    name: str
    """"base", "grpo-1:step-20", or the adapter folder's name."""
    adapter: str = ""
    """Adapter folder, "" for the base itself."""
    run: str = ""
    """Run id the adapter comes from."""
    reason: str = ""
    """Why this one was taken, when nobody named it."""


BASE = Policy(name="base")


@dataclass(frozen=True, slots=True)
class Arm:
    """Marks a job as made for a comparison, so that it is found again instead of being trained twice."""

    of: str
    """Run id that is compared."""
    name: str
    """"rft", "dpo", ...; with "#SEED" for a further seed; "candidates" for the replies that rft and dpo learn from."""
    job: Job
    """What that run was asked: the arm has its rows, its rewards and its withheld phrases."""


def policy(workspace: Workspace, reference: str) -> Policy:
    """The policy that `reference` names: "base", RUN, RUN:STEP or an adapter folder.

    Raises:
        BadInput: there is no such run, step or folder.
    """
    if reference in ("", "base"):
        return BASE
    folder = Path(reference).expanduser()
    if (folder / "adapter_config.json").is_file():
        return Policy(name=folder.resolve().name, adapter=str(folder.resolve()))
    run, _, step = reference.partition(":")
    job = jobs.find(workspace.checkpoints, run)
    adapters = dict(job.adapters())
    if not adapters:
        raise BadInput(f"{job.path}: has no complete adapter yet; wait for its first checkpoint, or choose another run")
    wanted = step.removeprefix("step-")
    if wanted and (not wanted.isdigit() or int(wanted) not in adapters):
        have = ", ".join(str(number) for number in adapters)
        raise BadInput(f"{job.id}: no complete adapter at step {step!r}; there are {have}")
    number = int(wanted) if wanted else max(adapters)
    return Policy(name=f"{job.id}:step-{number}", adapter=str(adapters[number]), run=job.id)


NOT_FROM_A_RUN = frozenset({"adapter", "trust_remote_code"})
"""What of a run's model is never taken over: a foreign job must not switch on code of its own."""


def model_of(job: JobDir, settings: Settings) -> dict[str, Any]:
    """The [model] section with which `job` was run; trust_remote_code stays the person's own.

    Raises:
        BadInput: there is no readable job.
    """
    known = type(settings.model).model_fields.keys() - NOT_FROM_A_RUN
    return {name: value for name, value in job.job().model.items() if name in known}


def start_of_grpo(workspace: Workspace, settings: Settings) -> Policy:
    """Where GRPO starts when nobody says: the newest complete SFT run, else the adapter of ada.toml, else the base."""
    for job in jobs.all_jobs(workspace.checkpoints):
        if job.id.startswith("sft-") and "/" not in job.id and job.adapters() and launch.status(job).name == "done":
            return dataclasses.replace(policy(workspace, job.id), reason="the newest complete SFT run")
    if settings.model.adapter:
        chosen = policy(workspace, str(workspace.resolve(settings.model.adapter)))
        return dataclasses.replace(chosen, reason="model.adapter of ada.toml")
    return dataclasses.replace(BASE, reason="there is no complete SFT run in this workspace")


def start_sft(
    workspace: Workspace,
    settings: Settings,
    *,
    start: Policy = BASE,
    rows: Path | None = None,
    title: str = "",
    arm: Arm | None = None,
) -> JobDir:
    """Supervised fine-tuning on the training rows, or on `rows`: a new adapter, or that of `start`. Raises BadInput."""
    params = {**settings.sft.model_dump(), "lora": settings.lora.model_dump()}
    data = _rows(workspace, settings, arm)
    if rows is not None:
        data["train"] = _inside(workspace, rows)
    return _start(workspace, settings, "sft", start, data, params, title, arm=arm)


def start_grpo(
    workspace: Workspace,
    settings: Settings,
    start: Policy,
    *,
    title: str = "",
    arm: Arm | None = None,
    force: bool = False,
) -> JobDir:
    """GRPO on the training rows, from the adapter of `start` (or a new one on the base).

    Raises:
        BadInput: also when the planner says that it cannot fit on the GPU here, unless `force`.
    """
    params = {**settings.grpo.model_dump(), "lora": settings.lora.model_dump()}
    data = _rows(workspace, settings, arm)
    return _start(workspace, settings, "grpo", start, data, params, title, arm=arm, force=force)


def start_dpo(
    workspace: Workspace, settings: Settings, start: Policy, pairs: Path, *, title: str = "", arm: Arm | None = None
) -> JobDir:
    """DPO on `pairs` (`evaluate.candidates.write_pairs`) from the adapter of `start`. Raises BadInput."""
    data = {**_rows(workspace, settings, arm), "pairs": _inside(workspace, pairs)}
    params = {**settings.dpo.model_dump(), "lora": settings.lora.model_dump()}
    return _start(workspace, settings, "dpo", start, data, params, title, arm=arm)


def start_sample(
    workspace: Workspace,
    settings: Settings,
    who: Policy,
    prompts: Sequence[Mapping[str, Any]],
    *,
    n: int,
    temperature: float | None = None,
    title: str = "",
    arm: Arm | None = None,
) -> JobDir:
    """One scored group of `n` for each of `prompts` ({"prompt", "history", "row"}). Raises BadInput."""
    params = settings.evaluate.model_dump()
    params["temperature"] = settings.grpo.temperature if temperature is None else temperature
    params["policy"] = who.name
    return _start(workspace, settings, "sample", who, {"prompts": list(prompts), "n": n}, params, title, arm=arm)


def start_eval(
    workspace: Workspace,
    settings: Settings,
    arms: Mapping[str, Policy],
    of: JobDir,
    *,
    best_of: Mapping[str, int] | None = None,
) -> JobDir:
    """Compare `arms` (name -> policy) on the held-out rows of the run `of`; the job lives in `of`/evals/.

    They are scored by the rewards as they are now, less what `of` had withheld.

    Args:
        best_of: arm -> n: of n replies only the one with the highest total counts (no training, n times the cost).

    Raises:
        BadInput: also when an arm was trained on rows it would be tested on.
    """
    arm = Arm(of=of.id, name="eval", job=of.job())
    data = {
        **_rows(workspace, settings, arm),
        "arms": {name: arm.adapter for name, arm in arms.items()},
        "best_of": dict(best_of or {}),
        **(_probes(workspace, settings) if settings.evaluate.probes else {}),
    }
    _refuse_leaks(workspace, data)
    params = settings.evaluate.model_dump()
    return _start(workspace, settings, "eval", BASE, data, params, "", of.path / "evals", arm=arm)


def start_export(workspace: Workspace, settings: Settings, who: Policy, of: JobDir) -> JobDir:
    """Merge, convert, quantise and try `who`; the job lives in `of`/exports/. Raises BadInput."""
    data = {"adapter": who.adapter, "held_out": _rows(workspace, settings)["held_out"]}
    return _start(workspace, settings, "export", who, data, settings.export.model_dump(), "", of.path / "exports")


def _rows(workspace: Workspace, settings: Settings, arm: Arm | None = None) -> dict[str, str]:
    """Paths of the prompt rows, relative to the workspace where they are inside it: an arm has those of its run."""
    from ada_tui.dataset import prepare

    if arm and {"train", "held_out"} <= arm.job.data.keys():
        return {name: str(arm.job.data[name]) for name in ("train", "held_out")}
    prepared = prepare(workspace, settings)
    return {"train": _inside(workspace, prepared.train), "held_out": _inside(workspace, prepared.held_out)}


def _refuse_leaks(workspace: Workspace, data: Mapping[str, Any]) -> None:
    """Raises BadInput when an arm was trained on what it would be tested on."""
    from ada_tui.dataset import load_rows
    from ada_tui.evaluate.honesty import findings, refuse_leaks

    held_out = load_rows(workspace.root / data["held_out"])
    refuse_leaks(findings(data["arms"], held_out, str(workspace.root), ()))


def _probes(workspace: Workspace, settings: Settings) -> dict[str, Any]:
    """The capability items and the neutral text, whole: the job must not depend on files that may change. BadInput."""
    from ada_tui.evaluate.regression import load_items

    neutral = workspace.resolve(settings.evaluate.neutral)
    try:
        text = neutral.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{neutral}: cannot read the neutral text ({error}); set evaluate.neutral") from None
    items = load_items(workspace.resolve(settings.evaluate.regression))
    return {"regression": [item.to_dict() for item in items], "neutral": text}


def _rewards(workspace: Workspace, settings: Settings, kind: str, arm: Arm | None) -> tuple[RewardConfig, list[str]]:
    """The rewards of a job and the ids of the phrases withheld from them. Raises BadInput.

    Training for a comparison has those of the run that is compared; evaluation has the workspace's, less what that run
    had withheld; everything else the workspace's, less the audit list when `rewards.audit` says so.
    """
    from ada_tui.evaluate.audit import withheld, without
    from rewards import ConfigError, RewardConfig

    try:
        if arm and kind != "eval":
            return RewardConfig.from_dict(arm.job.rewards), list(arm.job.params.get("withheld") or ())
        config = RewardConfig.load(workspace.resolve(settings.rewards.folder))
    except ConfigError as error:
        raise BadInput(str(error)) from None
    if arm:
        ids = list(arm.job.params.get("withheld") or ())
    else:
        ids = list(withheld(config)) if settings.rewards.audit else []
    return without(config, ids), ids


def _refuse_what_cannot_fit(job: Job) -> None:
    """Raises BadInput when the planner knows model and GPU and finds no room; on a CPU it has no say."""
    from ada_tui import planner

    machine = planner.this_machine()
    if machine is None:
        return
    try:
        request = planner.request_of(job)
    except BadInput:
        return  # a model whose sizes are not known before it is downloaded: the worker will find out
    if reason := planner.refusal(planner.make_plan(request, machine)):
        raise BadInput(reason)


def _inside(workspace: Workspace, path: Path) -> str:
    return str(path.relative_to(workspace.root)) if path.is_relative_to(workspace.root) else str(path)


def _start(
    workspace: Workspace,
    settings: Settings,
    kind: str,
    who: Policy,
    data: dict[str, Any],
    params: dict[str, Any],
    title: str = "",
    parent: Path | None = None,
    arm: Arm | None = None,
    force: bool = False,
) -> JobDir:
    config, withheld = _rewards(workspace, settings, kind, arm)
    model = {**settings.model.model_dump(), "adapter": who.adapter}
    job = Job(
        kind=kind,
        title=title,
        created=time.time(),
        workspace=str(workspace.root),
        parent=who.run,
        model=model,
        persona=persona.load(workspace.resolve(settings.data.persona)).to_dict(),
        data=data,
        rewards=config.to_dict(),
        params={
            **params,
            "worker": settings.worker.model_dump(),
            "own_rewards": settings.rewards.own,
            "withheld": withheld,
            **({"arm": {"of": arm.of, "name": arm.name}} if arm else {}),
        },
        seed=int(params.get("seed", 0)),
        version=__version__,
    )
    if kind == "grpo" and not force:
        _refuse_what_cannot_fit(job)
    made = jobs.create(parent or workspace.checkpoints, job)
    launch.start(made, python=settings.worker.python)
    return made
