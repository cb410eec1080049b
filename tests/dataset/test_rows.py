"""Prompt rows on disk, and how a chat becomes one."""

from __future__ import annotations

import orjson
import pytest

from ada_tui.dataset import PromptRow, content_id, load_rows, rows_of_files, sft_chats, write_rows
from ada_tui.dataset.sft import other_systems
from ada_tui.errors import BadInput
from ada_tui.persona import Persona
from rewards.types import Row

ADA = Persona(system="You are Ada.")


def write(path, *records):
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def chat(*texts, **more):
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)], **more}


def test_a_row_comes_back_as_it_was(tmp_path):
    row = PromptRow(
        "r1", "And [/red] you?\n\x1b[31m",
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey."}],
        "Be brief.", Row(id="r1", kind="smalltalk", answerable=True, reference="Fine, thanks.", allow=("list",)),
    )  # fmt: skip
    write_rows(tmp_path / "rows.jsonl", [row])
    assert load_rows(tmp_path / "rows.jsonl") == [row]


def test_a_lone_surrogate_is_replaced_on_disk(tmp_path):
    write_rows(tmp_path / "rows.jsonl", [PromptRow("r1", "half \ud83d of it")])
    assert load_rows(tmp_path / "rows.jsonl")[0].prompt == "half \ufffd of it"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not a prompt row"),
        (b"[]", "not an object"),
        (b'{"id": "x"}', "'prompt' must be text"),
        (b'{"prompt": "x", "history": [{"role": "tool", "content": "y"}]}', "'history' must be a list"),
        (b'{"prompt": "x", "kind": "banter"}', "column 'kind'"),
        (b'{"prompt": "x", "system": 4}', "'system' must be text"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, why):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"prompt": "fine"}\n\n' + line + b"\n")
    with pytest.raises(BadInput, match=why) as refusal:
        load_rows(path)
    assert f"{path}:3:" in str(refusal.value)


def test_no_rows_and_no_file(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"\n")
    with pytest.raises(BadInput, match="no rows"):
        load_rows(tmp_path / "empty.jsonl")
    with pytest.raises(BadInput, match="cannot read"):
        load_rows(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="cannot read"):
        load_rows(tmp_path)


def test_messages_take_the_system_prompt_of_the_chat_or_else_of_the_persona():
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey."}]
    own, other = PromptRow("a", "So?", history), PromptRow("b", "So?", history, "Be a pirate.")
    assert own.messages(ADA)[0] == {"role": "system", "content": "You are Ada."}
    assert other.messages(ADA)[0] == {"role": "system", "content": "Be a pirate."}
    assert [turn["role"] for turn in other.messages(ADA)] == ["system", "user", "assistant", "user"]


def test_ids_do_not_depend_on_order_or_reply(tmp_path):
    one, two = chat("Name a tree", "Oak."), chat("Name a bird", "Wren.")
    better = chat("Name a tree", "The oak, always.")
    first = rows_of_files([write(tmp_path / "a.jsonl", one, two)]).rows
    again = rows_of_files([write(tmp_path / "b.jsonl", two, better)]).rows
    assert {row.prompt: row.id for row in first} == {row.prompt: row.id for row in again}
    assert first[0].id == content_id("Name a tree")


def test_the_same_question_twice_gives_two_ids(tmp_path):
    rows = rows_of_files([write(tmp_path / "a.jsonl", chat("Hi", "Hey."), chat("Hi", "Hello you."))]).rows
    assert len({row.id for row in rows}) == 2
    assert all(row.row.id == row.id for row in rows)


def test_every_turn(tmp_path):
    path = write(
        tmp_path / "a.jsonl", chat("Hi", "Hey.", "Name a tree", "Oak.", "And a bird?", "Wren.", kind="factual")
    )
    rows = rows_of_files([path], every_turn=True).rows
    assert [(row.prompt, row.row.reference, len(row.history)) for row in rows] == [
        ("And a bird?", "Wren.", 4), ("Name a tree", "Oak.", 2), ("Hi", "Hey.", 0),
    ]  # fmt: skip
    assert rows[0].row.kind == "factual"
    assert rows[2].row.kind == "greeting"  # by rule: the column speaks of the last turn only


def test_sft_chats_carry_the_persona(tmp_path):
    path = write(tmp_path / "a.jsonl", chat("Name a tree", "Oak."), {"prompt": "Name a bird"})
    rows = rows_of_files([path]).rows
    assert list(sft_chats(rows, ADA)) == [
        {
            "messages": [
                {"role": "system", "content": "You are Ada."},
                {"role": "user", "content": "Name a tree"},
                {"role": "assistant", "content": "Oak."},
            ]
        }
    ]
    assert other_systems(rows, ADA) is None
    assert "other than the persona's" in other_systems([PromptRow("x", "Hi", [], "Be a pirate.")], ADA)
