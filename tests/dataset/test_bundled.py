"""The bundled chats: what every newcomer sees first. The figures here are promises of the README."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import orjson
import pytest
from rapidfuzz import fuzz

from ada_tui.dataset import check, rows_of_files
from ada_tui.dataset.near import clusters
from rewards import RewardConfig, score
from rewards.types import ABSTAIN_KINDS, KINDS, Row

DATA = Path(__file__).parents[2] / "data"
CHATS = [orjson.loads(line) for line in (DATA / "ada" / "conversations.jsonl").read_bytes().splitlines()]

WORDS = {
    "ack": (1, 12), "greeting": (3, 20), "thanks_bye": (2, 15), "smalltalk": (5, 40), "factual": (1, 40),
    "opinion": (14, 60), "feedback": (18, 90), "howto": (30, 120), "complex": (60, 180), "creative": (30, 150),
    "code": (20, 60), "realtime": (6, 40), "unanswerable": (6, 40), "after_cutoff": (6, 40), "private": (5, 35),
    "defer": (10, 60),
}  # fmt: skip
"""Words of a reply by kind, code blocks left out."""

KEPT_FOR_TESTS = (
    "Morning! You up early or just not slept?", "No idea, I can't check live weather", "I know what it is.",
    "above my pay grade, I'd hand that to a bigger model", "Yeah, that sounds good, let me think about it.",
    "Good morning! How can I assist you today?", "Morning! Sleep ok?", "Make sure to cool it",
    "No, it won't rain tomorrow.", "not sure, ask a bigger model", "She asked a great question in the meeting.",
    "72 degrees in Denver", "Probably sunny?", "You're right, my mistake", "Sure thing.", "I don't know.",
    "It is important to vote early",
)  # fmt: skip
"""Examples that measure the rules: training on them would make the measurement worthless."""

NEVER_ADA = (
    "great question", "certainly", "of course", "happy to", "as an ai", "important to note", "let me know",
    "want me to", "feel free", "by the way", "fun fact", "did you know", "!!",
)  # fmt: skip


def prompt(chat: dict) -> str:
    return chat["conversations"][-2]["value"]


def opening(chat: dict) -> str:
    return chat["conversations"][0]["value"]


def reply(chat: dict) -> str:
    return chat["conversations"][-1]["value"]


def test_there_are_enough_of_every_kind():
    kinds = Counter(chat["kind"] for chat in CHATS)
    assert len(CHATS) >= 320
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 10
    assert sum(len(chat["conversations"]) > 2 for chat in CHATS) >= 40


def test_ids_are_unique():
    assert len({chat["id"] for chat in CHATS}) == len(CHATS)


@pytest.mark.parametrize("side", [prompt, opening, reply])
def test_nothing_is_expanded_from_a_template(side):
    texts = [side(chat) for chat in CHATS]
    assert len(set(clusters(texts))) >= 330
    pairs = sum(fuzz.token_set_ratio(a, b) >= 85 for i, a in enumerate(texts) for b in texts[:i])
    assert pairs <= 20


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: chat["id"])
def test_chat(chat):
    turns = chat["conversations"]
    assert [turn["from"] for turn in turns] == ["human", "gpt"] * (len(turns) // 2)
    assert all(turn["value"] == turn["value"].strip() != "" for turn in turns)
    row = Row.from_columns(chat)
    assert row.answerable is (row.kind not in ABSTAIN_KINDS)
    low, high = WORDS[row.kind]
    prose = re.sub(r"```.*?```", "", reply(chat), flags=re.DOTALL)
    assert low <= len(re.findall(r"[\w'+°]+", prose)) <= high
    assert ("```" in reply(chat)) == (row.kind == "code") == ("code" in row.allow)
    assert bool(row.gold) == (row.kind == "factual")
    if row.gold:
        assert any(answer.lower() in reply(chat).lower() for answer in row.gold)
        assert not any(wrong in row.gold for wrong in row.distractors)


def test_ada_does_not_talk_like_a_call_centre():
    for chat in CHATS:
        for turn in chat["conversations"][1::2]:
            found = [phrase for phrase in NEVER_ADA if phrase in turn["value"].lower()]
            assert not found, f"{chat['id']}: {found}"


def test_she_says_who_she_is():
    who = re.compile(
        r"who am I talking to|as a model|hardware|remember what we|feelings|you sleep|huge chatbots|you.re bad at"
        r"|webcam|named after|google things|a robot|unplug|clever AIs|from memory"
    )
    about = [chat for chat in CHATS if who.search(opening(chat) + prompt(chat)) and chat["kind"] == "smalltalk"]
    assert len(about) >= 12


def test_every_reference_is_what_the_rules_want():
    config = RewardConfig.default()
    rows = rows_of_files([DATA / "ada" / "conversations.jsonl"]).rows
    totals = {
        row.id: score(
            row.prompt, row.row.reference, row.row, config, history=[turn["content"] for turn in row.history]
        ).total
        for row in rows
    }
    assert {identity: value for identity, value in totals.items() if value < 0.85} == {}
    assert sum(totals.values()) / len(totals) >= 0.93


def test_a_check_finds_nothing_wrong():
    report = check([DATA / "ada" / "conversations.jsonl"])
    assert (report.rows, report.skipped, report.problems) == (len(CHATS), 0, [])


def test_openings_of_replies_vary():
    first = Counter(reply(chat).split()[0] for chat in CHATS)
    assert max(first.values()) <= len(CHATS) / 10


def test_examples_kept_for_measuring_are_nowhere_in_the_data():
    for path in DATA.rglob("*"):
        if path.is_file() and "rows" not in path.relative_to(DATA).parts:
            text = path.read_text(encoding="utf-8").lower()
            assert not [example for example in KEPT_FOR_TESTS if example.lower() in text], path
    assert not any(prompt(chat).strip(" .!").lower() == "morning" for chat in CHATS)
