"""`ada-tui doctor`: everything that will bite on this machine."""

from __future__ import annotations

import dataclasses

import click

from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json
from ada_tui.doctor import examine
from ada_tui.text import visible
from ada_tui.workspace import Workspace


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check system, packages and model; each problem comes with its fix."""
    workspace: Workspace = ctx.obj
    findings = []
    for finding in examine(workspace):
        findings.append(finding)
        if not as_json:
            click.echo(f"{'ok  ' if finding.ok else 'FIX '} {finding.check:<14} {visible(finding.detail)}")
            if finding.fix:
                click.echo(f"     {'':<14} -> {finding.fix}")
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    ctx.exit(0 if all(finding.ok for finding in findings) else 1)
