"""`ada-tui eval`: compare policies on held-out prompts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import click

from ada_tui import jobs, runs
from ada_tui.commands._options import json_option, overrides
from ada_tui.commands._output import print_json, print_table
from ada_tui.commands._progress import display, watch
from ada_tui.errors import BadInput
from ada_tui.evaluate import Arm, Difference, arms_of, paired_difference
from ada_tui.jobs import JobDir
from ada_tui.workspace import Workspace

ARMS = ("base", "sft", "grpo")


@click.command("eval")
@click.argument("run")
@click.option("--arms", default=",".join(ARMS), show_default=True, help="Policies to compare, comma-separated.")
@click.option("--samples", type=click.IntRange(min=1), help="Completions per prompt and arm.")
@click.option("--prompts", type=click.IntRange(min=2), help="Held-out prompts to use (default: all).")
@json_option
@click.pass_obj
def evaluate(
    workspace: Workspace, run: str, arms: str, samples: int | None, prompts: int | None, as_json: bool
) -> None:
    """Compare the base, the SFT adapter that RUN started from, and RUN itself on rows nobody trained on."""
    job = jobs.find(workspace.checkpoints, run)
    settings = workspace.settings(overrides("evaluate", samples=samples, prompts=prompts))
    evaluation = runs.start_eval(workspace, settings, arms_for(workspace, job, arms), job)
    with display() as shown:
        watch(evaluation, shown)
    found = results(evaluation)
    if as_json:
        print_json(to_json(*found))
    else:
        print_results(*found)


def arms_for(workspace: Workspace, job: JobDir, names: str) -> dict[str, runs.Policy]:
    """The policies behind the arm names, for a run of any kind.

    Raises:
        BadInput: an unknown arm, or one this run cannot offer.
    """
    spec = job.job()
    offered = {"base": runs.BASE}
    if spec.kind == "sft":
        offered["sft"] = runs.policy(workspace, job.id)
    elif spec.kind == "grpo":
        offered["grpo"] = runs.policy(workspace, job.id)
        if adapter := spec.model.get("adapter"):
            offered["sft"] = runs.policy(workspace, str(adapter))
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if names == ",".join(ARMS):
        chosen = [name for name in ARMS if name in offered]
    if missing := [name for name in chosen if name not in offered]:
        raise BadInput(f"--arms: {missing[0]!r} is not to be had from {job.id}; it offers {', '.join(offered)}")
    if len(chosen) < 2:
        raise BadInput(f"--arms: two or more are needed; {job.id} offers {', '.join(offered)}")
    return {name: offered[name] for name in chosen}


def results(evaluation: JobDir) -> tuple[dict[str, Arm], list[Difference]]:
    """Arms and the differences of neighbours (and of last against first) of a finished eval job."""
    from rewards import RewardConfig

    spec = evaluation.job()
    arms = arms_of(evaluation, RewardConfig.from_dict(spec.rewards))
    pairs = list(pairwise(arms))
    if len(arms) > 2:
        pairs.append((next(iter(arms)), list(arms)[-1]))
    return arms, [paired_difference(a, b, arms[a].totals, arms[b].totals, seed=spec.seed) for a, b in pairs]


def to_json(arms: dict[str, Arm], differences: list[Difference]) -> dict[str, Any]:
    """The document of CLI `eval --json`."""
    return {
        "arms": {name: arm.to_dict() for name, arm in arms.items()},
        "differences": [
            {"a": d.a, "b": d.b, "mean": d.mean, "ci95": [d.low, d.high], "n": d.n, "words": d.words}
            for d in differences
        ],
    }


def print_results(arms: dict[str, Arm], differences: list[Difference]) -> None:
    """A table per reward and arm, then every difference as a sentence."""
    names = list(next(iter(arms.values())).rewards)
    summaries = {arm: values.to_dict() for arm, values in arms.items()}
    rows: list[list[object]] = [["total", *[summary["total"] for summary in summaries.values()]]]
    rows += [[name, *[summary["rewards"].get(name) for summary in summaries.values()]] for name in names]
    rows.append(["words", *[summary["words"] for summary in summaries.values()]])
    print_table(["held out", *arms], rows)
    for difference in differences:
        click.echo(difference.words)
