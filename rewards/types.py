"""The vocabulary of scoring: what goes in (Row), what a rule says (Span, Result), what comes out (Card).

Plain frozen dataclasses and nothing else: no rule, no text handling, no I/O. Everything in `rewards` imports this file;
it imports nothing of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

KINDS = (
    "greeting", "thanks_bye", "ack", "smalltalk", "factual", "opinion", "feedback", "howto",
    "complex", "creative", "code", "realtime", "private", "after_cutoff", "unanswerable", "defer",
)  # fmt: skip
"""Every kind of prompt a row can have."""

SOCIAL_KINDS = frozenset({"greeting", "thanks_bye", "ack", "smalltalk"})
"""Kinds that want company, not information."""

ABSTAIN_KINDS = frozenset({"realtime", "private", "after_cutoff", "unanswerable"})
"""Kinds on which the honest reply is "I don't know" or "I can't check that"."""

ALLOWANCES = ("code", "list", "header", "link", "tips", "offer", "extra", "language")
"""What a row may permit beyond the plain reply (`Row.allow`)."""

REWARD_NAMES = ("length", "filler", "tone", "uncertainty", "unsolicited")
"""The built-in rewards in the order in which they are shown. Guard and substance are not in it: they are no votes."""

KindSource = Literal["row", "rule", "default"]


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt of the dataset: what the person (or a rule) knows about it. Every column is optional.

    `kind` and `answerable` are None when nobody decided them; then a rule does and the Card says so.
    """

    id: str = ""
    split: str = ""
    kind: str | None = None
    answerable: bool | None = None
    gold: tuple[str, ...] = ()
    """Accepted answers with their aliases; a reply is right when it contains one of them."""
    distractors: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    """Words a good reply names; empty = taken from the reference."""
    reference: str = ""
    """The curated reply of the chat the row comes from."""
    len_lo: int | None = None
    len_hi: int | None = None
    register: str = "casual"
    allow: tuple[str, ...] = ()
    user_wrong: bool = False
    """The last user turn carries a wrong claim: giving in to it is the fault we look for."""
    topic_cluster: str = ""
    source: str = ""

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Row:
        """Build a row from dataset columns; unknown columns are ignored, None and "" mean absent.

        Raises:
            ValueError: a column has the wrong type, or kind or allow has an unknown value.
        """
        values: dict[str, Any] = {}
        for f in fields(cls):
            value = columns.get(f.name)
            if value is None or value == "":
                continue
            values[f.name] = _coerce(f.name, value)
        return cls(**values)

    def to_columns(self) -> dict[str, Any]:
        """The row as JSON-ready columns; defaults are left out."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                out[f.name] = list(value) if isinstance(value, tuple) else value
        return out


_TUPLES = frozenset({"gold", "distractors", "keywords", "allow"})
_INTS = frozenset({"len_lo", "len_hi"})
_BOOLS = frozenset({"answerable", "user_wrong"})


def _coerce(name: str, value: Any) -> Any:
    if name in _TUPLES:
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str | int | float) for item in value):
            raise ValueError(f"column {name!r} must be a list of strings, not {value!r}")
        value = tuple(str(item) for item in value)
        if name == "allow" and (unknown := set(value) - set(ALLOWANCES)):
            raise ValueError(f"column 'allow' has {sorted(unknown)}; known are {', '.join(ALLOWANCES)}")
        return value
    if name in _BOOLS:
        if not isinstance(value, bool | int):
            raise ValueError(f"column {name!r} must be true or false, not {value!r}")
        return bool(value)
    if name in _INTS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"column {name!r} must be a number of words, not {value!r}")
        return int(value)
    if not isinstance(value, str | int):
        raise ValueError(f"column {name!r} must be text, not {type(value).__name__}")
    if name == "kind" and value not in KINDS:
        raise ValueError(f"column 'kind' has {value!r}; known are {', '.join(KINDS)}")
    return str(value)


@dataclass(frozen=True, slots=True)
class Span:
    """One matched place: `completion[start:end]` in the RAW text, and what it cost (delta < 0) or earned."""

    start: int
    end: int
    rule: str
    category: str
    delta: float
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """What one reward says of one completion.

    `score` is in {0, 0.05, ..., 1}, or None when this *row* gives the reward no opinion (never the completion).
    `why` holds one plain sentence per deduction, ready for the screen.
    """

    score: float | None
    spans: tuple[Span, ...] = ()
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RawScores:
    """The part of a Card that is stored: enough to recompute the total under any weights, nothing derived from them."""

    rewards: Mapping[str, float | None]
    """Score per reward, the person's own rewards included."""
    guard: float
    """-1..0."""
    gated: bool
    """A hard guard rule fired: the total is the guard alone; the raw scores stay as they are."""
    substance: float | None
    """0..1, None = no opinion (factor 1)."""
    kind: str
    has_gold: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "rewards": dict(self.rewards), "guard": self.guard, "gated": self.gated,
            "substance": self.substance, "kind": self.kind, "has_gold": self.has_gold,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RawScores:
        return cls(
            rewards=data["rewards"], guard=data["guard"], gated=data["gated"],
            substance=data["substance"], kind=data["kind"], has_gold=data.get("has_gold", False),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Card:
    """Everything known about one completion: raw scores, the total under a configuration, and the evidence."""

    raw: RawScores
    total: float
    kind_by: KindSource
    results: Mapping[str, Result] = field(default_factory=dict)
    """Per reward, plus "guard" and "substance": spans and reasons."""
    words: int = 0

    @property
    def kind(self) -> str:
        return self.raw.kind

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans of all rules, by position in the completion."""
        return tuple(sorted((s for r in self.results.values() for s in r.spans), key=lambda s: (s.start, s.end)))
