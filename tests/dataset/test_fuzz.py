"""Whatever happens to a file: reading it never raises, never loses a good row, and lists every row it skips."""

from __future__ import annotations

import tempfile
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from ada_tui.dataset import Report, scan

PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune")


def _good(index: int, shape: int) -> bytes:
    prompt, reply = f"Tell me about {PLANETS[index]}, number {index}", f"{PLANETS[index]} is a planet."
    records = (
        {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": reply}]},
        {"conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": reply}], "id": index},
        {"prompt": prompt, "completion": reply},
        {"instruction": prompt, "output": reply},
        [{"role": "user", "content": prompt}, {"role": "assistant", "content": reply}],
    )
    return orjson.dumps(records[shape])


LINES = st.lists(st.integers(0, 4), min_size=3, max_size=len(PLANETS)).map(
    lambda shapes: [_good(index, shape) for index, shape in enumerate(shapes)]
)
JUNK = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='{}[]",:\\ \t\r0aé\ud800', max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [b"{", b"[", b"[{", b'{"a', b'{"messages": [', b"}", b'"', b"]]]", b"[" * 2000, b"\xff\xfe", b"null"]
    ),
).map(lambda junk: junk.replace(b"\n", b" "))


def _read(data: bytes) -> tuple[set[str], Report]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.jsonl"
        path.write_bytes(data)
        report = Report()
        replies = {turn.content for found in scan([path], report) for turn in found.normal.turns}
    assert report.rows == report.ok + report.skipped
    assert report.skipped == sum(problem.skips and problem.line > 0 for problem in report.problems)
    return replies, report


def _replies(indices: range) -> set[str]:
    return {f"{PLANETS[index]} is a planet." for index in indices}


@settings(max_examples=300, deadline=None)
@given(LINES, st.lists(st.tuples(st.integers(1, len(PLANETS)), JUNK), max_size=4))
def test_junk_between_good_lines(lines, junk):
    mixed = list(lines)
    for position, text in junk:
        mixed.insert(min(position, len(mixed)), text)
    replies, _ = _read(b"\n".join(mixed) + b"\n")
    assert _replies(range(len(lines))) <= replies


@settings(max_examples=300, deadline=None)
@given(LINES, st.data())
def test_damage_to_one_line_leaves_the_others(lines, data):
    hit = data.draw(st.integers(1, len(lines) - 1))
    line = lines[hit]
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    damaged = line[:start] + data.draw(JUNK) + line[end:]
    replies, _ = _read(b"\n".join([*lines[:hit], damaged, *lines[hit + 1 :]]))
    others = _replies(range(hit)) | _replies(range(hit + 1, len(lines)))
    assert others <= replies


@settings(max_examples=200, deadline=None)
@given(LINES, st.data())
def test_a_file_cut_anywhere_keeps_what_came_before(lines, data):
    whole = b"\n".join(lines) + b"\n"
    cut = data.draw(st.integers(len(lines[0]) + 1, len(whole)))
    replies, _ = _read(whole[:cut])
    complete = whole[:cut].count(b"\n")
    assert _replies(range(complete)) <= replies


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["messages", "role", "content", "from", "value", "prompt", "chosen", "id", "kind", "text", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5), st.booleans())
def test_any_json_is_counted_and_listed(values, as_array):
    import json

    text = json.dumps(values) if as_array else "\n".join(json.dumps(value) for value in values)
    _read(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(data):
    _read(data)
