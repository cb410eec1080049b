"""The `uncertainty` reward: knows what it knows, says so when it does not, names a better source when it should.

Truth is known only on rows with accepted answers. Refusal ("I can't help with that") and not knowing are different
detectors. Only `rewards` imports it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rewards.config import RewardConfig
from rewards.kinds import decide
from rewards.phrases import Hit, without_overlaps
from rewards.text import View, quantise, view
from rewards.types import ABSTAIN_KINDS, SOCIAL_KINDS, Result, Row, Span

_NUMBER = re.compile(r"(?<![\w.])[$€£]?\d[\d,.:/]*(?:%|°|[ap]m)?")
_NAME = re.compile(r"(?<![.!?\n] )(?<![.!?\n\"'(*])(?<!^)\b[A-Z][a-zé]{2,}\b")


@dataclass(frozen=True, slots=True)
class Stance:
    """What a reply says about its own knowledge."""

    abstains: Hit | None
    """First "I don't know" of the reply."""
    early: bool
    """It stands in the first two sentences."""
    defers: Hit | None
    """First mention of a better source."""
    refuses: Hit | None
    hedges: tuple[Hit, ...]


def stance(v: View, config: RewardConfig) -> Stance:
    """See `Stance`; computed once per text."""
    found: Stance = v.memo((config.compiled, "stance"), lambda: _stance(v, config))
    return found


def _stance(v: View, config: RewardConfig) -> Stance:
    abstains = config.lexicon("abstain").first(v)
    early = abstains is not None and v.sentence_at(abstains.start) < 2
    listed = config.lexicon("hedges")
    hedges = tuple(without_overlaps(h for h in listed.find(v) if listed.weights[h.entry] >= 1))
    return Stance(abstains, early, config.lexicon("defer").first(v), config.lexicon("refusal").first(v), hedges)


def refusal_score(v: View, config: RewardConfig) -> float:
    """Weight of the refusals in the first two sentences, a third of it further down; 1 and more is a refusal."""
    lexicon = config.lexicon("refusal")
    hits = without_overlaps(lexicon.find(v))
    return sum(lexicon.weights[h.entry] * (1.0 if v.sentence_at(h.start) < 2 else 0.33) for h in hits)


def hedge_score(v: View, config: RewardConfig) -> float:
    """Weight of the hedges (1) and weasel words (0.5); 0.5 and more calls a sentence hedged."""
    return config.lexicon("hedges").weight(v)


def specifics(v: View, prompt: View) -> list[tuple[int, int]]:
    """Raw spans of numbers and names that the prompt does not contain."""
    out = []
    for match in _NUMBER.finditer(v.prose):
        if match.group().strip(".,:/") not in prompt.norm:
            out.append(match.span())
    for match in _NAME.finditer(v.raw):
        if v.norm[match.start() : match.end()] not in prompt.norm and v.prose[match.start()] != " ":
            out.append(match.span())
    return sorted(out)


def contains_answer(v: View, answers: tuple[str, ...]) -> bool:
    """Whether a reply contains one of the accepted answers, word for word (articles and punctuation aside).

    >>> contains_answer(view("It's Paris."), ("Paris, France", "paris"))
    True
    """
    return any(_contains(v, answer) for answer in answers)


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(w for w in words if w not in ("a", "an", "the"))


def _contains(v: View, answer: str) -> bool:
    words = _bare(view(answer).words)
    if not words:
        return bool(answer.strip()) and view(answer).norm.strip() in v.norm
    text, n = _bare(v.words), len(words)
    for i in range(len(text) - n + 1):
        if text[i : i + n - 1] == words[:-1] and _same_word(text[i + n - 1], words[-1]):
            return True
    return False


def _same_word(word: str, answer: str) -> bool:
    """Equal, or the answer with a short ending ("scatters", "penguins")."""
    if word == answer:
        return True
    return len(answer) >= 4 and answer.isalpha() and word.startswith(answer) and word[len(answer) :] in _ENDINGS


_ENDINGS = ("s", "es", "ed", "d", "ing", "ly", "n")


def uncertainty(
    prompt: str,
    completion: str,
    row: Row,
    config: RewardConfig,
    *,
    truncated: bool = False,
    history: Sequence[str] = (),
) -> Result:
    """The table of the documentation: what is best depends on the kind of row.

    >>> config = RewardConfig.default()
    >>> ask = "What's the weather like right now?"
    >>> uncertainty(ask, "No idea, I can't check live weather.", Row(kind="realtime"), config).score
    1.0
    >>> uncertainty(ask, "It's 72 degrees in Denver.", Row(kind="realtime"), config).score
    0.0
    """
    kind, _ = decide(prompt, row, config)
    v = view(completion)
    s = stance(v, config)
    if kind in ABSTAIN_KINDS:
        return _abstain_row(v, view("\n".join((*history, prompt))) if history else view(prompt), s)
    if kind in SOCIAL_KINDS and not row.gold:
        return _social_row(v, s, config.lexicon("clueless").first(v))
    if kind == "defer":
        return _defer_row(v, s, s.defers or config.lexicon("sources").first(v))
    if row.gold:
        return _gold_row(v, s, row, config)
    if kind in ("opinion", "creative", "code", "feedback"):
        return Result(None)
    return _answerable_row(v, s)


def _span(v: View, hit: Hit, category: str, delta: float) -> Span:
    return Span(hit.start, hit.end, "uncertainty", category, round(delta, 2), v.raw[hit.start : hit.end])


def _quote(v: View, hit: Hit) -> str:
    return f"'{v.raw[hit.start : hit.end]}'"


def _result(score: float, why: str, *spans: Span) -> Result:
    score = quantise(score)
    return Result(score, spans, () if score == 1.0 else (f"{why}: {score - 1:+.2f}",))


def _social_row(v: View, s: Stance, clueless: Hit | None) -> Result:
    for hit, what in ((clueless, "does not know"), (s.defers, "sends you elsewhere"), (s.refuses, "refuses")):
        if hit:
            return _result(0.0, f"{_quote(v, hit)} {what} where company was wanted", _span(v, hit, "abstains", -1))
    return Result(1.0)


def _abstain_row(v: View, prompt: View, s: Stance) -> Result:
    new = specifics(v, prompt)
    if s.abstains:
        mark = _span(v, s.abstains, "abstains", 0.0)
        if len(new) >= 2:
            spans = [Span(a, b, "uncertainty", "specific", -0.6, v.raw[a:b]) for a, b in new[:6]]
            return _result(
                0.4, f"says it does not know ({_quote(v, s.abstains)}) and gives details anyway", mark, *spans
            )
        if s.early:
            return Result(1.0, (mark,))
        return _result(0.6, f"says only late that it does not know ({_quote(v, s.abstains)})", mark)
    if s.defers and len(new) < 2:
        return _result(
            0.7,
            f"names another source ({_quote(v, s.defers)}) without saying that it does not know",
            _span(v, s.defers, "defers", -0.3),
        )
    if s.hedges:
        return _result(
            0.35, f"guesses with a hedge ({_quote(v, s.hedges[0])})", _span(v, s.hedges[0], "hedged guess", -0.65)
        )
    spans = [Span(a, b, "uncertainty", "specific", -1.0, v.raw[a:b]) for a, b in new[:6]]
    return _result(0.0, "answers confidently what it cannot know", *spans)


def _defer_row(v: View, s: Stance, source: Hit | None) -> Result:
    if source:
        return Result(1.0, (_span(v, source, "defers", 0.0),))
    if s.abstains:
        return _result(
            0.6,
            f"says it does not know ({_quote(v, s.abstains)}) but names no better source",
            _span(v, s.abstains, "abstains", -0.4),
        )
    if s.hedges:
        return _result(
            0.3,
            f"tries with a hedge ({_quote(v, s.hedges[0])}) instead of naming a better source",
            _span(v, s.hedges[0], "hedge", -0.7),
        )
    return _result(0.1, "tries confidently instead of naming a better source")


def _gold_row(v: View, s: Stance, row: Row, config: RewardConfig) -> Result:
    right, wrong = contains_answer(v, row.gold), contains_answer(v, row.distractors)
    hedged = len(s.hedges) > 0.06 * len(v.words) and len(s.hedges) >= 2
    if right and wrong:
        score, why = 0.3, "names the right answer among wrong ones"
    elif right and s.abstains:
        score, why = 0.8, f"right, but disowned ({_quote(v, s.abstains)})"
    elif right:
        score, why = 1.0, "right"
    elif s.abstains:
        score, why = config.number("abstain_on_gold", 0.4), f"says it does not know ({_quote(v, s.abstains)})"
    elif s.hedges:
        score, why = 0.2, f"wrong, with a hedge ({_quote(v, s.hedges[0])})"
    else:
        score, why = 0.0, "no accepted answer in the reply"
    if hedged and right:
        score, why = score - 0.2, f"{why}, hedged {len(s.hedges)} times"
    spans = [_span(v, hit, "hedge", -0.2) for hit in s.hedges] if hedged else []
    return _result(score, why, *spans)


def _answerable_row(v: View, s: Stance) -> Result:
    n = len(v.words)
    quits = s.abstains or s.refuses
    if quits and n < 40:
        return _result(
            0.3, f"{_quote(v, quits)}: gives up on a question that has an answer", _span(v, quits, "abstains", -0.7)
        )
    if len(s.hedges) > max(1.0, 0.06 * n):
        return _result(
            0.7, f"hedges {len(s.hedges)} times in {n} words", *[_span(v, h, "hedge", -0.3) for h in s.hedges]
        )
    return Result(1.0)
