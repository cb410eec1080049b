"""The capability items: every check works, the bundled set is whole and apart from the chats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rapidfuzz import fuzz

from ada_tui.errors import BadInput
from ada_tui.evaluate.regression import Item, load_items, passed, score
from ada_tui.workspace import bundled_data

ITEMS = load_items(bundled_data() / "ada" / "regression.jsonl")


@pytest.mark.parametrize(
    ("checks", "right", "wrong"),
    [
        ({"any": ["8", "eight"]}, "It has eight legs.", "It has eighteen legs."),
        ({"all": ["red", "blue"]}, "Blue and red.", "Only red."),
        ({"exact": "banana"}, '"Banana."', "The word is banana"),
        ({"words": [2, 3]}, "two words", "one two three four"),
        ({"lines": [2, 2]}, "a\n\nb", "a b"),
        ({"start": "yes"}, " Yes, they can.", "No, yes."),
        ({"not": ["sorry"]}, "Here you go.", "Sorry, I can't."),
        ({"any": ["4"], "words": [1, 2]}, "4", "Well, I believe that it is 4"),
    ],
)
def test_each_check_tells_right_from_wrong(checks: dict[str, object], right: str, wrong: str) -> None:
    item = Item("x", "?", checks)
    assert passed(item, right)
    assert not passed(item, wrong)


@pytest.mark.parametrize("reply", ["", "\x00\x1b]0;x\x07", "\ud800", "[/bold]", "é" * 50_000])
def test_hostile_replies_are_simply_wrong(reply: str) -> None:
    assert not passed(Item("x", "?", {"any": ["Paris"], "words": [1, 9], "lines": [1, 1]}), reply)


def test_score_leaves_out_what_was_not_asked() -> None:
    items = [Item("a", "?", {"exact": "yes"}), Item("b", "?", {"exact": "no"})]
    assert score(items, {"a": "yes", "z": "?"}) == {"a": 1.0}


def test_the_bundled_set_has_36_items_with_ids_of_their_own() -> None:
    assert len(ITEMS) == 36
    assert len({item.id for item in ITEMS}) == 36


def test_no_item_is_near_anything_that_is_trained_on() -> None:
    lines = (bundled_data() / "ada" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    turns = [
        t["value"].lower()
        for line in lines
        for t in json.loads(line)["conversations"]
        if t["from"] in ("human", "user")
    ]
    assert len(turns) > 300
    for item in ITEMS:
        nearest = max(turns, key=lambda turn: fuzz.token_set_ratio(turn, item.prompt.lower()))
        assert fuzz.token_set_ratio(nearest, item.prompt.lower()) < 85, (item.prompt, nearest)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not a capability item"),
        ('{"id": "a", "prompt": "?"}', "no check"),
        ('{"id": "a", "prompt": "?", "regex": "x"}', "unknown check 'regex'"),
        ('{"id": "a", "prompt": "?", "words": [1]}', "'words' cannot be"),
        ('{"id": "a", "any": ["x"]}', "id and prompt"),
        ("", "no capability items"),
    ],
)
def test_damaged_files_are_named_with_their_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        load_items(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"evaluate\.regression"):
        load_items(tmp_path / "none.jsonl")
