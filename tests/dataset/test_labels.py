"""Labelling without a screen: doubtful first, saved at once, undone, kept in a sidecar."""

from __future__ import annotations

import pytest

from ada_tui.dataset import Labelling, Labels, PromptRow, balance, guess, prefill
from ada_tui.dataset.labels import ADVISED_SHARE
from ada_tui.errors import BadInput
from rewards.types import Row

ROWS = [
    PromptRow("greet", "Good morning!"), PromptRow("fact", "What's the capital of Peru?"),
    PromptRow("odd", "the thing with the boat again"), PromptRow("given", "Hm", row=Row(id="given", kind="ack")),
]  # fmt: skip


def session(tmp_path, rows=ROWS):
    return Labelling(rows, Labels.load(tmp_path / "data" / "labels.jsonl"))


def test_the_doubtful_come_first_and_the_decided_are_left_out(tmp_path):
    work = session(tmp_path)
    assert [row.id for row in work.open()] == ["odd", "fact", "greet"]
    assert work.progress == (1, 4)


def test_each_decision_is_on_disk_at_once(tmp_path):
    session(tmp_path).decide(ROWS[2], "private")
    again = session(tmp_path)
    assert again.labels.by_id == {"odd": {"kind": "private", "answerable": False}}
    assert again.progress == (2, 4)


def test_undo_takes_back_one_decision_after_the_other(tmp_path):
    work = session(tmp_path)
    work.decide(ROWS[1], "factual", gold=["Lima"])
    work.decide(ROWS[1], "opinion")
    work.decide(ROWS[0], "greeting")
    assert [work.undo(), work.undo()] == ["greet", "fact"]
    label = {"kind": "factual", "answerable": True, "gold": ["Lima"]}
    assert session(tmp_path).labels.by_id == {"fact": label}
    assert [work.undo(), work.undo()] == ["fact", None]
    assert session(tmp_path).labels.by_id == {}


def test_labels_win_over_the_file_and_reach_the_row(tmp_path):
    work = session(tmp_path)
    work.decide(ROWS[3], "factual", gold=["yes"])
    row = work.labels.apply(ROWS[3])
    assert (row.row.kind, row.row.answerable, row.row.gold) == ("factual", True, ("yes",))
    assert work.labels.apply(ROWS[0]) is ROWS[0]


def test_a_label_that_cannot_be_saved_is_not_kept(tmp_path):
    work = session(tmp_path)
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(BadInput, match="cannot save the labels"):
        work.decide(ROWS[0], "greeting")
    assert work.labels.by_id == {}
    assert work.undo() is None


@pytest.mark.parametrize("line", ["{", "[]", '{"kind": "ack"}', '{"id": "x", "kind": "banter"}', "3"])
def test_a_broken_sidecar_is_named(tmp_path, line):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "a", "kind": "ack"}\n' + line + "\n")
    with pytest.raises(BadInput, match="not a label") as refusal:
        Labels.load(path)
    assert f"{path}:2:" in str(refusal.value)


def test_rules_fill_in_what_nobody_decided():
    assert prefill(ROWS[0]).row.kind == "greeting"
    assert prefill(ROWS[0]).row.answerable is True
    assert prefill(ROWS[1]).row.kind is None  # factual is what the rewards assume anyway
    assert prefill(ROWS[3]).row.kind == "ack"
    unsure = PromptRow("x", "Good morning!", row=Row(id="x", answerable=False))
    assert prefill(unsure).row.kind == "unanswerable"
    assert guess(ROWS[0]).confidence > guess(ROWS[1]).confidence > guess(ROWS[2]).confidence


def test_balance_advises_when_too_little_can_be_answered():
    mostly = [PromptRow(str(i), "x", row=Row(kind="private" if i < 5 else "greeting")) for i in range(10)]
    assert balance(mostly).share == 0.5 < ADVISED_SHARE
    assert "only 50%" in balance(mostly).advice
    assert balance(mostly[4:]).advice is None
