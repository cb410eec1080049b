"""`ada-tui train`: start a training job and follow it."""

from __future__ import annotations

import click

from ada_tui import runs
from ada_tui.commands._options import json_option, overrides
from ada_tui.commands._output import print_json
from ada_tui.commands._progress import display, watch
from ada_tui.commands.runs import report
from ada_tui.dataset import prepare
from ada_tui.errors import BadInput
from ada_tui.evaluate.candidates import start_sampling, write_pairs
from ada_tui.jobs import JobDir
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace
from rewards import RewardConfig


@click.command()
@click.option("--kind", type=click.Choice(["sft", "grpo", "dpo"]), default="grpo", show_default=True)
@click.option(
    "--from",
    "start",
    metavar="RUN|ADAPTER",
    help="Where it starts: a run, RUN:STEP, an adapter folder, or base (grpo, dpo).",
)
@click.option("--steps", type=click.IntRange(min=1), help="Optimiser steps.")
@click.option("--group", type=click.IntRange(min=2), help="Completions per prompt (grpo).")
@click.option("--prompts-per-step", type=click.IntRange(min=1), help="Prompts per optimiser step (grpo).")
@click.option("--max-completion", type=click.IntRange(min=1), help="Cap of a completion in tokens (grpo).")
@click.option(
    "--epochs", type=click.FloatRange(min=0, min_open=True), help="Passes over the chats (sft) or pairs (dpo)."
)
@click.option("--learning-rate", type=click.FloatRange(min=0, min_open=True))
@click.option("--beta", type=click.FloatRange(min=0), help="How close to the start it stays (grpo, dpo).")
@click.option("--seed", type=int)
@click.option("--force", is_flag=True, help="Start although the planner says it cannot fit.")
@click.option("--detach", is_flag=True, help="Return at once; `ada-tui attach RUN` follows it later.")
@json_option
@click.pass_obj
def train(
    workspace: Workspace,
    kind: str,
    start: str | None,
    steps: int | None,
    group: int | None,
    prompts_per_step: int | None,
    max_completion: int | None,
    epochs: float | None,
    learning_rate: float | None,
    beta: float | None,
    seed: int | None,
    force: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Start a training job (a process of its own, it survives this terminal) and follow it.

    dpo first samples replies to every training prompt; the best and the worst of each, by the rules, are its pairs.
    """
    common = {"steps": steps, "learning_rate": learning_rate, "seed": seed}
    grpo_only = {"group": group, "prompts_per_step": prompts_per_step, "max_completion": max_completion, "beta": beta}
    if kind == "sft":
        refused = [name for name, value in {**grpo_only, "from": start}.items() if value is not None]
        if refused:
            raise BadInput(f"--{refused[0].replace('_', '-')} is for --kind grpo, not sft")
        job = runs.start_sft(workspace, workspace.settings(overrides("sft", epochs=epochs, **common)))
    elif kind == "dpo":
        refused = [name for name, value in grpo_only.items() if value is not None and name != "beta"]
        if refused:
            raise BadInput(f"--{refused[0].replace('_', '-')} is for --kind grpo, not dpo")
        job = _start_dpo(workspace, workspace.settings(overrides("dpo", epochs=epochs, beta=beta, **common)), start)
    else:
        if epochs is not None:
            raise BadInput("--epochs is for --kind sft and dpo; grpo counts --steps")
        settings = workspace.settings(overrides("grpo", **common, **grpo_only))
        policy = _start_policy(workspace, settings, start)
        job = runs.start_grpo(workspace, settings, policy, force=force)
    if detach:
        if as_json:
            print_json({"run": job.id, "status": "running", "steps": 0, "metrics": {}})
        else:
            click.echo(f"{job.id} runs in the background; `ada-tui attach {job.id}` follows it")
        return
    with display() as shown:
        watch(job, shown)
    report(job, as_json)


def _start_policy(workspace: Workspace, settings: Settings, start: str | None) -> runs.Policy:
    """Where the run starts; says so."""
    policy = runs.policy(workspace, start) if start is not None else runs.start_of_grpo(workspace, settings)
    because = f": {policy.reason}" if policy.reason else ""
    click.echo(f"starting from {policy.name}{because}", err=True)
    return policy


def _start_dpo(workspace: Workspace, settings: Settings, start: str | None) -> JobDir:
    """Sample, rank, then start DPO on the pairs."""
    policy = _start_policy(workspace, settings, start)
    prepared = prepare(workspace, settings)
    sampling = start_sampling(workspace, settings, policy, prepared.train, title="replies for dpo")
    with display() as shown:
        watch(sampling, shown)
    pairs = write_pairs(sampling, RewardConfig.from_dict(sampling.job().rewards))
    return runs.start_dpo(workspace, settings, policy, pairs)
