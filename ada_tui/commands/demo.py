"""`ada-tui demo`: the whole loop on the embedded model."""

from __future__ import annotations

import sys

import click

from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json
from ada_tui.commands._progress import display, watch
from ada_tui.text import visible
from ada_tui.workspace import Workspace


@click.command()
@click.option("--headless", is_flag=True, help="No app: progress on stderr, a table at the end.")
@click.option("--steps", type=click.IntRange(1, 100_000), help="GRPO steps; fewer also shorten SFT and the evaluation.")
@json_option
@click.pass_obj
def demo(workspace: Workspace, headless: bool, steps: int | None, as_json: bool) -> None:
    """Embedded model, bundled chats: SFT, GRPO, compare, export, and ask the result.

    Opens the app when on a terminal. Ten to fifteen minutes on two CPU cores.
    """
    if not (headless or as_json) and sys.stdin.isatty() and sys.stdout.isatty():
        from ada_tui.ui.app import run_app

        run_app(workspace, demo=True)
        return
    _headless(workspace, steps, as_json)


def _headless(workspace: Workspace, steps: int | None, as_json: bool) -> None:
    from ada_tui import demo as loop
    from ada_tui.commands.eval import print_results

    report = loop.Report()
    with display() as shown:
        names = iter(loop.run(workspace, steps, report, lambda job: watch(job, shown)))
        for stage in names:
            shown.note(f"-- {stage.title} ({stage.job.id if stage.job else ''})")
    if as_json:
        print_json(report.to_dict())
        return
    click.echo()
    print_results(report.arms, report.differences)
    click.echo(f"\nGGUF       {report.gguf}\nModelfile  {report.modelfile}")
    click.echo(f"\nYou: {loop.FIRST_WORDS}\nAda: {visible(report.reply)}")
    minutes = sum(stage.seconds for stage in report.stages) / 60
    click.echo(f"\n{minutes:.1f} minutes. `ada-tui` opens these runs.")
