"""Substance: does the reply say anything about the matter? A factor on the total, not a vote.

It is keyword overlap and nothing deeper: it keeps "sounds good, let me think about it" from winning, it does not judge
truth. Only `rewards` imports it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewards.config import RewardConfig
from rewards.filler import candidates
from rewards.kinds import content_words, decide, stem
from rewards.text import View, quantise, view
from rewards.types import ABSTAIN_KINDS, SOCIAL_KINDS, Result, Row
from rewards.uncertainty import contains_answer, stance


def substance(
    prompt: str,
    completion: str,
    row: Row,
    config: RewardConfig,
    *,
    truncated: bool = False,
    history: Sequence[str] = (),
) -> Result:
    """0..1, or None when the row has neither a rule nor a reference.

    >>> config = RewardConfig.default()
    >>> substance("Morning", "Morning! Sleep ok?", Row(), config).score
    1.0
    """
    kind, _ = decide(prompt, row, config)
    v, p = view(completion), view("\n".join((*history, prompt))) if history else view(prompt)
    if kind in SOCIAL_KINDS and not row.gold:
        return _social(kind, v, p, row, config)
    if row.gold and kind not in ABSTAIN_KINDS and kind != "defer":
        if contains_answer(v, row.gold):
            return Result(1.0)
        if stance(v, config).abstains:
            return Result(0.5, (), ("no answer, only not knowing: 0.50",))
        return Result(0.3, (), ("no accepted answer: 0.30",))
    if kind in ABSTAIN_KINDS or kind == "defer":
        topic = topic_stems(p, row, config)
        if not topic or topic & {stem(w) for w in v.words}:
            return Result(1.0)
        return Result(0.5, (), ("names nothing of the topic: 0.50",))
    return _reference(v, row, config)


def _social(kind: str, v: View, p: View, row: Row, config: RewardConfig) -> Result:
    if config.lexicon("clueless").find(v) or stance(v, config).defers or config.lexicon("stalling").find(v):
        return Result(0.5, (), ("does not answer in kind: 0.50",))
    canned = [(hit.start, hit.end) for hit in candidates(v, config.compiled)]
    social = any(
        all(hit.end <= start or hit.start >= end for start, end in canned)
        for hit in config.lexicon(f"social_{kind}").find(v)
    )
    topic = {stem(w) for w in content_words(p, config)} | reference_stems(row, config)
    topic -= {stem(w) for w in config.lexicon("generic").words}
    if social or topic & {stem(w) for w in content_words(v, config)}:
        return Result(1.0)
    return Result(0.5, (), (f"nothing in it fits a {kind.replace('_', ' or ')} prompt: 0.50",))


def topic_stems(p: View, row: Row, config: RewardConfig) -> frozenset[str]:
    """Stems of what the row is about: the content words of its key words, its prompt and its reference."""
    words = {w for key in row.keywords for w in view(key).words} | set(content_words(p, config))
    common = {stem(w) for w in config.lexicon("generic").words}
    return (frozenset(stem(w) for w in words) | reference_stems(row, config)) - common


def reference_stems(row: Row, config: RewardConfig) -> frozenset[str]:
    """Stems of the content words of the curated reply."""
    return frozenset(stem(w) for w in content_words(view(row.reference), config)) if row.reference else frozenset()


def _reference(v: View, row: Row, config: RewardConfig) -> Result:
    words = [w for key in row.keywords for w in view(key).words] or list(content_words(view(row.reference), config))
    keys = {stem(w) for w in words}
    if not keys:
        return Result(None)
    hits = len(keys & {stem(w) for w in v.words})
    wanted = max(2.0, 0.3 * len(keys)) if len(keys) > 1 else 1.0
    score = quantise(min(1.0, hits / wanted))
    why = (
        ()
        if score == 1.0
        else (f"{hits} of the reference's {len(keys)} key words, {wanted:.0f} would do: {score:.2f}",)
    )
    return Result(score, (), why)
