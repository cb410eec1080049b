"""Topic clusters and the split: nothing alike on both sides."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from ada_tui.dataset import PromptRow, rows_of_files, split_rows
from ada_tui.dataset import near as near_module
from ada_tui.dataset.near import clusters, copies, grams, jaccard, plain
from ada_tui.errors import BadInput
from rewards.types import Row

BUNDLED = rows_of_files([Path(__file__).parents[2] / "data" / "ada" / "conversations.jsonl"]).rows


def rows(*prompts, kind="factual"):
    return [PromptRow(f"r{i}", prompt, row=Row(id=f"r{i}", kind=kind)) for i, prompt in enumerate(prompts)]


def alike(a, b):
    return (
        fuzz.token_set_ratio(a, b) >= 85
        or fuzz.token_set_ratio(plain(a), plain(b)) >= 85
        or jaccard(grams(plain(a)), grams(plain(b))) >= 0.5
    )


@pytest.mark.parametrize("seed", [1, 7, 99])
def test_nothing_alike_on_both_sides_of_the_bundled_chats(seed):
    split = split_rows(BUNDLED, 0.2, seed)
    assert len(split.train) + len(split.held_out) == len(BUNDLED)
    for held in split.held_out:
        assert not [row.prompt for row in split.train if alike(row.prompt, held.prompt)]
    assert {row.row.split for row in split.train} == {"train"}
    assert not {row.row.topic_cluster for row in split.train} & {row.row.topic_cluster for row in split.held_out}


def test_every_kind_is_on_both_sides_in_its_share():
    split = split_rows(BUNDLED, 0.2, 7)
    train, held = (Counter(row.row.kind for row in side) for side in (split.train, split.held_out))
    assert set(train) == set(held)
    assert all(0.1 <= held[kind] / (held[kind] + train[kind]) <= 0.31 for kind in train)
    assert abs(len(split.held_out) / len(BUNDLED) - 0.2) < 0.01


def test_the_split_depends_on_the_seed_and_not_on_the_order():
    shuffled = random.Random(3).sample(BUNDLED, len(BUNDLED))
    held = [{row.id for row in split_rows(data, 0.2, seed).held_out} for data, seed in
            ((BUNDLED, 7), (shuffled, 7), (BUNDLED, 8))]  # fmt: skip
    assert held[0] == held[1] != held[2]


def test_clusters_are_transitive_and_cover_both_measures():
    data = rows(
        "What is the capital of France?", "What is the capital of France, and what about Peru?", "And what about Peru",
        "How do I boil an egg?", "Tell me a joke",
    )  # fmt: skip
    assert clusters([row.prompt for row in data]) == [0, 0, 0, 3, 4]


def test_chats_with_one_opening_stay_together():
    opening = [{"role": "user", "content": "My cat is ill"}, {"role": "assistant", "content": "Oh no."}]
    data = [
        PromptRow("a", "She will not eat", opening),
        PromptRow("b", "Which vet is open?", opening),
        *rows("Hi", "Bye"),
    ]
    split = split_rows(data, 0.5, 1)
    together = [side for side in (split.train, split.held_out) if {"a", "b"} & {row.id for row in side}]
    assert len(together) == 1


def test_one_topic_cannot_be_split():
    with pytest.raises(BadInput, match="cannot be split"):
        split_rows(rows("Name a tree", "name a tree!"), 0.2, 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab cd", min_size=1, max_size=8), min_size=2, max_size=14), st.floats(0.05, 0.95))
def test_any_rows_split_without_loss_or_leak(prompts, share):
    data = rows(*[prompt + " x" for prompt in prompts])
    try:
        split = split_rows(data, share, 1)
    except BadInput:
        return
    assert sorted(row.id for row in split.train + split.held_out) == sorted(row.id for row in data)
    assert split.train
    assert split.held_out
    assert not [(a, b) for a in split.train for b in split.held_out if alike(a.prompt, b.prompt)]


def test_the_search_for_many_texts_finds_what_comparing_all_pairs_finds(monkeypatch):
    rng = random.Random(5)
    words = [f"{rng.choice('bdfgklmnprst')}{rng.choice('aeiou')}{i:x}" for i in range(3000)]
    texts = []
    for index in range(1000):
        if index % 5 == 4:
            copy = rng.choice(texts).split()
            copy[rng.randrange(len(copy))] = rng.choice(words)
            texts.append(" ".join(copy))
        else:
            texts.append(" ".join(words[min(2999, int(rng.paretovariate(0.4)))] for _ in range(rng.randint(6, 14))))
    exact = set(copies(texts))
    monkeypatch.setattr(near_module, "EXACT", 0)
    blocked = set(copies(texts))
    assert len(exact) > 100
    assert len({late for late, _ in exact} - {late for late, _ in blocked}) <= 0.02 * len(exact)
