"""Misspelt phrases: found when asked for, and only real typos."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewards import RewardConfig, Row
from rewards.filler import filler

EXACT = RewardConfig.default()
FUZZY = replace(EXACT, fuzzy=True)


def fires(completion: str, config: RewardConfig) -> bool:
    return filler("So?", completion, Row(), config).score != 1


@pytest.mark.parametrize(
    "text",
    ["It's importent to note that rain is wet.", "I'd be hapy to help you there.", "Is there anything elze I can do."],
)
def test_typos_are_found_only_when_asked_for(text: str) -> None:
    assert not fires(text, EXACT)
    assert fires(text, FUZZY)
    spans = filler("So?", text, Row(), FUZZY).spans
    assert all(text[s.start : s.end] == s.text for s in spans)


@pytest.mark.parametrize(
    "text",
    [
        "It is important to vote early.",
        "Certainly, the pressure is on; uncertainly he went.",
        "I'd be happy to kelp forests.",
        "She was as an ace.",
    ],
)
def test_other_words_are_no_typos(text: str) -> None:
    assert fires(text, FUZZY) == fires(text, EXACT)
