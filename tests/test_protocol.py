"""The wire format: golden lines stay readable, hostile and torn ones are refused, nothing non-finite is written."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ada_tui import protocol
from ada_tui.protocol import EVENTS, Completion, Control, Group, Job, NotARecord, Probe, Step, decode_event, encode

GOLDEN = Path(__file__).parent / "golden"

SAMPLES: list[protocol.Event] = [
    protocol.JobStarted(time=1.0, kind="grpo", pid=42, host="pc", steps=100, versions={"torch": "2.13.0"}),
    protocol.ModelLoaded(time=2.0, backend="trl", reason="no CUDA device", device="cpu", rank=16, trainable=1000),
    protocol.Phase(time=3.0, name="generate", detail="32 completions", fraction=0.5),
    protocol.Step(
        time=4.0, step=1, loss=0.01, reward=0.7, rewards={"length": 0.9, "tone": None}, dead_groups=1, groups=4, kl=0.0
    ),
    protocol.Memory(time=5.0, rss=1 << 30, device_used=None),
    protocol.ControlApplied(time=6.0, version=3, step=2, changed=["weights.length"]),
    protocol.Alarm(time=7.0, kind="dead_groups", detail="7 of 8", action="raise the temperature", step=2),
    protocol.Saved(time=8.0, path="adapters/step-000020", step=20),
    protocol.Outcome(time=9.0, name="export", data={"gguf": "a.gguf"}),
    protocol.JobEnded(time=10.0, status="failed", error="out of memory", traceback="..."),
]


def test_every_event_type_has_a_sample() -> None:
    assert {type(sample).type for sample in SAMPLES} == set(EVENTS)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_round_trip(event: protocol.Event) -> None:
    line = encode(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_event(line) == event


def test_golden_events_still_read_as_they_were_written() -> None:
    """events-1.jsonl was written by schema 1. If this fails, old runs can no longer be opened."""
    lines = (GOLDEN / "events-1.jsonl").read_bytes().splitlines()
    assert [decode_event(line) for line in lines] == SAMPLES


def test_golden_group_and_control() -> None:
    group = protocol.decode_group((GOLDEN / "group-1.json").read_bytes())
    assert group.completions[0].raw["rewards"]["length"] == 0.95
    assert group.row["kind"] == "greeting"
    control = protocol.decode_control((GOLDEN / "control-1.json").read_bytes())
    assert control == Control(
        version=3, rewards={"weights": {"length": 2.0}}, save=1, probes=[Probe(id="p1", prompt="Hi", n=4)]
    )


def test_unknown_types_and_fields_are_ignored() -> None:
    assert decode_event(b'{"type": "from_the_future", "x": 1}') is None
    assert decode_event(b'{"type": "step", "step": 3, "aura": 9}') == Step(step=3)


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"null", b"3", b'"x"', b'{"type": ["x"]}', b"\xff\xfe", b'{"type": "step", "step": "three"}'],
)
def test_broken_lines_are_refused_with_the_one_exception(line: bytes) -> None:
    with pytest.raises(NotARecord):
        decode_event(line)


def test_non_finite_numbers_become_null() -> None:
    line = encode(Step(step=1, loss=math.nan, reward=math.inf, rewards={"length": -math.inf}))
    plain = orjson.loads(line)
    assert plain["loss"] is None
    assert plain["reward"] is None
    assert plain["rewards"] == {"length": None}


def test_lone_surrogates_are_written_as_replacement() -> None:
    group = Group(id="g", completions=[Completion(text="a\ud800b")])
    assert protocol.decode_group(encode(group)).completions[0].text == "a?b"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    group = Group(id="g", prompt=text, completions=[Completion(text=text)])
    assert protocol.decode_group(encode(group)) == group


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_refused(line: bytes) -> None:
    try:
        decode_event(line)
    except NotARecord:
        return


def test_a_newer_schema_is_refused_in_words() -> None:
    job = dataclasses.replace(Job(kind="sft"), schema=protocol.SCHEMA + 1)
    with pytest.raises(NotARecord, match="update ada-tui"):
        protocol.decode_job(encode(job))


def test_a_job_of_unknown_kind_is_refused() -> None:
    with pytest.raises(NotARecord, match="unknown job kind"):
        protocol.decode_job(encode(Job(kind="mine")))
