"""What rejection SFT and DPO learn from: replies to the training prompts, the best of each group, (best, worst) pairs.

The groups are those of a sample job on the *training* prompts; totals are recomputed under the configuration given.
Files are written beside the groups, in the sample job's directory. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from ada_tui import runs
from ada_tui.dataset.rows import PromptRow, load_rows, write_rows
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, write_atomic
from ada_tui.protocol import Group
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace
from rewards import RewardConfig
from rewards.combine import total
from rewards.types import RawScores, Row

GAP = 0.05
"""Least difference of totals between best and worst for a pair: one step of the scale."""


REPLIES = 8
"""Replies to each training prompt."""


def start_sampling(
    workspace: Workspace, settings: Settings, who: runs.Policy, train: Path, *, title: str, arm: runs.Arm | None = None
) -> JobDir:
    """Sample `REPLIES` replies of `who` to every row of `train`, as GRPO would sample them. Raises BadInput."""
    prompts = [{"prompt": row.prompt, "history": row.history, "row": row.row.to_columns()} for row in load_rows(train)]
    like_grpo = {"max_completion": settings.grpo.max_completion, "top_p": settings.grpo.top_p}
    chosen = settings.model_copy(update={"evaluate": settings.evaluate.model_copy(update=like_grpo)})
    return runs.start_sample(workspace, chosen, who, prompts, n=REPLIES, title=title, arm=arm)


def write_best(job: JobDir, config: RewardConfig) -> Path:
    """Prompt rows whose reference is the best reply of each group; gated replies are never taken. Raises BadInput."""
    path = job.path / "best.jsonl"
    rows = []
    for group in _groups(job):
        scored, row = _scored(group, config), _row(group)
        value, text = max(scored, key=_total)
        if value > 0:
            rows.append(replace(row, row=replace(row.row, reference=text)))
    if not rows:
        raise BadInput(f"{job.id}: no usable reply in it; sample from a better policy")
    write_rows(path, rows)
    return path


def write_pairs(job: JobDir, config: RewardConfig) -> Path:
    """Prompt rows with `chosen` and `rejected`: best and worst reply of each group that has a gap. Raises BadInput."""
    path, lines = job.path / "pairs.jsonl", []
    for group in _groups(job):
        scored = _scored(group, config)
        (high, best), (low, worst) = max(scored, key=_total), min(scored, key=_total)
        if high > 0 and high - low >= GAP:
            pair: dict[str, Any] = {**_row(group).to_json(), "chosen": best, "rejected": worst}
            lines.append(orjson.dumps(pair))
    if not lines:
        raise BadInput(f"{job.id}: no group with a difference of {GAP} in it; sample hotter or more")
    write_atomic(path, b"\n".join(lines) + b"\n")
    return path


def _groups(job: JobDir) -> Iterator[Group]:
    return (group for group in job.groups() if group.completions)


def _scored(group: Group, config: RewardConfig) -> list[tuple[float, str]]:
    """(total, text) of every reply."""
    return [(total(RawScores.from_dict(reply.raw), config), reply.text) for reply in group.completions]


def _total(scored: tuple[float, str]) -> float:
    return scored[0]


def _row(group: Group) -> PromptRow:
    columns = Row.from_columns(group.row)
    return PromptRow(id=columns.id or group.id, prompt=group.prompt, history=group.history, row=columns)
