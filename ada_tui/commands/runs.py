"""`ada-tui runs`, `attach`, `control`: list, follow, steer."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from ada_tui import jobs, launch
from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json, print_table
from ada_tui.commands._progress import display, watch
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.protocol import Control, Step
from ada_tui.workspace import Workspace


@click.command()
@json_option
@click.pass_obj
def runs(workspace: Workspace, as_json: bool) -> None:
    """List the runs of this workspace, newest first."""
    found = [_summary(job) for job in jobs.all_jobs(workspace.checkpoints)]
    if as_json:
        print_json(found)
    elif not found:
        click.echo(f"No runs in {workspace.checkpoints} yet. `ada-tui demo` or `ada-tui train` makes the first.")
    else:
        print_table(("run", "kind", "status", "step", "reason"), [tuple(entry.values()) for entry in found])


def _summary(job: JobDir) -> dict[str, Any]:
    status = launch.status(job)
    try:
        kind, reason = job.job().kind, status.reason
    except BadInput as error:
        kind, reason = "?", str(error)
    return {"run": job.id, "kind": kind, "status": status.name, "step": last_step(job), "reason": reason}


def last_step(job: JobDir) -> int:
    """The newest step of a job; 0 before the first."""
    return max((event.step for event in job.events() if isinstance(event, Step)), default=0)


@click.command()
@click.argument("run")
@json_option
@click.pass_obj
def attach(workspace: Workspace, run: str, as_json: bool) -> None:
    """Follow RUN to its end; a finished one is replayed."""
    job = jobs.find(workspace.checkpoints, run)
    with display() as shown:
        watch(job, shown)
    report(job, as_json)


def report(job: JobDir, as_json: bool) -> None:
    """The last word on a job: `{"run", "status", "steps", "metrics"}`."""
    steps = [event for event in job.events() if isinstance(event, Step)]
    metrics: dict[str, Any] = {}
    if steps:
        last = dataclasses.asdict(steps[-1])
        metrics = {key: last[key] for key in ("loss", "reward", "rewards", "kl", "entropy", "length", "truncated")}
    status = launch.status(job)
    if as_json:
        count = steps[-1].step if steps else 0
        print_json({"run": job.id, "status": status.name, "steps": count, "metrics": metrics})
        return
    click.echo(f"{job.id}: {status.name}" + (f" ({status.reason})" if status.reason else ""))
    for name, value in metrics.items():
        if isinstance(value, float):
            click.echo(f"  {name:<10} {value:.4f}")
    if adapters := job.adapters():
        click.echo(f"  adapter    {adapters[-1][1]}")


@click.command()
@click.argument("run")
@click.option("--weight", "-W", "weights", multiple=True, metavar="NAME=VALUE", help="Change a reward weight.")
@click.option(
    "--rewards", type=click.Path(path_type=Path, file_okay=False), help="Folder whose rules to use from now on."
)
@click.option("--pause/--resume", default=None, help="Hold the run between two steps, or let it go on.")
@click.option("--save", is_flag=True, help="Save a checkpoint after this step.")
@click.option("--stop", is_flag=True, help="Save and end.")
@json_option
@click.pass_obj
def control(
    workspace: Workspace,
    run: str,
    weights: tuple[str, ...],
    rewards: Path | None,
    pause: bool | None,
    save: bool,
    stop: bool,
    as_json: bool,
) -> None:
    """Steer RUN. Weights take effect at its next generation batch."""
    job = jobs.find(workspace.checkpoints, run)
    if (status := launch.status(job)).name not in ("running", "paused"):
        raise BadInput(f"{job.id} is {status.name}, not running; there is nothing to steer")
    wanted = job.control()
    if weights or rewards:
        wanted = dataclasses.replace(wanted, rewards=_changed_rewards(job, wanted, weights, rewards))
    if pause is not None:
        wanted = dataclasses.replace(wanted, paused=pause)
    wanted = dataclasses.replace(wanted, stop=wanted.stop or stop, save=wanted.save + int(save))
    written = job.write_control(wanted)
    if as_json:
        print_json({"run": job.id, "version": written.version})
    else:
        click.echo(
            f"{job.id}: control {written.version} written; the run answers at its next step (`ada-tui attach {job.id}`)"
        )


def _changed_rewards(job: JobDir, wanted: Control, weights: tuple[str, ...], folder: Path | None) -> dict[str, Any]:
    from rewards import RewardConfig

    config = RewardConfig.load(folder) if folder else RewardConfig.from_dict(wanted.rewards or job.job().rewards)
    for item in weights:
        name, equals, value = item.partition("=")
        try:
            config = config.with_weight(name.strip(), float(value))
        except (ValueError, KeyError):
            known = ", ".join(config.weights)
            raise BadInput(f"--weight {item!r}: use NAME=VALUE with a number >= 0; names are {known}") from None
        if not equals:
            raise BadInput(f"--weight {item!r}: use NAME=VALUE, e.g. --weight length=2")
    return config.to_dict()
