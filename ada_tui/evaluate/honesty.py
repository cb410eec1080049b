"""Was the comparison a fair one? Looks for arms that were trained on what they are tested on, or on the audit list.

It follows an arm's adapter to the job that made it and on to its parents, and reads what they were really trained on:
the rows of job.json and the groups they generated. Nothing is assumed of an adapter that came from elsewhere: it is
named as unknown. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ada_tui.dataset.rows import PromptRow, content_id, load_rows
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.protocol import ControlApplied
from rewards.types import Row

TRAINED = ("sft", "grpo", "dpo")
"""Kinds of job that train."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a comparison worth less, or nothing."""

    arm: str
    words: str
    fatal: bool
    """The arm's figures prove nothing."""


def job_of(adapter: Path) -> JobDir | None:
    """The job that made the adapter folder `<job>/adapters/step-N`, or None when it came from elsewhere."""
    job = adapter.resolve().parent.parent
    return JobDir(job) if (job / "job.json").is_file() else None


def lineage(adapter: Path) -> Iterator[JobDir]:
    """The job that made an adapter, then the job whose adapter that one started from, and so on."""
    job, seen = job_of(adapter), set[Path]()
    while job is not None and job.path not in seen:
        seen.add(job.path)
        yield job
        spec = job.job()
        start = str(spec.model.get("adapter") or "")
        job = job_of(_inside(spec.workspace, start)) if start else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a set of rows is recognised by."""

    ids: frozenset[str]
    contents: frozenset[str]
    """Of prompt and history, whatever the id says."""
    topics: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[PromptRow]) -> _Rows:
        rows = list(rows)
        return cls(
            frozenset(row.id for row in rows),
            frozenset(content_id(row.prompt, row.history) for row in rows),
            frozenset(row.row.topic_cluster for row in rows) - {""},
        )


def findings(
    arms: Mapping[str, str], held_out: Iterable[PromptRow], workspace: str, withheld: Iterable[str]
) -> list[Finding]:
    """What is wrong with the arms (name -> adapter folder, "" = the base), the worst first.

    Args:
        held_out: the rows of the comparison.
        workspace: what relative paths are relative to.
        withheld: ids of the phrases on the audit list.
    """
    tested, audit = _Rows.of(held_out), frozenset(withheld)
    found: list[Finding] = []
    for arm, adapter in arms.items():
        if not adapter:
            continue
        jobs = list(lineage(_inside(workspace, adapter)))
        if not jobs:
            name = Path(adapter).name
            found.append(Finding(arm, f"{arm}: the adapter {name} came from elsewhere; its data are unknown", False))
        for job in jobs:
            found += _of_job(arm, job, tested, audit)
    return sorted(found, key=lambda finding: not finding.fatal)


def _of_job(arm: str, job: JobDir, tested: _Rows, audit: frozenset[str]) -> Iterator[Finding]:
    spec = job.job()
    if spec.kind not in TRAINED:
        return
    try:
        trained = _Rows.of(_trained_on(job))
    except BadInput as error:
        yield Finding(arm, f"{arm}: what {job.id} was trained on cannot be read ({error})", False)
        return
    if leaked := max(trained.ids & tested.ids, trained.contents & tested.contents, key=len):
        some = ", ".join(sorted(leaked)[:3])
        yield Finding(arm, f"{arm}: {job.id} was trained on {len(leaked)} of the held-out rows ({some})", True)
    elif topics := trained.topics & tested.topics:
        yield Finding(arm, f"{arm}: {job.id} was trained on {len(topics)} topics of the held-out rows", False)
    if spec.kind != "grpo":
        return
    seen = {str(entry["id"]) for entry in spec.rewards.get("fillers", ()) if entry.get("enabled", True)} & audit
    if seen:
        yield Finding(arm, f"{arm}: {job.id} was trained with {len(seen)} phrases of the audit list switched on", False)
    edits = [event for event in job.events() if isinstance(event, ControlApplied) and event.changed and not event.error]
    if edits:
        yield Finding(
            arm, f"{arm}: {job.id} was steered {len(edits)} times while it ran: not a controlled comparison", False
        )


def _trained_on(job: JobDir) -> list[PromptRow]:
    """Everything a job learned from: the rows it was given and the prompts it generated for. Raises BadInput."""
    spec = job.job()
    rows = load_rows(_inside(spec.workspace, str(spec.data.get("pairs" if spec.kind == "dpo" else "train", ""))))
    seen = {row.id for row in rows}
    for group in job.groups():
        key = str(group.row.get("id") or group.id)
        if group.source == "train" and key not in seen:
            seen.add(key)
            rows.append(PromptRow(id=key, prompt=group.prompt, history=group.history, row=Row.from_columns(group.row)))
    return rows


def refuse_leaks(found: Iterable[Finding]) -> None:
    """Raises BadInput when an arm was trained on what it would be tested on."""
    for finding in found:
        if finding.fatal:
            raise BadInput(
                f"{finding.words}: the comparison would prove nothing; train it on this split, or leave the arm out"
            )


def _inside(workspace: str, path: str) -> Path:
    return Path(workspace or ".") / Path(path).expanduser()
