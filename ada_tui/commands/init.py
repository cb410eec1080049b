"""`ada-tui init`: lay out a workspace."""

from __future__ import annotations

from pathlib import Path

import click

from ada_tui import workspace
from ada_tui.commands._output import print_json


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def init(here: workspace.Workspace, directory: Path | None, as_json: bool) -> None:
    """Lay out a workspace in DIRECTORY (default: here). What exists is left as it is."""
    made = workspace.init(directory or here.root)
    if as_json:
        print_json({"workspace": str(made.root)})
        return
    click.echo(f"Workspace {made.root}")
    click.echo("  ada.toml      what to train: base model, SFT adapter, chats, persona")
    click.echo("  data/         chats, persona, and the rules' weights and phrase lists")
    click.echo("  my_rewards/   Python files with rewards of your own")
    click.echo("  checkpoints/  every run")
    click.echo("Next: `ada-tui` opens the app, `ada-tui demo` trains the embedded model.")
