"""Find groups: a small query language, and the orders in which a list can stand. No I/O, no UI. Anybody may import it.

    rain              the prompt has the word
    kind:greeting     source:sample   policy:sft   step:12
    dead  alive       all totals equal, or not
    changed           another completion wins under the edited weights
    picked  unpicked
    filler<0.5        some completion scores so on that reward; also > and total<0.3
    -word             not

Several conditions must all hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ada_tui.errors import BadInput
from ada_tui.ranking import Ranking
from ada_tui.store import GroupEntry
from rewards.combine import reward_names

PickedOf = Callable[[GroupEntry], bool]
"""Whether the person has decided on a group."""

Condition = Callable[[GroupEntry], bool]

FIELDS = ("kind", "source", "policy", "step", "row")
_BOUND = re.compile(r"(\w+)([<>])(-?\d*\.?\d+)$")


@dataclass(frozen=True, slots=True)
class Order:
    """One way to sort the list."""

    name: str
    key: Callable[[GroupEntry], float] | None = None
    """Lowest first; None = as it comes, the newest first."""


def orders(ranking: Ranking) -> list[Order]:
    """All orders: newest, widest spread, lowest mean, changed winners first, lowest of each reward."""

    def lowest(name: str) -> Callable[[GroupEntry], float]:
        def key(entry: GroupEntry) -> float:
            scores = [raw.rewards.get(name) for raw in entry.raws]
            known = [score for score in scores if score is not None]
            return sum(known) / len(known) if known else 2.0

        return key

    return [
        Order("newest"),
        Order("widest spread", lambda entry: -ranking.now(entry).spread),
        Order("lowest mean", lambda entry: ranking.now(entry).mean),
        Order("changed first", lambda entry: -float(ranking.winner_changed(entry))),
        *(Order(f"lowest {name}", lowest(name)) for name in reward_names(ranking.config)),
    ]


def find(entries: Iterable[GroupEntry], query: str, ranking: Ranking, picked: PickedOf) -> list[GroupEntry]:
    """The entries for which every condition of `query` holds, in their order.

    Raises:
        BadInput: a condition names an unknown reward.
    """
    conditions = [_condition(word, ranking, picked) for word in query.split()]
    return [entry for entry in entries if all(holds(entry) for holds in conditions)]


def _condition(word: str, ranking: Ranking, picked: PickedOf) -> Condition:
    if word.startswith("-") and len(word) > 1:
        inner = _condition(word[1:], ranking, picked)
        return lambda entry: not inner(entry)
    plain: dict[str, Condition] = {
        "dead": lambda entry: ranking.now(entry).dead,
        "flat": lambda entry: ranking.now(entry).dead,
        "alive": lambda entry: not ranking.now(entry).dead,
        "changed": ranking.winner_changed,
        "picked": picked,
        "unpicked": lambda entry: not picked(entry),
    }
    if word in plain:
        return plain[word]
    if match := _BOUND.match(word):
        return _bound(match[1], match[2], float(match[3]), ranking)
    name, colon, value = word.partition(":")
    if colon and name in FIELDS:
        return _field(name, value.lower())
    return lambda entry: word.lower() in entry.prompt.lower()


def _bound(name: str, sign: str, limit: float, ranking: Ranking) -> Condition:
    known = (*reward_names(ranking.config), "guard", "substance", "total")
    if name not in known:
        raise BadInput(f"{name}{sign}{limit:g}: no such score; known are {', '.join(known)}")

    def scores(entry: GroupEntry) -> Sequence[float | None]:
        if name == "total":
            return ranking.now(entry).totals
        if name == "guard":
            return [raw.guard for raw in entry.raws]
        if name == "substance":
            return [raw.substance for raw in entry.raws]
        return [raw.rewards.get(name) for raw in entry.raws]

    def holds(entry: GroupEntry) -> bool:
        known_scores = [score for score in scores(entry) if score is not None]
        return any(score < limit if sign == "<" else score > limit for score in known_scores)

    return holds


def _field(name: str, value: str) -> Condition:
    attribute = {"row": "row_id"}.get(name, name)
    if name == "step":
        return lambda entry: str(entry.step) == value
    return lambda entry: value in str(getattr(entry, attribute)).lower()
