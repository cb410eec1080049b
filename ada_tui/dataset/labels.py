"""Labelling: what kind of prompt each row is. A rule proposes, the person decides, a sidecar file remembers.

The sidecar is JSON Lines keyed by row id, so that labels survive a re-import, a new order and better replies. Not here:
the screen. Anybody may import it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ada_tui.dataset.rows import PromptRow, clean_surrogates
from ada_tui.errors import BadInput
from ada_tui.jobs import write_atomic
from rewards import RewardConfig
from rewards.kinds import by_rule, unanswerable_score
from rewards.types import ABSTAIN_KINDS, KINDS, SOCIAL_KINDS

FILE = "labels.jsonl"
"""Name of the sidecar in a workspace's data folder."""
ADVISED_SHARE = 0.6
"""Share of rows that should be answerable or social: a model trained mostly on not knowing stops answering."""


class Guess(NamedTuple):
    """What the rules say about a prompt."""

    kind: str
    answerable: bool
    confidence: float
    """0..1: how often such a guess is right; rows are shown in rising order of it."""


@cache
def _config() -> RewardConfig:
    return RewardConfig.default()


def guess(row: PromptRow) -> Guess:
    """The kind of a prompt by rule, with how far to trust it.

    >>> guess(PromptRow("a", "Good morning!")).kind
    'greeting'
    """
    kind = by_rule(row.prompt, _config())
    if kind is None:
        doubt = min(1.0, unanswerable_score(row.prompt, _config()))
        asks = row.prompt.rstrip().endswith("?")
        return Guess("factual", True, round(0.55 - 0.35 * doubt if asks else 0.3, 2))
    confidence = 0.9 if kind in SOCIAL_KINDS or kind == "code" else 0.75
    if row.history and kind in SOCIAL_KINDS:
        confidence -= 0.15  # "ok, and the second one?" looks social and is not
    if kind in ABSTAIN_KINDS:
        confidence -= 0.15
    return Guess(kind, kind not in ABSTAIN_KINDS, round(confidence, 2))


def prefill(row: PromptRow) -> PromptRow:
    """The row with kind and answerable filled in where nobody decided them: only where a rule sees a kind.

    `factual` is no guess worth storing: it is what the rewards assume of a row without a kind.
    """
    columns = row.row
    if columns.kind is None:
        kind = by_rule(row.prompt, _config())
        if columns.answerable is False and kind not in ABSTAIN_KINDS:
            kind = "unanswerable"
        if columns.answerable and kind in ABSTAIN_KINDS:
            kind = None
        columns = replace(columns, kind=kind)
    if columns.answerable is None and columns.kind is not None:
        columns = replace(columns, answerable=columns.kind not in ABSTAIN_KINDS)
    return row if columns is row.row else replace(row, row=columns)


@dataclass(slots=True)
class Labels:
    """What the person decided: row id -> columns (kind, answerable, and whatever else was set)."""

    path: Path
    by_id: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Labels:
        """The labels at `path`; none when there is no such file.

        Raises:
            BadInput: the file cannot be read or a line of it is no label; the message has file and line.
        """
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return cls(path)
        except OSError as error:
            raise BadInput(f"{path}: cannot read the labels ({error.strerror})") from None
        by_id: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                label = orjson.loads(line)
                identity = label.pop("id")
                if label.get("kind") is not None and label["kind"] not in KINDS:
                    raise ValueError(f"unknown kind {label['kind']!r}")
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise BadInput(f"{path}:{number}: not a label ({error}); correct or delete the line") from None
            by_id[str(identity)] = label
        return cls(path, by_id)

    def save(self) -> None:
        """Write all labels in one step. Raises BadInput when the folder cannot be written."""
        lines = [orjson.dumps(clean_surrogates({"id": key, **label})) for key, label in sorted(self.by_id.items())]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path, b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise BadInput(
                f"{self.path}: cannot save the labels ({error.strerror}); make the folder writable or free space"
            ) from None

    def apply(self, row: PromptRow) -> PromptRow:
        """The row with what the person decided about it; the label wins over the file."""
        label = self.by_id.get(row.id)
        if not label:
            return row
        try:
            columns = replace(row.row, **_known(label))
            return replace(row, row=type(columns).from_columns(columns.to_columns()))
        except (TypeError, ValueError) as error:
            raise BadInput(f"{self.path}: the label of {row.id!r:.60} is wrong ({error}); correct it") from None


def _known(label: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in label.items()}


class Labelling:
    """One labelling session over rows: the doubtful ones first, every decision saved at once and undoable."""

    def __init__(self, rows: Sequence[PromptRow], labels: Labels) -> None:
        self.labels = labels
        self.rows = list(rows)
        self._done: list[tuple[str, dict[str, Any] | None]] = []
        self._guesses = {row.id: guess(row) for row in rows}

    def decided(self, row: PromptRow) -> bool:
        """Did a person (or the chat file) say what this row is?"""
        return row.id in self.labels.by_id or row.row.kind is not None

    def open(self) -> list[PromptRow]:
        """Rows nobody decided yet, the most doubtful first."""
        waiting = [row for row in self.rows if not self.decided(row)]
        return sorted(waiting, key=lambda row: self._guesses[row.id].confidence)

    def guess(self, row: PromptRow) -> Guess:
        """What the rules propose for a row of this session."""
        return self._guesses[row.id]

    def decide(self, row: PromptRow, kind: str, **columns: Any) -> None:
        """Label a row and save. Raises BadInput when it cannot be saved; the decision is then not kept."""
        before = self.labels.by_id.get(row.id)
        label = {**(before or {}), "kind": kind, "answerable": kind not in ABSTAIN_KINDS, **columns}
        self._set(row.id, label)
        self._done.append((row.id, before))

    def undo(self) -> str | None:
        """Take the last decision back and save; the id of its row, or None when there is nothing to undo."""
        if not self._done:
            return None
        identity, before = self._done[-1]
        self._set(identity, before)
        self._done.pop()
        return identity

    def _set(self, identity: str, label: dict[str, Any] | None) -> None:
        """Set (None = remove) and save; what cannot be saved is not kept."""
        before = dict(self.labels.by_id)
        if label is None:
            self.labels.by_id.pop(identity, None)
        else:
            self.labels.by_id[identity] = label
        try:
            self.labels.save()
        except BadInput:
            self.labels.by_id = before
            raise

    @property
    def progress(self) -> tuple[int, int]:
        """(rows decided, all rows)."""
        return sum(map(self.decided, self.rows)), len(self.rows)


@dataclass(frozen=True, slots=True)
class Balance:
    """How the rows are spread over the kinds."""

    kinds: dict[str, int]
    share: float
    """Share of rows that are answerable or social (0..1); the advice is at least `ADVISED_SHARE`."""

    @property
    def advice(self) -> str | None:
        """A sentence when the share is too small."""
        if self.share >= ADVISED_SHARE:
            return None
        least = f"{ADVISED_SHARE:.0%}"
        return f"only {self.share:.0%} of the rows can be answered; below {least} the model learns to refuse"


def balance(rows: Iterable[PromptRow]) -> Balance:
    """The spread of kinds, and the share that the model should answer."""
    kinds: Counter[str] = Counter()
    good = total = 0
    for row in rows:
        kind = row.row.kind or "factual"
        kinds[kind] += 1
        total += 1
        good += kind in SOCIAL_KINDS or (row.row.answerable is not False and kind not in ABSTAIN_KINDS)
    return Balance(dict(sorted(kinds.items())), good / total if total else 1.0)
