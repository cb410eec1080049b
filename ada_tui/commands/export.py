"""`ada-tui export`: from a run's adapter to a GGUF with its Modelfile, compared with the adapter it came from."""

from __future__ import annotations

from typing import Any

import click

from ada_tui import jobs, runs
from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json, print_table
from ada_tui.commands._progress import display, watch
from ada_tui.errors import BadInput, JobFailed
from ada_tui.evaluate.ship import doubts
from ada_tui.export.quantise import BITS_PER_WEIGHT
from ada_tui.jobs import JobDir
from ada_tui.protocol import Outcome
from ada_tui.text import visible
from ada_tui.workspace import Workspace


@click.command("export")
@click.argument("run")
@click.option("--quant", type=click.Choice(list(BITS_PER_WEIGHT)), help="Quantisation (default: ada.toml, q4_k_m).")
@json_option
@click.pass_obj
def export(workspace: Workspace, run: str, quant: str | None, as_json: bool) -> None:
    """Merge the adapter of RUN (or RUN:STEP), convert, quantise, write the Modelfile, and compare with the adapter.

    A stage that was done before is not done again, so an export that failed goes on where it stopped.
    """
    job = start(workspace, run, quant)
    with display() as shown:
        watch(job, shown)
    document = result(job)
    if as_json:
        print_json({"export": job.id, **document})
    else:
        _print(job, document)


def start(workspace: Workspace, run: str, quant: str | None = None) -> JobDir:
    """The started export job of `run` ("grpo-1", "grpo-1:20"), on the base model the run was trained on.

    Raises:
        BadInput: there is no such run, or it has no complete adapter.
    """
    of = jobs.find(workspace.checkpoints, run.partition(":")[0])
    for line in doubts(of):
        click.echo(f"warning: {visible(line)}", err=True)
    who = runs.policy(workspace, run)
    if not who.adapter:
        raise BadInput(f"{run}: name a run that has an adapter; `ada-tui runs` lists them")
    trained_on = runs.model_of(of, workspace.settings())
    settings = workspace.settings({"model": trained_on, "export": {"quant": quant} if quant else {}})
    return runs.start_export(workspace, settings, who, of)


def result(job: JobDir) -> dict[str, Any]:
    """What a finished export found.

    Raises:
        JobFailed: it ended without a result (it was stopped).
    """
    found = [event.data for event in job.events() if isinstance(event, Outcome) and event.name == "export"]
    if not found:
        raise JobFailed(f"{job.id} ended without a result; start it again, it goes on where it stopped")
    return found[-1]


def _print(job: JobDir, document: dict[str, Any]) -> None:
    print_table(["stage", "seconds"], [[stage["name"], float(stage["seconds"])] for stage in document["stages"]])
    parity, quant = document["parity"], document["quant"]
    rows = [
        [
            name,
            figures["agreement"],
            figures["kl"],
            figures["perplexity"],
            parity["rules"][name],
            figures["tokens_per_s"],
        ]
        for name, figures in ((name, parity[name]) for name in dict.fromkeys(("f16", quant)))
    ]
    click.echo()
    print_table(["file", "agreement", "KL", "perplexity", "rules", "tokens/s"], rows)
    click.echo()
    click.echo(f"{document['gguf']}  {document['size'] / 1e6:.0f} MB  sha256 {document['sha256'][:16]}")
    click.echo(f"{document['modelfile']}  context {document['num_ctx']}")
    for answer in document["answers"]:
        click.echo(visible(f"  {answer['prompt']}  ->  {' '.join(answer['reply'].split())}"))
    if not parity["identity"]["named"]:
        click.echo("note: asked who it is, the model does not give its name; train longer, or with more such chats")
    click.echo(f"next: ada-tui deliver {job.id} --to USER@HOST")
