"""`ada-tui plan`: what fits in the memory of a GPU, and why; `--deploy` for the board, `--calibrate` from own runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json, print_table
from ada_tui.errors import BadInput
from ada_tui.text import visible
from ada_tui.workspace import Workspace, cache_dir

DEFAULT_GB = 24.0
WIDTH = 48


@click.command()
@click.argument("runs", nargs=-1)
@click.option("--gpu-gb", type=float, help="Memory of the GPU; default: the one here, else 24.")
@click.option("--model", help="Known model, model folder or config.json; default: that of ada.toml.")
@click.option("--backend", default="trl", show_default=True, help="trl or unsloth.")
@click.option("--group", type=int, help="Completions per prompt; default: ada.toml.")
@click.option("--prompts-per-step", "prompts", type=int, default=1, show_default=True, help="Prompts per step.")
@click.option("--prompt", type=int, default=86, show_default=True, help="Tokens of the longest prompt.")
@click.option("--completion", type=int, help="Cap of a completion in tokens; default: ada.toml, else 256.")
@click.option("--rank", type=int, help="LoRA rank; default: ada.toml.")
@click.option("--bits", type=int, help="4 or 16; default: ada.toml.")
@click.option("--beta", type=float, default=0.0, show_default=True, help="Weight of the KL term.")
@click.option("--at-once", type=int, default=0, help="Completions per forward-backward pass; default: the group.")
@click.option("--optimizer-bits", type=int, default=8, show_default=True, help="8 or 32.")
@click.option("--no-checkpointing", is_flag=True, help="Without gradient checkpointing.")
@click.option("--vllm", type=float, default=0.0, help="Share of the device for a colocated vLLM (estimated).")
@click.option("--reserve-gb", type=float, help="Kept free for the desktop; default 0.6, under WSL 1.2.")
@click.option("--deploy", is_flag=True, help="What fits on an 8 GB board that serves the model.")
@click.option("--board-gb", type=float, help="Memory that the board shows; default 7.4.")
@click.option("--headless", is_flag=True, help="The board runs without a desktop.")
@click.option("--calibrate", is_flag=True, help="Fit this machine's overhead to RUNS and remember it.")
@json_option
@click.pass_obj
def plan(
    workspace: Workspace,
    /,
    runs: tuple[str, ...],
    gpu_gb: float | None,
    model: str | None,
    reserve_gb: float | None,
    deploy: bool,
    board_gb: float | None,
    headless: bool,
    calibrate: bool,
    no_checkpointing: bool,
    as_json: bool,
    **numbers: Any,
) -> None:
    """What fits in the memory of a GPU, and why; nothing is loaded. RUNS only with --calibrate."""
    from ada_tui import planner
    from ada_tui.planner import calibration

    if calibrate:
        _calibrate(workspace, runs, as_json)
        return
    if runs:
        raise BadInput(f"plan takes no argument {runs[0]!r}; runs go with --calibrate")
    settings = workspace.settings()
    shape = planner.resolve(model or _base(workspace, settings.model.base))
    if deploy:
        _deploy(shape, board_gb, headless, as_json)
        return
    defaults = {
        "group": settings.grpo.group, "completion": settings.grpo.max_completion or 256, "rank": settings.lora.rank,
        "bits": settings.model.bits,
    }  # fmt: skip
    given = {name: value for name, value in numbers.items() if value is not None}
    request = planner.Request(shape=shape, checkpointing=not no_checkpointing, **{**defaults, **given})
    machine = planner.card(gpu_gb, reserve_gb) if gpu_gb is not None else planner.this_machine(reserve_gb)
    machine = machine or planner.card(DEFAULT_GB, reserve_gb)
    own = calibration.load(calibration_path()) if machine.here else None
    found = planner.make_plan(request, machine, own)
    if as_json:
        print_json(
            {**planner.document(found), "calibrated": bool(own), "step_seconds": _seconds(machine.name, request)}
        )
    else:
        _print(found, calibrated=bool(own))


def calibration_path() -> Path:
    """Where this machine's calibration lies."""
    return cache_dir() / "plan.json"


def _base(workspace: Workspace, base: str) -> str:
    """The model of ada.toml: a folder is relative to the workspace."""
    folder = workspace.resolve(base)
    return str(folder) if folder.exists() else base


def _seconds(device: str, request: Any) -> list[float] | None:
    from ada_tui.planner.timing import step_seconds

    found = step_seconds(device, request)
    return [round(value, 1) for value in found] if found else None


