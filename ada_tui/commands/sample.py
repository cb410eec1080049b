"""`ada-tui sample`: one scored group for a prompt."""

from __future__ import annotations

from typing import Any

import click

from ada_tui import runs
from ada_tui.commands._options import json_option
from ada_tui.commands._output import print_json
from ada_tui.commands._progress import display, watch
from ada_tui.errors import JobFailed
from ada_tui.protocol import Group
from ada_tui.text import visible
from ada_tui.workspace import Workspace


@click.command()
@click.option("--prompt", "-p", required=True, help="What the person says.")
@click.option("-n", "count", type=click.IntRange(2, 512), default=8, show_default=True, help="Completions.")
@click.option("--policy", "reference", default="base", show_default=True, metavar="base|RUN[:STEP]|ADAPTER")
@click.option("--temperature", type=click.FloatRange(min=0, min_open=True), help="Default: the one GRPO samples with.")
@json_option
@click.pass_obj
def sample(
    workspace: Workspace, prompt: str, count: int, reference: str, temperature: float | None, as_json: bool
) -> None:
    """Sample one group of completions and score every one with every rule."""
    settings = workspace.settings()
    who = runs.policy(workspace, reference)
    job = runs.start_sample(workspace, settings, who, [{"prompt": prompt}], n=count, temperature=temperature)
    with display() as shown:
        watch(job, shown)
    group = next(job.groups(), None)
    if group is None:
        raise JobFailed(f"{job.id} ended without a group; the log is {job.path / 'worker.log'}")
    _print(group, job.job().rewards, as_json)


def _print(group: Group, rewards: dict[str, Any], as_json: bool) -> None:
    from rewards import RewardConfig
    from rewards.combine import group_advantages, total
    from rewards.types import RawScores

    config = RewardConfig.from_dict(rewards)
    raws = [RawScores.from_dict(completion.raw) for completion in group.completions]
    totals = [total(raw, config) for raw in raws]
    advantages = group_advantages(totals)
    if as_json:
        completions = [
            {"text": c.text, "tokens": c.tokens, "truncated": c.truncated, "card": {**c.raw, "total": value}}
            for c, value in zip(group.completions, totals, strict=True)
        ]
        print_json({"prompt": group.prompt, "completions": completions, "advantages": advantages})
        return
    click.echo(f"{visible(group.prompt)}   ({raws[0].kind}, decided by {group.kind_by})")
    for index in sorted(range(len(totals)), key=lambda i: -totals[i]):
        raw, completion = raws[index], group.completions[index]
        parts = "  ".join(f"{name} {'-' if value is None else f'{value:.2f}'}" for name, value in raw.rewards.items())
        cut = "  cut" if completion.truncated else ""
        click.echo(f"\n{totals[index]:+.2f}  {parts}  guard {raw.guard:+.2f}  {completion.tokens} tokens{cut}")
        click.echo(f"    {visible(completion.text)}")
