"""`ada-tui data`: check chat files, fix them, turn them into prompt rows, export preferences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json, print_table
from ada_tui.errors import BadInput
from ada_tui.text import visible
from ada_tui.workspace import Workspace

if TYPE_CHECKING:
    from ada_tui.dataset import PreparedData, Probe, Report

SHOWN = 40
"""Problems printed for a person; --json lists them all."""

files_argument = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")


@click.group()
def data() -> None:
    """Check chat files and turn them into prompt rows."""


@data.command()
@files_argument
@click.option("--fix", "fixing", is_flag=True, help="Write the chats again with the safe repairs done (needs -o).")
@click.option("-o", "out", type=click.Path(path_type=Path), help="Where --fix writes; the source is never touched.")
@json_option
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], fixing: bool, out: Path | None, as_json: bool) -> int:
    """What is in the files, and everything that is wrong with them, with file, line and turn."""
    from ada_tui import dataset

    if fixing != (out is not None):
        raise BadInput("--fix and -o belong together: say `--fix -o OUT.jsonl`")
    if out is None:
        report, more = dataset.check(files), {}
    else:
        fixed = dataset.fix(files, out)
        report = fixed.report
        more = {"out": str(out), "written": fixed.written, "changes": fixed.changes}
        click.echo(f"{fixed.written} chats in {out}; {len(fixed.changes)} changes in {fixed.changes_file}", err=True)
    if as_json:
        print_json(report.to_json() | more)
    else:
        _print_report(report)
    if not report.ok:
        first = f"{_place(report)}: {report.problems[0].message}" if report.problems else str(files[0])
        raise BadInput(f"{first}; no usable chat in what was given")
    return 1 if report.problems else 0


def _place(report: Report) -> str:
    problem = report.problems[0]
    return f"{problem.file}:{problem.line}" if problem.line else problem.file


def _print_report(report: Report) -> None:
    from ada_tui.dataset import CODES

    formats = ", ".join(f"{name} {count}" for name, count in report.formats.most_common())
    click.echo(f"{report.rows} records: {report.ok} usable, {report.skipped} skipped ({formats or 'no known format'})")
    for problem in report.problems[:SHOWN]:
        click.echo(visible(str(problem)))
    if len(report.problems) > SHOWN:
        click.echo(f"... and {len(report.problems) - SHOWN} more; --json lists them all")
    if report.counts:
        click.echo()
        rows = [(code, count, CODES[code].remedy) for code, count in report.counts.most_common()]
        print_table(("problem", "times", "what is done, or what to do"), rows)


@data.command()
@files_argument
@click.option("-o", "out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the rows.")
@click.option("--held-out", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Share never trained on.")
@click.option("--seed", type=int, help="Seed of the split.")
@click.option("--every-turn", is_flag=True, help="Also make a row of each earlier user turn.")
@click.option(
    "--sft", is_flag=True, help="Also write sft.jsonl: whole chats of the train side, system prompt included."
)
@click.option("--tokenizer", type=click.Path(path_type=Path), help="Model folder whose tokenizer measures the rows.")
@json_option
@click.pass_obj
def convert(
    workspace: Workspace,
    files: tuple[Path, ...],
    out: Path,
    held_out: float | None,
    seed: int | None,
    every_turn: bool,
    sft: bool,
    tokenizer: Path | None,
    as_json: bool,
) -> int:
    """Canonical prompt rows, split by topic cluster into train.jsonl and held_out.jsonl."""
    from ada_tui import dataset, persona

    settings = workspace.settings()
    share = settings.data.held_out if held_out is None else held_out
    seed = settings.data.seed if seed is None else seed
    labels = dataset.Labels.load(workspace.root / "data" / "labels.jsonl")
    read = dataset.rows_of_files(files, labels, every_turn)
    split = dataset.split_rows(read.rows, share, seed)
    prepared = dataset.write_split(out, split, read.report.skipped, share, seed)
    speaker = persona.load(workspace.resolve(settings.data.persona))
    spread = dataset.balance(read.rows)
    document: dict[str, Any] = {
        "train": str(prepared.train),
        "held_out": str(prepared.held_out),
        "kinds": prepared.kinds,
        "clusters": prepared.clusters,
        "counts": prepared.counts,
        "answerable_or_social": round(spread.share, 3),
        "problems": len(read.report.problems),
        "advice": [text for text in (spread.advice, dataset.other_systems(read.rows, speaker)) if text],
    }
    if sft:
        document["sft"] = str(_write_sft(out, split.train, speaker))
    measured = dataset.probe(read.rows, tokenizer, speaker) if tokenizer else None
    if measured:
        document["lengths"] = {
            "prompt_p95": measured.prompts.p95, "reference_p95": measured.references.p95, "cap": measured.cap,
        }  # fmt: skip
    if as_json:
        print_json(document)
    else:
        _print_rows(prepared, document, measured)
    return 1 if read.report.problems else 0


def _write_sft(folder: Path, rows: list[Any], speaker: Any) -> Path:
    import orjson

    from ada_tui.dataset import sft_chats
    from ada_tui.jobs import write_atomic

    path = folder / "sft.jsonl"
    write_atomic(path, b"".join(orjson.dumps(chat) + b"\n" for chat in sft_chats(rows, speaker)))
    return path


def _print_rows(prepared: PreparedData, document: dict[str, Any], measured: Probe | None) -> None:
    counts = prepared.counts
    click.echo(f"{counts['train']} rows in {prepared.train}, {counts['held_out']} in {prepared.held_out}")
    click.echo(f"{prepared.clusters} topic clusters, none on both sides; {counts['skipped']} records skipped")
    print_table(("kind", "rows"), list(prepared.kinds.items()))
    for text in document["advice"]:
        click.echo(f"note: {text}")
    if document["problems"]:
        click.echo(f"note: {document['problems']} problems; `ada-tui data check` lists them")
    if measured:
        click.echo(f"prompts: 95 % have at most {measured.prompts.p95} tokens; references: {measured.references.p95}")
        for edge, count in measured.references.histogram:
            click.echo(f"{edge:6d} {'█' * round(40 * count / max(1, measured.references.count))} {count}")
        click.echo(f"proposed grpo.max_completion: {measured.cap}")


@data.command()
@click.argument("run")
@click.option("-o", "out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File to write.")
@click.option("--format", "form", type=click.Choice(["dpo", "kto"]), default="dpo", show_default=True)
@json_option
@click.pass_obj
def prefer(workspace: Workspace, run: str, out: Path, form: str, as_json: bool) -> None:
    """Picks and rankings of a run as preference data for TRL (DPO pairs or KTO verdicts)."""
    import orjson

    from ada_tui import dataset, jobs, picks
    from ada_tui.dataset.rows import clean_surrogates
    from ada_tui.persona import Persona
    from rewards import RewardConfig

    job = jobs.find(workspace.checkpoints, run)
    asked = job.job()
    config = RewardConfig.from_dict(asked.rewards) if asked.rewards else RewardConfig.default()
    kind: Any = form
    found = list(
        dataset.preferences(job.groups(), picks.read(job), config, Persona.from_dict(asked.persona), form=kind)
    )
    if not found:
        raise BadInput(f"{job.path}: no group in which one reply is clearly better; sample more, or pick by hand")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        jobs.write_atomic(out, b"".join(orjson.dumps(clean_surrogates(record)) + b"\n" for record in found))
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror}); choose a folder you may write") from None
    if as_json:
        print_json({"out": str(out), "records": len(found), "format": form})
    else:
        click.echo(f"{len(found)} {form} records in {out}")
