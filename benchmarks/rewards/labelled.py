"""The labelled sets that detectors are measured on, cut in two halves: tuned on one, reported on the other.

The sets are not part of the repository; where they are absent every reader gives None.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT.parent / "shared" / "validation"
WHY_ABSENT = "the labelled sets (../shared/validation) are not on this machine"

Record = dict[str, Any]


def read(name: str) -> list[Record] | None:
    """All records of a set, or None where it is absent."""
    path = FOLDER / f"{name}.jsonl"
    if not path.is_file():
        return None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def halves(records: Iterable[Record], key: str) -> tuple[list[Record], list[Record]]:
    """(for tuning, for reporting), by a hash of one column, so that equal prompts stay together."""
    out: tuple[list[Record], list[Record]] = ([], [])
    for record in records:
        digest = hashlib.sha256(str(record[key]).strip().lower().encode()).digest()
        out[digest[0] % 2].append(record)
    return out


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Chance that a positive scores above a negative (ties count half).

    >>> auc([1, 2], [0, 2])
    0.625
    """
    if not positive or not negative:
        return float("nan")
    merged = sorted([(s, 1) for s in positive] + [(s, 0) for s in negative])
    rank_sum, i = 0.0, 0
    while i < len(merged):
        j = i
        while j < len(merged) and merged[j][0] == merged[i][0]:
            j += 1
        rank_sum += sum(label for _, label in merged[i:j]) * (i + j + 1) / 2
        i = j
    n, m = len(positive), len(negative)
    return (rank_sum - n * (n + 1) / 2) / (n * m)


def precision_recall(flags: Sequence[bool], labels: Sequence[bool]) -> tuple[float, float, float]:
    """(precision, recall, F1) of a yes-no detector."""
    hit = sum(f and y for f, y in zip(flags, labels, strict=True))
    precision = hit / max(1, sum(flags))
    recall = hit / max(1, sum(labels))
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)
