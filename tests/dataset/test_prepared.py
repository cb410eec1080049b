"""The rows of a workspace: made once, made anew when the chats or the labels change."""

from __future__ import annotations

import orjson
import pytest

from ada_tui.dataset import Labels, load_rows, prepare
from ada_tui.errors import BadInput
from ada_tui.workspace import Workspace, init


@pytest.fixture
def workspace(tmp_path):
    return init(tmp_path / "ws")


def test_bundled_chats(workspace):
    made = prepare(workspace, workspace.settings())
    train, held_out = load_rows(made.train), load_rows(made.held_out)
    assert made.counts == {"train": len(train), "held_out": len(held_out), "skipped": 0}
    assert sum(made.kinds.values()) == len(train) + len(held_out) >= 320
    assert made.clusters >= 260
    assert not {row.id for row in train} & {row.id for row in held_out}
    assert made.train.is_relative_to(workspace.root / "data" / "rows")


def test_a_second_call_reuses_the_rows_and_leaves_nothing_behind(workspace):
    first = prepare(workspace, workspace.settings())
    stamp = first.train.stat().st_mtime_ns
    assert prepare(workspace, workspace.settings()) == first
    assert first.train.stat().st_mtime_ns == stamp
    assert [path.name for path in first.train.parent.parent.iterdir()] == [first.train.parent.name]
    assert {path.name for path in first.train.parent.iterdir()} == {"train.jsonl", "held_out.jsonl", "split.json"}


def test_a_changed_source_a_label_and_another_seed_make_new_rows(workspace):
    folders = {prepare(workspace, workspace.settings()).train.parent}
    chats = workspace.root / "data" / "ada" / "conversations.jsonl"
    record = {"messages": [{"role": "user", "content": "Name a tree"}, {"role": "assistant", "content": "Oak."}]}
    chats.write_bytes(chats.read_bytes() + orjson.dumps(record) + b"\n")
    folders.add(prepare(workspace, workspace.settings()).train.parent)
    folders.add(prepare(workspace, workspace.settings({"data": {"seed": 8}})).train.parent)
    labels = Labels.load(workspace.root / "data" / "labels.jsonl")
    labels.by_id["ada-001"] = {"kind": "creative", "answerable": True}
    labels.save()
    labelled = prepare(workspace, workspace.settings())
    folders.add(labelled.train.parent)
    assert len(folders) == 4
    rows = load_rows(labelled.train) + load_rows(labelled.held_out)
    assert next(row for row in rows if row.id == "ada-001").row.kind == "creative"


def test_rows_made_before_the_workspace_was_laid_out_do_not_stop_that(tmp_path):
    made = prepare(Workspace(tmp_path), Workspace(tmp_path).settings())
    init(tmp_path)
    assert (tmp_path / "data" / "ada" / "persona.toml").is_file()
    assert (tmp_path / "data" / "rewards" / "weights.toml").is_file()
    assert made.train.is_file()
    assert not list((tmp_path / "data").glob(".*"))


def test_what_cannot_be_used_is_said_in_one_line(workspace):
    def refused(match, **data):
        with pytest.raises(BadInput, match=match) as refusal:
            prepare(workspace, workspace.settings({"data": data}))
        assert "\n" not in str(refusal.value)

    refused("names no file", chats=[])
    refused("cannot read the chats", chats=["nope.jsonl"])
    refused("cannot read the chats", chats=["data"])
    (workspace.root / "empty.jsonl").write_bytes(b"")
    refused("no usable chat", chats=["empty.jsonl"])
    (workspace.root / "broken.jsonl").write_bytes(b"\n{oops\n")
    refused("broken.jsonl:2: no usable chat", chats=["broken.jsonl"])


def test_a_data_folder_that_cannot_be_written(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows").write_text("in the way")
    with pytest.raises(BadInput, match="cannot write the prompt rows"):
        prepare(workspace, workspace.settings())
