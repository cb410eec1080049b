"""Near-duplicates: which texts are so alike that training on one and testing on the other would be cheating.

Two texts belong together when rapidfuzz's token_set_ratio is at least 85, or when they share at least half of their
character 5-grams (Jaccard); clusters are the connected components. Not here: what to do with them (`split.py`,
`check.py`). Anybody may import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz

TOKEN_SET = 85.0
"""rapidfuzz token_set_ratio (0..100) from which two texts are near-duplicates."""
JACCARD = 0.5
"""Share of common character 5-grams (0..1) from which two texts are near-duplicates."""
_NOT_WORD = re.compile(r"[\W_]+")


class Groups:
    """Union-find over 0..n-1."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            self._parent[max(a, b)] = min(a, b)

    def labels(self) -> list[int]:
        """For each item the smallest item of its group."""
        return [self.find(item) for item in range(len(self._parent))]


def plain(text: str) -> str:
    """Lower case, words only: what two texts are compared by.

    >>> plain("  What's UP?? ")
    'what s up'
    """
    return _NOT_WORD.sub(" ", text.lower()).strip()


def grams(text: str) -> frozenset[str]:
    """The character 5-grams of a plain text (the text itself when it is shorter)."""
    return frozenset(text[i : i + 5] for i in range(max(1, len(text) - 4)))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """|a and b| / |a or b|."""
    common = len(a & b)
    return common / (len(a) + len(b) - common)


def clusters(texts: Sequence[str]) -> list[int]:
    """For each text the index of the first text of its cluster.

    >>> clusters(["What is the capital of France?", "How do I boil an egg?", "what's the capital of france"])
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    owner = [first.setdefault(text, i) for i, text in enumerate(texts)]
    groups = Groups(len(texts))
    for index, own in enumerate(owner):
        groups.join(index, own)
    distinct = sorted(first.values())
    _join_alike([texts[i] for i in distinct], distinct, groups)
    return groups.labels()


def _join_alike(texts: list[str], index: list[int], groups: Groups) -> None:
    forms = [plain(text) for text in texts]
    sets = [grams(form) for form in forms]
    for a, b in _candidates(texts, forms, sets):
        one, two = index[a], index[b]
        if groups.find(one) != groups.find(two) and _alike(texts, forms, sets, a, b):
            groups.join(one, two)


def _alike(texts: list[str], forms: list[str], sets: list[frozenset[str]], a: int, b: int) -> bool:
    return (
        fuzz.token_set_ratio(texts[a], texts[b], score_cutoff=TOKEN_SET) > 0
        or fuzz.token_set_ratio(forms[a], forms[b], score_cutoff=TOKEN_SET) > 0
        or jaccard(sets[a], sets[b]) >= JACCARD
    )


def _candidates(texts: list[str], forms: list[str], sets: list[frozenset[str]]) -> Iterable[tuple[int, int]]:
    return ((a, b) for a in range(len(texts)) for b in range(a))
