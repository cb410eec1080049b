"""Misspelt filler phrases. Off by default: it is cheap but imprecise, hence the guard rails.

Only phrases of at least three words and twelve letters; a window of the same number of words; a ratio of at least 92;
and every differing word must be a typo, not another word ("important to vote" is no misspelt "important to note").
The one module that imports rapidfuzz.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz, process

from rewards.config import Compiled
from rewards.phrases import Hit
from rewards.text import View, view

MIN_WORDS = 3
MIN_LETTERS = 12
MIN_RATIO = 92.0


@lru_cache(maxsize=8)
def _phrases(compiled: Compiled) -> dict[int, tuple[list[str], list[int]]]:
    """Phrases by their number of words, with the numbers of their entries."""
    out: dict[int, tuple[list[str], list[int]]] = {}
    for number, entry in enumerate(compiled.fillers):
        words = view(entry.pattern).words
        if not entry.regex and len(words) >= MIN_WORDS and sum(map(len, words)) >= MIN_LETTERS:
            phrases, numbers = out.setdefault(len(words), ([], []))
            phrases.append(" ".join(words))
            numbers.append(number)
    return out


@lru_cache(maxsize=8)
def known_words(compiled: Compiled) -> frozenset[str]:
    """Words that are surely spelt as meant: those of all phrases and lexicons, and common English ones."""
    words = {w for entry in compiled.fillers for w in view(entry.pattern).words}
    for lines in compiled.lexicon_lines.values():
        words.update(w for line in lines for w in view(line).words)
    return frozenset(words)


def fuzzy_hits(v: View, compiled: Compiled) -> tuple[Hit, ...]:
    """Places where a phrase stands with a typo; exact matches are left to the phrase index."""
    tokens = v.plain_tokens
    known = known_words(compiled)
    hits: list[Hit] = []
    for n, (phrases, numbers) in _phrases(compiled).items():
        for at in range(len(tokens.words) - n + 1):
            window = tokens.words[at : at + n]
            found = process.extractOne(" ".join(window), phrases, scorer=fuzz.ratio, score_cutoff=MIN_RATIO)
            if found is None:
                continue
            wanted = found[0].split(" ")
            odd = [(have, want) for have, want in zip(window, wanted, strict=True) if have != want]
            if odd and all(_is_typo(have, want, known) for have, want in odd):
                span = tokens.raw_span(tokens.starts[at], tokens.ends[at + n - 1])
                hits.append(Hit(*span, numbers[found[2]]))
    return tuple(hits)


def _is_typo(have: str, want: str, known: frozenset[str]) -> bool:
    """Not a word of its own, same first letter, and close to the wanted one."""
    return have not in known and len(want) >= 4 and have[:1] == want[:1] and fuzz.ratio(have, want) >= 70
