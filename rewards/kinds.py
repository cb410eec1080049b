"""What kind of prompt is it: the row's column first, then a rule, then `factual`; and which of them decided.

It looks only at the prompt, never at the completion. Everything in `rewards` may import it, and the dataset's labeller.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rewards.config import RewardConfig
from rewards.text import View, view
from rewards.types import ABSTAIN_KINDS, KindSource, Row

_YEAR = re.compile(r"(?<!\d)(20[2-9]\d)(?!\d)")
SOCIAL_WORDS = 14
"""A longer turn is never decided to be social by rule."""

_LISTS = ("code", "creative", "feedback", "realtime", "private", "after_cutoff", "opinion", "howto", "defer", "complex")
"""Kinds decided by the first matching lexicon `kind_*`, in this order, after the social ones."""


def decide(prompt: str, row: Row, config: RewardConfig) -> tuple[str, KindSource]:
    """(kind, who decided it). A row with `answerable = false` is `unanswerable` unless its kind says it better.

    >>> config = RewardConfig.default()
    >>> decide("Good morning!", Row(), config)
    ('greeting', 'rule')
    >>> decide("Good morning!", Row(kind="smalltalk"), config)
    ('smalltalk', 'row')
    """
    if row.answerable is False and row.kind != "defer" and row.kind not in ABSTAIN_KINDS:
        return "unanswerable", "row"
    if row.kind is not None:
        return row.kind, "row"
    kind = by_rule(prompt, config)
    if row.answerable and kind in ABSTAIN_KINDS:
        kind = None
    return (kind, "rule") if kind else ("factual", "default")


def by_rule(prompt: str, config: RewardConfig) -> str | None:
    """The kind that the rules see, or None."""
    v = view(prompt)
    found: str | None = v.memo((config.compiled, "kind"), lambda: _by_rule(v, config))
    return found


def _by_rule(v: View, config: RewardConfig) -> str | None:
    if "```" in v.norm:
        return "code"
    social = _social(v, config)
    if social:
        return social
    year = _YEAR.search(v.norm)
    if year and int(year.group(1)) > config.number("cutoff_year", 2024):
        return "after_cutoff"
    for kind in _LISTS:
        if config.lexicon(f"kind_{kind}").find(v):
            return kind
    if unanswerable_score(v.raw, config) >= 1.0:
        return "unanswerable"
    return None


def _social(v: View, config: RewardConfig) -> str | None:
    """A short turn that social phrases cover but for a word or two; the kind is the one that covers most."""
    n = len(v.words)
    if not 0 < n <= SOCIAL_WORDS:
        return None
    free = config.lexicon("kind_social_free").words
    starts = v.tokens.raw_starts()
    covered: set[int] = set()
    most: tuple[int, str] | None = None
    for kind in ("thanks_bye", "smalltalk", "greeting", "ack"):
        hits = config.lexicon(f"kind_{kind}").find(v)
        here = {i for h in hits for i, at in enumerate(starts) if h.start <= at < h.end}
        covered |= here
        if here and (most is None or len(here) > most[0]):
            most = (len(here), kind)
    if most is None:
        return None
    bare = sum(i not in covered and word not in free for i, word in enumerate(v.words))
    if bare and (bare > (1 if n < 4 else 2 if n < 6 else 3 if n < 8 else 4) or config.lexicon("kind_request").find(v)):
        return None
    return most[1]


def unanswerable_score(prompt: str, config: RewardConfig) -> float:
    """How much a question looks as if nobody could answer it: the sum of its cues; 1 and more counts as
    unanswerable."""
    return config.lexicon("unanswerable").weight(view(prompt))


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The first five letters: good enough to recognise a word in another form.

    >>> stem("weathers")
    'weath'
    """
    return word[:5]


def content_words(v: View, config: RewardConfig) -> tuple[str, ...]:
    """Words that carry meaning: no function words, at least three letters (or digits)."""
    stop = config.lexicon("function_words").words
    return tuple(w for w in v.words if w not in stop and (len(w) >= 3 or w.isdigit()))
