"""Blind A/B verdicts: what a person said about two replies without knowing who spoke. Read here, written by the app.

A verdict is one line of JSON in picks.jsonl of the eval job:

    {"type": "blind", "row_id": "r1f...", "a": "sft", "b": "grpo", "winner": "b", "time": 1764547200.0}

`winner` is "a", "b" or "tie". The newest verdict on a row and pair of arms counts: one vote a prompt, because two
verdicts on the same prompt are not independent. Lines of other types and damaged lines are passed over.
Anybody may import it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from ada_tui.evaluate.statistics import WinRate, verdict_rate
from ada_tui.jobs import JobDir, read_lines

FILE = "picks.jsonl"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One blind choice between a reply of arm `a` and one of arm `b` to the same prompt."""

    row_id: str
    a: str
    b: str
    winner: str
    """"a", "b" or "tie"."""


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
