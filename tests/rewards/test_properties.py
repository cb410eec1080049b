"""What holds for any text whatever, searched for counter-examples by hypothesis."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards import KINDS, REWARD_NAMES, RewardConfig, Row, score, score_group
from rewards.combine import rank, totals_many
from rewards.filler import filler
from rewards.text import CAP, normalise, view

CONFIG = RewardConfig.default()
PIECES = [
    "Great question!", "As an AI", "I don't know.", "```", "`",
    '"', "\n- ", "\n1. ", "Paris", "<|im_end|>", "\u200b", "é", "İ", "ß",
    "😀", "\ud800", "\u202e", "http://x.y", "Hope this helps!", " ", "g.r.e.a.t", "Let me know if you need", "...",
    "!!!", "Привет", "中文", "''",
]  # fmt: skip
TEXT = st.one_of(
    st.text(max_size=300), st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=30).map("".join)
)
ROWS = st.builds(
    Row, kind=st.sampled_from([None, *KINDS]), answerable=st.sampled_from([None, True, False]),
    gold=st.sampled_from([(), ("Paris",), ("!",)]), distractors=st.sampled_from([(), ("Lyon",)]),
    reference=st.one_of(st.just(""), TEXT),
    keywords=st.sampled_from([(), ("rain",), ("",)]), register=st.sampled_from(["casual", "formal"]),
    user_wrong=st.booleans(),
    allow=st.sampled_from([(), ("code", "list"), ("language",)]), len_lo=st.sampled_from([None, 0, 5]),
    len_hi=st.sampled_from([None, 0, 20]),
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(prompt=TEXT, completion=TEXT, row=ROWS, truncated=st.booleans())
def test_a_card_is_sound_for_any_text(prompt: str, completion: str, row: Row, truncated: bool) -> None:
    card = score(prompt, completion, row, CONFIG, truncated=truncated)
    for name in REWARD_NAMES:
        value = card.raw.rewards[name]
        assert value is None or (0 <= value <= 1 and abs(value * 20 - round(value * 20)) < 1e-9)
    assert -1 <= card.raw.guard <= 0
    assert abs(card.raw.guard * 20 - round(card.raw.guard * 20)) < 1e-9
    assert card.raw.substance is None or 0 <= card.raw.substance <= 1
    assert -1 - 1e-9 <= card.total <= 1 + 1e-9
    for span in card.spans:
        assert 0 <= span.start < span.end <= len(completion)
        assert completion[span.start : span.end] == span.text


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_normalising_keeps_the_length(text: str) -> None:
    assert len(normalise(text)) == len(text)
    v = view(text)
    assert len(v.norm) == len(v.prose) == len(v.plain) == len(v.raw) == min(len(text), CAP)


FILLERS = ["Great question!", "Hope this helps!", "As an AI language model.",
"Let me know if you need anything else!", "In conclusion.",
           "It's important to note.", "Absolutely!", "I'd be happy to help."]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(TEXT, st.lists(st.sampled_from([*FILLERS, "Paris it is.", "Yeah, sure.",
"Rain all day long, sadly."]), max_size=8).map(" ".join)),
       extra=st.lists(st.sampled_from(FILLERS), min_size=1, max_size=4).map(" ".join))  # fmt: skip
def test_adding_filler_never_raises_the_score(text: str, extra: str) -> None:
    before = filler("So?", text, Row(), CONFIG).score
    after = filler("So?", f"{text} {extra}", Row(), CONFIG).score
    assert before is not None
    assert after is not None
    assert after <= before


@settings(max_examples=60, deadline=None)
@given(
    completions=st.lists(TEXT, min_size=2, max_size=5),
    weights=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=5, max_size=5),
)
def test_weights_only_permute(completions: list[str], weights: list[float]) -> None:
    config = CONFIG
    for name, weight in zip(REWARD_NAMES, weights, strict=True):
        config = config.with_weight(name, weight)
    first, second = (score_group("Morning", completions, Row(), c).cards for c in (CONFIG, config))
    assert [card.raw for card in first] == [card.raw for card in second]
    totals = totals_many([card.raw for card in first], config)
    assert totals == pytest.approx([card.total for card in second], abs=1e-6)
    assert sorted(rank(totals))[0] == 1


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=CAP, max_size=CAP + 200))
def test_long_texts_are_capped_and_still_sound(text: str) -> None:
    card = score("Hi", text, Row(kind="howto"), CONFIG)
    assert all(span.end <= CAP for span in card.spans)
