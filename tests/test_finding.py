"""The query language and the orders of the group list."""

from __future__ import annotations

import pytest

from ada_tui.errors import BadInput
from ada_tui.finding import find, orders
from ada_tui.ranking import Ranking
from tests.test_store import CONFIG, entry

GROUPS = [
    entry("wide", [(1.0, 0.2), (0.1, 0.1)]),
    entry("flat", [(1.0, 0.5), (0.5, 1.0)], source="sample"),
    entry("low", [(0.3, 0.2), (0.2, 0.35)]),
]


def names(query: str, ranking: Ranking | None = None) -> list[str]:
    found = find(GROUPS, query, ranking or Ranking(CONFIG, CONFIG), lambda group: group.id == "low")
    return [group.id for group in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["wide", "flat", "low"]),
        ("morn", ["wide", "flat", "low"]),
        ("evening", []),
        ("dead", ["flat"]),
        ("alive", ["wide", "low"]),
        ("-dead -picked", ["wide"]),
        ("picked", ["low"]),
        ("unpicked", ["wide", "flat"]),
        ("source:sample", ["flat"]),
        ("kind:fact", ["wide", "flat", "low"]),
        ("step:3", []),
        ("filler<0.15", ["wide"]),
        ("length>0.9", ["wide", "flat"]),
        ("total<0.26 alive", ["wide", "low"]),
        ("[/] \x1b", []),
        ("-", []),
    ],
)
def test_queries(query: str, found: list[str]) -> None:
    assert names(query) == found


def test_changed_winners_are_found() -> None:
    ranking = Ranking(CONFIG, CONFIG)
    ranking.turn(CONFIG.with_weight("filler", 5))
    assert names("changed", ranking) == ["flat"]


def test_an_unknown_score_is_said_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"^fillr<0\.5: no such score; known are length, filler"):
        names("fillr<0.5")


def test_orders() -> None:
    found = {order.name: order.key for order in orders(Ranking(CONFIG, CONFIG))}
    assert found["newest"] is None
    assert min(GROUPS, key=found["widest spread"]).id == "wide"
    assert min(GROUPS, key=found["lowest mean"]).id == "low"
    assert [g.id for g in sorted(GROUPS, key=found["lowest filler"])] == ["wide", "low", "flat"]
