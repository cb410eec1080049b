"""Blind A/B verdicts: what a person said about two replies without knowing who spoke. Read here, written by the app.

A verdict is one line of JSON in picks.jsonl of the eval job:

    {"type": "blind", "row_id": "r1f...", "a": "sft", "b": "grpo", "winner": "b", "time": 1764547200.0}

`winner` is "a", "b" or "tie". The newest verdict on a row and pair of arms counts: one vote a prompt, because two
verdicts on the same prompt are not independent. Lines of other types and damaged lines are passed over.
Identical replies are never shown: they say nothing. Anybody may import it.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import orjson

from ada_tui.evaluate.statistics import WinRate, verdict_rate
from ada_tui.jobs import JobDir, read_lines
from ada_tui.protocol import Group

FILE = "picks.jsonl"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One blind choice between a reply of arm `a` and one of arm `b` to the same prompt."""

    row_id: str
    a: str
    b: str
    winner: str
    """"a", "b" or "tie"."""


@dataclass(frozen=True, slots=True)
class Question:
    """Two replies to one prompt, side by side; which arm stands where is drawn once and for all."""

    row_id: str
    prompt: str
    history: list[dict[str, str]]
    replies: tuple[str, str]
    """Left, right."""
    arms: tuple[str, str]
    """Who spoke, left and right: not to be shown before the verdict."""

    def verdict(self, winner: Literal["left", "right", "tie"]) -> Verdict:
        """The person's choice as it is stored."""
        return Verdict(self.row_id, *self.arms, {"left": "a", "right": "b", "tie": "tie"}[winner])


def questions(job: JobDir, a: str, b: str) -> list[Question]:
    """What a person may still be asked about arms `a` and `b`, in an order and with sides drawn from the job's seed."""
    spoken: dict[str, dict[str, Group]] = defaultdict(dict)
    for group in job.groups():
        if group.source == "eval" and group.policy in (a, b) and group.completions:
            spoken[str(group.row.get("id") or group.id)][group.policy] = group
    judged = {verdict.row_id for verdict in verdicts(job) if {verdict.a, verdict.b} == {a, b}}
    seed, asked = job.job().seed, []
    for row_id, groups in spoken.items():
        if len(groups) < 2 or row_id in judged:
            continue
        rng = random.Random(f"{seed} {row_id}")
        arms = (a, b) if rng.random() < 0.5 else (b, a)
        left, right = (rng.choice(groups[arm].completions).text for arm in arms)
        if left.strip() != right.strip():
            group = groups[a]
            asked.append(Question(row_id, group.prompt, group.history, (left, right), arms))
    random.Random(seed).shuffle(asked)
    return asked


def record(job: JobDir, verdict: Verdict) -> None:
    """Append a verdict to the job's picks. Raises OSError (disk full)."""
    line = {"type": "blind", "row_id": verdict.row_id, "a": verdict.a, "b": verdict.b, "winner": verdict.winner}
    data = orjson.dumps({**line, "time": time.time()}) + b"\n"
    fd = os.open(job.path / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def verdicts(job: JobDir) -> Iterator[Verdict]:
    """The blind verdicts stored with an eval job, the newest per row and pair of arms."""
    newest: dict[tuple[str, frozenset[str]], Verdict] = {}
    for _, line in read_lines(job.path / FILE):
        try:
            data = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(data, dict) or data.get("type") != "blind" or data.get("winner") not in ("a", "b", "tie"):
            continue
        found = Verdict(*(str(data.get(name, "")) for name in ("row_id", "a", "b", "winner")))
        if found.row_id and found.a and found.b and found.a != found.b:
            newest[found.row_id, frozenset((found.a, found.b))] = found
    yield from newest.values()


def blind_rate(job: JobDir, a: str, b: str) -> WinRate | None:
    """The win rate of arm `b` against arm `a` by the blind verdicts of `job`; None when nothing was decided."""
    counts: Counter[str] = Counter()
    for verdict in verdicts(job):
        if {verdict.a, verdict.b} == {a, b}:
            winner = {"a": verdict.a, "b": verdict.b}.get(verdict.winner, "tie")
            counts["wins" if winner == b else "losses" if winner == a else "ties"] += 1
    return verdict_rate(a, b, counts["wins"], counts["losses"], counts["ties"])
