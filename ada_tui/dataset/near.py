"""Near-duplicates: which texts are so alike that training on one and testing on the other would be cheating.

Two texts belong together when rapidfuzz's token_set_ratio is at least 85, or when they share at least half of their
character 5-grams (Jaccard); clusters are the connected components. Not here: what to do with them (`split.py`,
`checks.py`). Anybody may import it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from rapidfuzz import fuzz

TOKEN_SET = 85.0
"""rapidfuzz token_set_ratio (0..100) from which two texts are near-duplicates."""
JACCARD = 0.5
"""Share of common character 5-grams (0..1) from which two texts are near-duplicates."""
EXACT = 1200
"""Up to this many different texts every pair is compared; above, only likely pairs are, so that time grows linearly."""
BLOCK = 128
"""Texts compared at a time."""
FREQUENT = 100
"""A word that more texts share than this does not make two of them worth comparing by itself."""
COMMON = 2000
"""A word that more texts share than this is never looked up: the most frequent words would cost quadratic time."""
PREFIX = 0.3
"""Share of a text's letters that its rarest words must make up for `_candidates`."""
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
    groups = Groups(len(texts))
    for index, text in enumerate(texts):
        groups.join(index, first.setdefault(text, index))
    for a, b in _alike(list(first)):
        groups.join(first[a], first[b])
    return groups.labels()


def copies(texts: Sequence[str]) -> list[tuple[int, int]]:
    """(later, earlier) for each text that repeats an earlier one, or does with hardly a word changed.

    Narrower than a cluster: "hi" is within "hi, could you help me with ...", yet no copy of it.
    """
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for index, text in enumerate(texts):
        if (earlier := first.setdefault(text, index)) != index:
            found[index] = earlier
    for a, b in _alike(list(first)):
        early, late = sorted((first[a], first[b]))
        if late not in found and fuzz.token_sort_ratio(plain(a), plain(b)) >= TOKEN_SET:
            found[late] = early
    return sorted(found.items())


def _alike(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Every pair of different texts that meets one of the two measures."""
    forms = [plain(text) for text in texts]
    if len(texts) <= EXACT:
        for pairs in (_all_pairs(texts), _all_pairs(forms), _sharing(forms)):
            yield from ((texts[a], texts[b]) for a, b in pairs)
        return
    for a, b, overlap in _candidates(forms):
        if fuzz.token_set_ratio(forms[a], forms[b], score_cutoff=TOKEN_SET) or (
            overlap >= JACCARD and jaccard(grams(forms[a]), grams(forms[b])) >= JACCARD
        ):
            yield texts[a], texts[b]


def _all_pairs(texts: list[str]) -> Iterator[tuple[int, int]]:
    import numpy
    from rapidfuzz import process

    for start in range(0, len(texts), BLOCK):
        rows, columns = texts[start : start + BLOCK], texts[: start + BLOCK]
        scores = process.cdist(rows, columns, scorer=fuzz.token_set_ratio, score_cutoff=TOKEN_SET, dtype=numpy.uint8)
        for a, b in numpy.argwhere(scores).tolist():
            if b < a + start:
                yield a + start, b


def _sharing(forms: list[str]) -> Iterator[tuple[int, int]]:
    """Every pair that shares enough 5-grams, by counting them."""
    postings: dict[str, list[int]] = {}
    sizes: list[int] = []
    for index, form in enumerate(forms):
        own = grams(form)
        sizes.append(len(own))
        common = Counter(chain.from_iterable(postings.get(gram, ()) for gram in own))
        for other, count in common.items():
            if count >= JACCARD * (sizes[index] + sizes[other] - count):
                yield index, other
        for gram in own:
            postings.setdefault(gram, []).append(index)


def _candidates(forms: list[str]) -> Iterator[tuple[int, int, float]]:
    """(a, b, share of the longer's words that both have) of every pair worth comparing.

    Two texts that are alike share words that make up most of the shorter one. So among its rarest words, as many as
    `PREFIX` of its letters take, one is shared. A frequent word counts only together with another one of the text.
    """
    keys = [set(form.split()) for form in forms]
    postings: dict[str, list[int]] = {}
    for index, own in enumerate(keys):
        for key in own:
            postings.setdefault(key, []).append(index)
    frequent = {key: set(found) for key, found in postings.items() if len(found) > FREQUENT}
    for index, own in enumerate(keys):
        order = sorted(own, key=lambda key: (len(postings[key]), key))
        wanted = PREFIX * sum(map(len, order))
        near: set[int] = set()
        for place, key in enumerate(order):
            if key not in frequent:
                near.update(postings[key])
            elif len(frequent[key]) <= COMMON:
                for other in order[place + 1 : place + 3]:
                    near.update(islice(frequent[key] & frequent[other], FREQUENT))
            wanted -= len(key)
            if wanted < 0:
                break
        for other_index in near:
            shared = len(own & keys[other_index])
            sizes = len(own), len(keys[other_index])
            if other_index != index and 2 * shared >= min(sizes):
                yield index, other_index, shared / max(sizes)
