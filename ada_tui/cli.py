"""The command line: the headless twin of every screen. Parses, calls, prints; every import of weight is inside.

Exit codes: 0 done, 1 done with problems that are listed, 2 bad input or nothing usable, 3 the job failed,
130 interrupted. An error is one line; `--debug` adds the traceback.
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path

import click

from ada_tui import __version__
from ada_tui.errors import BadInput, JobFailed

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("ada_tui.commands.init:init", "Lay out a workspace: ada.toml, data/, my_rewards/, checkpoints/."),
    "demo": ("ada_tui.commands.demo:demo", "Embedded model, bundled chats: SFT, GRPO, compare, export, answer."),
    "score": ("ada_tui.commands.score:score", "Score replies with the rules."),
    "data": ("ada_tui.commands.data:data", "Check chat files and turn them into prompt rows."),
    "sample": ("ada_tui.commands.sample:sample", "Sample one scored group for a prompt."),
    "train": ("ada_tui.commands.train:train", "Start a training job."),
    "runs": ("ada_tui.commands.runs:runs", "List the runs of this workspace."),
    "attach": ("ada_tui.commands.runs:attach", "Follow a running job, or replay a finished one."),
    "control": ("ada_tui.commands.runs:control", "Steer a running job: weights, pause, save, stop."),
    "eval": ("ada_tui.commands.eval:evaluate", "Compare policies on held-out prompts."),
    "plan": ("ada_tui.commands.plan:plan", "What fits in the memory of a GPU, and why."),
    "export": ("ada_tui.commands.export:export", "Merge, convert, quantise, write the Modelfile."),
    "deliver": ("ada_tui.commands.deliver:deliver", "Put an export on the device, with a smoke test."),
    "doctor": ("ada_tui.commands.doctor:doctor", "Everything that will bite on this machine."),
}
"""Name -> (where the command is, its line in --help). Loaded only when called, so that --help stays fast."""


class LazyGroup(click.Group):
    """Imports a sub-command's module only when that sub-command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ada-tui")
@click.option("--workspace", "-w", type=click.Path(path_type=Path, file_okay=False), help="Folder to work in.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def app(ctx: click.Context, workspace: Path | None, debug: bool) -> None:
    """Finish a small personal assistant with GRPO and rule-based rewards.

    Without a command the app opens on this folder, or on the last workspace when this folder is none.
    """
    from ada_tui.workspace import Workspace

    ctx.obj = Workspace((workspace or Path.cwd()).resolve())
    if ctx.invoked_subcommand is None:
        from ada_tui.commands.open import open_app

        open_app(ctx.obj, chosen=workspace is not None)


def main(argv: list[str] | None = None) -> None:
    """Entry point of `ada-tui`. Never returns normally: exits with the code of the outcome."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        sys.exit(app.main(arguments, standalone_mode=False) or 0)
    except (click.Abort, KeyboardInterrupt):
        _fail(130, "interrupted", arguments)
    except click.ClickException as error:
        usage = f" (see `{error.ctx.command_path} --help`)" if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(2, error.format_message() + usage, arguments)
    except BadInput as error:
        _fail(2, str(error), arguments)
    except JobFailed as error:
        _fail(3, str(error), arguments)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except ImportError as error:
        _fail(2, missing_extra(error), arguments)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        _fail(2, f"{name}{error.strerror or error}", arguments)


def missing_extra(error: ImportError) -> str:
    """The install line for the extra that holds the missing module."""
    from ada_tui.extras import install_line

    return (
        install_line(error.name or "")
        or f"cannot import {error.name or error}: the installation is broken; reinstall ada-tui"
    )


def _fail(code: int, message: str, arguments: list[str]) -> None:
    if "--debug" in arguments:
        traceback.print_exc()
    click.echo(f"ada-tui: {' '.join(message.split())}", err=True)
    sys.exit(code)