def _print(found: Any, *, calibrated: bool) -> None:
    from ada_tui.planner import GIB, bars
    from ada_tui.planner.report import describe

    machine, peak = found.machine, found.estimate.peak
    click.echo(visible(describe(found.request)))
    own = ", calibrated by your own runs" if calibrated else ""
    sizes = f"{machine.total / GIB:.1f} GiB, of which {machine.reserve / GIB:.1f} stay free for the desktop"
    click.echo(f"on {machine.name}: {sizes}{own}")
    verdict = "fits" if found.fits else "does not fit"
    room = f"{abs(found.left) / GIB:.1f} GiB {'left' if found.fits else 'missing'}"
    click.echo(f"\n{verdict}{' (tight)' if found.tight else ''}: {peak.total / GIB:.1f} GiB at {peak.name}, {room}\n")
    for bar in bars(found):
        filled = round(min(1.2, bar.gib * GIB / machine.total) * WIDTH)
        line = "█" * min(filled, WIDTH) + "·" * (WIDTH - filled) + "▶" * (filled > WIDTH)
        click.echo(f"{bar.phase:17}{bar.gib:6.1f} {line}{'  estimated' if bar.estimated else ''}")
    click.echo()
    segments = next(bar for bar in bars(found) if bar.phase == peak.name).segments
    print_table(("GiB", f"part of {peak.name}"), [(f"{one.gib:.2f}", one.label) for one in segments])
    longest = f"{found.max_completion} tokens" if found.max_completion else "none"
    click.echo(
        f"\nlargest group at {found.request.completion} tokens: {found.max_group or 'none'}; "
        f"longest completion at group {found.request.group}: {longest}"
    )
    for number, advice in enumerate(found.advice, 1):
        mark = "" if found.fits else "  -> fits" if advice.fits else "  -> not enough alone"
        click.echo(f"{number}. {advice.text}{mark}")


def _deploy(shape: Any, board_gb: float | None, headless: bool, as_json: bool) -> None:
    from ada_tui.planner import GIB
    from ada_tui.planner.deploy import BOARD_GIB, SOURCES, table

    board = BOARD_GIB if board_gb is None else board_gb
    rows = table(shape, board_gib=board, headless=headless)
    if as_json:
        print_json({
            "model": shape.name, "board_gib": board, "estimated": True, "sources": list(SOURCES),
            "options": [
                {
                    "quant": row.quant, "context": row.context, "fits": row.fits,
                    "total_gib": round(row.total / GIB, 3), "left_gib": round(row.left / GIB, 3),
                    "parts": {part: round(size / GIB, 3) for part, size in row.parts.items()},
                }
                for row in rows
            ],
        })  # fmt: skip
        return
    click.echo(
        f"{visible(shape.name)} on a board that shows {board:g} GiB (estimated; nothing was measured on a board)\n"
    )
    print_table(
        ("quant", "context", "model", "cache", "total", "left", "fits"),
        [
            (
                row.quant, row.context, *(f"{size / GIB:.2f}" for size in (row.parts["model"], row.parts["kv_cache"])),
                f"{row.total / GIB:.2f}", f"{row.left / GIB:+.2f}", "yes" if row.fits else "no",
            )
            for row in rows
        ],
    )  # fmt: skip
    click.echo("\n" + "\n".join(SOURCES))


def _calibrate(workspace: Workspace, runs: tuple[str, ...], as_json: bool) -> None:
    from ada_tui import jobs
    from ada_tui.planner import GIB, calibration

    if not runs:
        raise BadInput("--calibrate needs runs: ada-tui plan --calibrate grpo-1 (see `ada-tui runs`)")
    compared = [calibration.compare(jobs.find(workspace.checkpoints, run)) for run in runs]
    fitted = calibration.fit(compared)
    calibration.save(fitted, calibration_path())
    rows = [
        {
            "run": one.run,
            "predicted_gib": round(one.predicted / GIB, 3),
            "measured_gib": round(one.measured / GIB, 3) if one.measured else None,
            "error": round(one.error, 4) if one.error is not None else None,
            "step_seconds": list(one.seconds) if one.seconds else None,
        }
        for one in compared
    ]
    if as_json:
        print_json({"runs": rows, "workspace_gib": fitted.workspace / GIB, "saved": str(calibration_path())})
        return
    print_table(
        ("run", "predicted GiB", "measured GiB", "error"),
        [(row["run"], row["predicted_gib"], row["measured_gib"], row["error"]) for row in rows],
    )
    click.echo(f"saved in {calibration_path()}; `ada-tui plan` on this machine uses it")
