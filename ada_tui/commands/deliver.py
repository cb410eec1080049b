"""`ada-tui deliver`: put an export on the device, try it there, promote it; or go back to the version before."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from ada_tui import jobs
from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json, print_table
from ada_tui.commands._progress import display
from ada_tui.errors import BadInput
from ada_tui.export import deliver as delivery
from ada_tui.export.deliver import Delivery
from ada_tui.text import visible
from ada_tui.workspace import Workspace


@click.command("deliver")
@click.argument("export", required=False)
@click.option("--to", "host", help="http://HOST:11434 or USER@HOST (default: export.host of ada.toml).")
@click.option("--rollback", is_flag=True, help="Go back to the version before the one in use.")
@click.option("--allow-cpu", is_flag=True, help="Promote even when the device runs it on its CPU.")
@json_option
@click.pass_obj
def deliver(
    workspace: Workspace, export: str | None, host: str | None, rollback: bool, allow_cpu: bool, as_json: bool
) -> None:
    """Copy EXPORT (RUN/exports/N) to the device, ask it five things, and make it TAG:latest if it does well."""
    settings = workspace.settings().export
    target = host or settings.host
    if not target:
        raise BadInput("no device: give --to USER@HOST or --to http://HOST:11434, or set export.host in ada.toml")
    with display() as shown:

        def report(detail: str, fraction: float | None) -> None:
            shown.update("deliver", detail, fraction)

        if rollback:
            done = delivery.rollback(workspace.checkpoints, target, settings.tag, report)
        elif export is None:
            raise BadInput("which export? `ada-tui deliver RUN/exports/export-N`; `ada-tui runs` lists them")
        else:
            job = jobs.find(workspace.checkpoints, export)
            done = delivery.deliver(job, target, settings.tag, report, allow_cpu=allow_cpu)
    if as_json:
        print_json(to_json(done))
    else:
        _print(done, rollback)


def to_json(done: Delivery) -> dict[str, Any]:
    """The document of CLI `deliver --json`."""
    return asdict(done)


def _print(done: Delivery, back: bool) -> None:
    if back:
        click.echo(f"{done.host}: {done.tag} is in use again")
        return
    rows: list[list[object]] = [[reply.prompt, reply.device, reply.pc] for reply in done.replies]
    print_table(["prompt", "device", "this PC"], rows)
    click.echo()
    click.echo(
        visible(
            f"{done.tag} is in use on {done.host} (address by: {done.found_by}): {done.processor}, "
            f"{done.tokens_per_s} tokens/s, context {done.context}"
        )
    )
    if done.memory_left is not None and done.free is not None:
        click.echo(f"left there: {done.memory_left / 1e9:.1f} GB memory, {done.free / 1e9:.1f} GB disk")
    if done.removed:
        click.echo(f"removed there: {', '.join(done.removed)}")
    if not done.named:
        click.echo("note: asked who it is, it did not give its name")
