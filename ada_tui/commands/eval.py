"""`ada-tui eval`: compare policies on held-out prompts; train the arms that are missing."""

from __future__ import annotations

from pathlib import Path

import click

from ada_tui import jobs
from ada_tui.commands._options import json_option, overrides
from ada_tui.commands._output import print_json, print_table
from ada_tui.commands._progress import display, watch
from ada_tui.evaluate import Arm, Difference
from ada_tui.evaluate.arms import ARMS, USUAL, Comparison, plan, train
from ada_tui.evaluate.evaluation import Evaluation, read
from ada_tui.evaluate.report import write, write_beside
from ada_tui.evaluate.report.figures import figures, headline
from ada_tui.jobs import JobDir
from ada_tui.text import visible
from ada_tui.workspace import Workspace

ARMS_HELP = "Arms to compare, comma-separated (default: those of {usual} that RUN has).\n\n\b\n{arms}"


@click.command("eval")
@click.argument("run")
@click.option(
    "--arms",
    help=ARMS_HELP.format(usual=",".join(USUAL), arms="\n".join(f"{name:<9} {what}" for name, what in ARMS.items())),
)
@click.option("--samples", type=click.IntRange(min=1), help="Completions per prompt and arm.")
@click.option("--prompts", type=click.IntRange(min=2), help="Held-out prompts to use (default: all).")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Train each arm so many times.")
@click.option("--checkpoints", is_flag=True, help="Also measure every saved step of RUN.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the report there too: .md, .html or .json.")
@json_option
@click.pass_obj
def evaluate(
    workspace: Workspace,
    run: str,
    arms: str | None,
    samples: int | None,
    prompts: int | None,
    seeds: int,
    checkpoints: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Was it worth it? Compare RUN with its start, and with what else could have been done, on rows nobody trained on.

    Arms that are not there yet are trained, each as a job of its own; after an interruption the same command goes on.
    RUN may also be a finished comparison (grpo-1/evals/eval-1): then nothing runs and its report is made anew.
    report.md and report.html stand in the directory of the comparison. Exit code 1: an arm was trained on what it was
    tested on.
    """
    job = jobs.find(workspace.checkpoints, run)
    if job.job().kind != "eval":
        job = _compare(workspace, job, arms, samples, prompts, seeds, checkpoints)
    evaluation = read(job)
    page = write_beside(evaluation)
    if report is not None:
        write(evaluation, report)
    if as_json:
        print_json(evaluation.to_dict())
    else:
        print_evaluation(evaluation)
        click.echo(f"\nreport: {report or page}")
    if any(finding.fatal for finding in evaluation.findings):
        click.get_current_context().exit(1)


def _compare(
    workspace: Workspace,
    run: JobDir,
    arms: str | None,
    samples: int | None,
    prompts: int | None,
    seeds: int,
    checkpoints: bool,
) -> JobDir:
    settings = workspace.settings(overrides("evaluate", samples=samples, prompts=prompts))
    names = [name.strip() for name in arms.split(",") if name.strip()] if arms else usual(run)
    comparison = plan(workspace, settings, run, names, seeds=seeds, checkpoints=checkpoints)
    with display() as shown:
        _announce(comparison)
        train(
            comparison,
            lambda job: watch(job, shown),
            told=lambda name, job: shown.note(f"-- {name}: {ARMS.get(name.partition('#')[0], 'replies')} ({job.id})"),
        )
        evaluation = comparison.start_eval()
        watch(evaluation, shown)
    return evaluation


def usual(run: JobDir) -> list[str]:
    """What is compared when nobody chooses."""
    spec = run.job()
    names = ["base"]
    if spec.kind == "sft" or spec.model.get("adapter"):
        names.append("sft")
    if spec.kind in ("grpo", "dpo"):
        names.append(spec.kind)
    return names


def _announce(comparison: Comparison) -> None:
    if comparison.tasks:
        names = ", ".join(task.name for task in comparison.tasks)
        click.echo(f"to be trained first: {names}; Ctrl-C stops, the same command goes on", err=True)


def print_evaluation(evaluation: Evaluation) -> None:
    """The table, the answer, every difference, the gates."""
    rows = figures(evaluation)
    width = max(len(cell) for figure in rows for cell in figure.cells())
    print_table(
        ["held out", *(name.rjust(width) for name in evaluation.arms)],
        [[figure.name, *(cell.rjust(width) for cell in figure.cells())] for figure in rows],
    )
    click.echo(f"\n{visible(headline(evaluation))}\n")
    for finding in evaluation.findings:
        click.echo(f"{'INVALID: ' if finding.fatal else 'note: '}{visible(finding.words)}")
    for difference in evaluation.differences:
        click.echo(f"{difference.words}; {difference.power_words}")
    for seed in evaluation.seeds:
        click.echo(f"  by seed: {seed.words}")
    click.echo()
    for reward in evaluation.rewards:
        click.echo(reward.words)
    click.echo()
    for gate in evaluation.gates:
        click.echo(f"[{gate.sign}] {gate.name.replace('_', ' ')}: {gate.state}. {gate.words}")


def print_results(arms: dict[str, Arm], differences: list[Difference]) -> None:
    """A table per reward and arm, then every difference as a sentence: the short form, for the demo."""
    names = list(next(iter(arms.values())).rewards)
    summaries = {arm: values.to_dict() for arm, values in arms.items()}
    rows: list[list[object]] = [["total", *[summary["total"] for summary in summaries.values()]]]
    rows += [[name, *[summary["rewards"].get(name) for summary in summaries.values()]] for name in names]
    rows.append(["words", *[summary["words"] for summary in summaries.values()]])
    print_table(["held out", *arms], rows)
    for difference in differences:
        click.echo(difference.words)
