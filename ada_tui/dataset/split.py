"""Train and held-out: whole topic clusters go to one side, every kind is represented on both, the seed decides which.

Not here: writing files (`prepared.py`). Anybody may import it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ada_tui.dataset.near import Groups, clusters
from ada_tui.dataset.rows import PromptRow
from ada_tui.errors import BadInput


@dataclass(frozen=True, slots=True)
class Split:
    """Both sides; `row.split` and `row.topic_cluster` are filled in."""

    train: list[PromptRow]
    held_out: list[PromptRow]
    clusters: int


def topic_clusters(rows: Sequence[PromptRow]) -> list[int]:
    """For each row the index of the first row of its topic cluster.

    Rows belong together when their prompts, or the openings of their chats, are near-duplicates (`near.py`); so do all
    rows that were cut from one chat.
    """
    texts = [row.prompt for row in rows] + [_opening(row) for row in rows]
    alike = clusters(texts)
    groups = Groups(len(rows))
    for index, first in enumerate(alike):
        groups.join(index % len(rows), first % len(rows))
    return groups.labels()


def _opening(row: PromptRow) -> str:
    return next((turn["content"] for turn in row.history if turn["role"] == "user"), row.prompt)


def split_rows(rows: Sequence[PromptRow], held_out: float, seed: int) -> Split:
    """Split by topic cluster, stratified by kind. The same rows, share and seed always give the same split,
    whatever the order of the rows.

    Raises:
        BadInput: fewer than two clusters, so that one side would be empty.
    """
    labels = topic_clusters(rows)
    members: dict[int, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    if len(members) < 2:
        raise BadInput(f"{len(rows)} rows about {len(members)} topic cannot be split: add chats about other things")
    names = {label: min(rows[i].id for i in group) for label, group in members.items()}
    chosen = _choose(rows, members, names, held_out, seed)
    sides: dict[bool, list[PromptRow]] = {False: [], True: []}
    for row, label in zip(rows, labels, strict=True):
        side = label in chosen
        columns = replace(row.row, split="held_out" if side else "train", topic_cluster=names[label])
        sides[side].append(replace(row, row=columns))
    return Split(train=sides[False], held_out=sides[True], clusters=len(members))


def _choose(
    rows: Sequence[PromptRow], members: dict[int, list[int]], names: dict[int, str], share: float, seed: int
) -> set[int]:
    """The clusters held out: for each kind, in an order drawn by the seed, until its share is met."""
    strata: dict[str, list[int]] = {}
    for label, group in members.items():
        strata.setdefault(_kind_of(rows[i] for i in group), []).append(label)
    chosen: set[int] = set()
    carry = 0.0  # what rounding left over in one kind is made up for in the next
    for kind in sorted(strata):
        order = sorted(strata[kind], key=lambda label: _draw(seed, names[label]))
        wanted = share * sum(len(members[label]) for label in order) + carry
        for label in order:
            size = len(members[label])
            if abs(wanted - size) < abs(wanted):
                chosen.add(label)
                wanted -= size
        carry = wanted
    if not chosen or len(chosen) == len(members):
        smallest_first = sorted(members, key=lambda label: (len(members[label]), _draw(seed, names[label])))
        chosen = {smallest_first[0]}
    return chosen


def _kind_of(rows: Iterable[PromptRow]) -> str:
    counts = Counter(row.row.kind or "" for row in rows)
    return min(counts, key=lambda kind: (-counts[kind], kind))


def _draw(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest()
