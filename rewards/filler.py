"""The `filler` reward: flattery, throat-clearing, disclaimers, canned closings. Phrases that say nothing.

It detects phrases, not sycophancy; caving in is looked for only on rows where the user is known to be wrong. Only
`rewards` imports it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from math import exp

from rewards.config import Compiled, FillerEntry, RewardConfig
from rewards.phrases import Hit
from rewards.text import View, quantise, view
from rewards.types import Result, Row, Span

SHORT_OPENING = 4
"""Words of a first sentence that is still only an interjection ("Good morning!")."""

_PLACES = {"open": "in the opening", "close": "in the closing", "any": "in the text"}


def filler(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Result:
    """exp(-0.9 x weights): 0.40 for one hard phrase, 0.15 for two.

    >>> config = RewardConfig.default()
    >>> filler("Capital of France?", "Great question! It's Paris.", Row(), config).score
    0.4
    """
    v = view(completion)
    found = matches(v, view(prompt), config)
    hard = sum(entry.weight for _, entry in found if entry.weight > 0.5)
    soft = sum(entry.weight for _, entry in found if entry.weight <= 0.5)
    allowance = config.number("filler_allowance", 0.5) * (_other_words(v, config) // 120)
    charged = [(hit, entry, entry.weight) for hit, entry in found]
    whole = hard + max(0.0, soft - allowance)
    yielded = _giving_in(v, row, config)
    cost = config.number("giving_in", 1.5) if yielded else 0.0
    rate = config.number("filler_rate", 0.9)
    score = quantise(exp(-rate * (whole + cost)))
    spans = [_span(v, hit, entry, weight, rate) for hit, entry, weight in charged]
    why = [
        f"'{s.text}' {_PLACES[entry.where]} ({entry.category}): {s.delta:+.2f}"
        for s, (_, entry, _) in zip(spans, charged, strict=True)
    ]
    if soft and allowance:
        why.append(f"{min(soft, allowance):.2f} of soft phrases are free in a text of this length")
    if yielded:
        delta = round(exp(-rate * cost) - 1, 2)
        text = v.raw[yielded.start : yielded.end]
        spans.append(Span(yielded.start, yielded.end, "filler", "giving in", delta, text))
        why.append(f"'{text}': gives in to a wrong claim: {delta:+.2f}")
    return Result(score, tuple(spans), tuple(why))


def filler_weight(prompt: str, completion: str, row: Row, config: RewardConfig) -> float:
    """Sum of the weights of the filler found: the figure that is measured against labelled data."""
    return sum(entry.weight for _, entry in matches(view(completion), view(prompt), config))


def _span(v: View, hit: Hit, entry: FillerEntry, weight: float, rate: float) -> Span:
    return Span(
        hit.start, hit.end, "filler", entry.category, round(exp(-rate * weight) - 1, 2), v.raw[hit.start : hit.end]
    )


def matches(v: View, prompt: View, config: RewardConfig) -> list[tuple[Hit, FillerEntry]]:
    """The filler of a reply: in its place, not used by the user, heaviest first where phrases overlap."""
    compiled = config.compiled
    hits = candidates(v, compiled)
    if not hits:
        return []
    used = compiled.filler_index.entries(prompt)
    opening, closing = _opening(v, hits, config), _closing(v, hits)
    fitting = []
    for hit in hits:
        entry = compiled.fillers[hit.entry]
        if hit.entry in used:
            continue
        if entry.where == "open" and hit.start not in opening:
            continue
        if entry.where == "close" and hit.start < closing:
            continue
        fitting.append((hit, entry))
    fitting.sort(key=lambda item: (-item[1].weight, item[0].start - item[0].end, item[0].start))
    taken: list[tuple[Hit, FillerEntry]] = []
    for hit, entry in fitting:
        if all(hit.end <= other.start or hit.start >= other.end for other, _ in taken):
            taken.append((hit, entry))
    return sorted(taken, key=lambda item: item[0].start)


def candidates(v: View, compiled: Compiled) -> tuple[Hit, ...]:
    """All places where an entry matches, wherever it may count; misspelt ones too when the configuration says so."""
    hits = compiled.filler_index.find(v)
    if compiled.fuzzy:
        from rewards.fuzzy import fuzzy_hits

        extra = v.memo((compiled, "fuzzy"), lambda: fuzzy_hits(v, compiled))
        hits = tuple(sorted((*hits, *extra), key=lambda h: (h.start, -h.end, h.entry)))
    return hits


def _opening(v: View, hits: tuple[Hit, ...], config: RewardConfig) -> frozenset[int]:
    """Raw offsets at which an opening phrase counts: sentence starts that only filler or an interjection precedes."""
    tokens = v.plain_tokens
    if not tokens.words:
        return frozenset()
    starts = tokens.raw_starts()
    with_filler = {v.sentence_at(hit.start) for hit in hits}
    interjections = config.lexicon("interjections").words
    allowed: set[int] = set()
    interjected = False
    for number, (start, end) in enumerate(v.sentences):
        first = bisect_left(starts, start)
        if first < len(starts) and starts[first] < end:
            allowed.add(starts[first])
            at = first
            while at + 1 < len(starts) and at - first < 3 and tokens.words[at] in interjections:
                at += 1
                allowed.add(starts[at])
        length = bisect_left(starts, end) - first
        if number in with_filler:
            continue
        if interjected or length > SHORT_OPENING:
            break
        interjected = True
    return frozenset(allowed)


def _closing(v: View, hits: tuple[Hit, ...]) -> int:
    """Raw offset from which a closing phrase counts: the last two sentences that are not filler themselves."""
    with_filler = {v.sentence_at(hit.start) for hit in hits}
    left = 2
    for number in range(len(v.sentences) - 1, -1, -1):
        if number not in with_filler:
            left -= 1
            if left == 0:
                return v.sentences[number][0]
    return 0


def _other_words(v: View, config: RewardConfig) -> int:
    """Words outside filler: what a soft phrase may be diluted by. Padding with more filler buys nothing."""
    spans = [(hit.start, hit.end) for hit in candidates(v, config.compiled)]
    covered = sum(len(re.findall(r"\w+", v.norm[start:end])) for start, end in spans)
    return max(0, len(v.words) - covered)


def _giving_in(v: View, row: Row, config: RewardConfig) -> Hit | None:
    return config.lexicon("giving_in").first(v) if row.user_wrong else None
