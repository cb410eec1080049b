"""The `length` reward: are there as many words as the prompt calls for? A band, not a point, and no opinion on content.

Only `rewards` imports it.
"""

from __future__ import annotations

from math import log

from rewards.config import RewardConfig
from rewards.kinds import decide
from rewards.text import quantise, view
from rewards.types import Result, Row, Span


def band(prompt: str, completion: str, row: Row, config: RewardConfig) -> tuple[float, float, str]:
    """(fewest words, most words, where they come from)."""
    kind, _ = decide(prompt, row, config)
    lo, hi, source = _band_of_kind(kind, config)
    if row.reference:
        r = len(view(row.reference).words)
        if r:
            lo, hi, source = max(1.0, min(0.5 * r, r - 6)), max(1.6 * r, r + 8), "the reference reply"
    if row.len_lo is not None or row.len_hi is not None:
        lo, hi = (
            float(row.len_lo or 0) if row.len_lo is not None else lo,
            float(row.len_hi) if row.len_hi is not None else hi,
        )
        lo, hi, source = min(lo, hi), max(lo, hi), "the row"
    if is_code_reply(prompt, completion, row, config):
        lo, source = 0.0, f"{source}, with a code block"
    return lo, hi, source


def _band_of_kind(kind: str, config: RewardConfig) -> tuple[float, float, str]:
    lo, hi = config.parameters.get(f"band.{kind}.lo"), config.parameters.get(f"band.{kind}.hi")
    if lo is None or hi is None:
        lo, hi = config.number("band.other.lo", 10), config.number("band.other.hi", 120)
    return lo, hi, f"{kind} prompts"


def is_code_reply(prompt: str, completion: str, row: Row, config: RewardConfig) -> bool:
    """A reply with a code block where code was asked for: the block is the answer, words are optional."""
    kind, _ = decide(prompt, row, config)
    return (kind == "code" or "code" in row.allow) and view(completion).has_code_block


def length(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Result:
    """1 inside the band, falling to 0 at no word and at three times the upper end.

    >>> config = RewardConfig.default()
    >>> length("Morning", "Morning! You up early or just not slept?", Row(), config).score
    1.0
    >>> length("Morning", "Hey.", Row(), config).score
    0.5
    """
    lo, hi, source = band(prompt, completion, row, config)
    v = view(completion)
    n = len(v.words)
    if n < lo:
        score = n / lo
        why = f"{n} word{'' if n == 1 else 's'}, {source} call for at least {lo:g}"
    elif n > hi:
        score = 1 - log(n / hi) / log(3) if hi > 0 else 0.0
        why = f"{n} words, {source} call for at most {hi:g}"
    else:
        return Result(1.0)
    score = quantise(score)
    if score == 1.0:
        return Result(1.0)
    spans: tuple[Span, ...] = ()
    if n > hi:
        tokens = v.tokens
        start = tokens.raw_span(tokens.starts[int(hi)], tokens.ends[int(hi)])[0]
        end = tokens.raw_span(tokens.starts[-1], tokens.ends[-1])[1]
        spans = (Span(start, end, "length", "too long", round(score - 1, 2), v.raw[start:end]),)
    return Result(score, spans, (f"{why}: {score - 1:+.2f}",))
