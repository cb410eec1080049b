"""The `tone` reward: casual all the way through, neither stiff nor swinging between the two.

Its detector is the weakest of all, hence the default weight of 0.5. No opinion on formal rows and on creative and code
prompts. Only `rewards` imports it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rewards.config import RewardConfig
from rewards.kinds import decide
from rewards.phrases import Hit, Lexicon, without_overlaps
from rewards.text import View, quantise, view
from rewards.types import Result, Row, Span

_CONTRACTION = re.compile(
    r"(?<![^\W_])[a-z]+'(?:s|t|re|ve|ll|d|m|all|em)(?![^\W_])|(?<![^\W_])'(?:cause|til|em)(?![^\W_])"
)
_FOLLOWED = re.compile(r"\s+[^\W_]")


@dataclass(frozen=True, slots=True)
class Marks:
    """What was found: casual and formal places, and per sentence which of both prevails (+1, -1, 0)."""

    casual: tuple[Hit, ...]
    formal: tuple[Hit, ...]
    uncontracted: tuple[tuple[int, int], ...]
    signs: tuple[int, ...]
    mixed_case: bool

    @property
    def formality(self) -> float:
        return len(self.formal) + 0.5 * len(self.uncontracted)


def marks(v: View, config: RewardConfig) -> Marks:
    """Casual and formal markers of a text; computed once per text and list."""
    casual_list, formal_list = config.lexicon("casual"), config.lexicon("formal")
    found: Marks = v.memo((casual_list, formal_list), lambda: _marks(v, config))
    return found


def _marks(v: View, config: RewardConfig) -> Marks:
    tokens = v.plain_tokens
    casual = _strong(config.lexicon("casual"), v)
    casual += [Hit(*tokens.raw_span(*m.span()), -1) for m in _CONTRACTION.finditer(tokens.text)]
    casual = without_overlaps(sorted(casual, key=lambda h: (h.start, -h.end)))
    formal = without_overlaps(_strong(config.lexicon("formal"), v))
    stiff = tuple(
        (hit.start, hit.end)
        for hit in without_overlaps(config.lexicon("uncontracted").find(v))
        if _FOLLOWED.match(v.plain, hit.end) and not _kept_whole(v, hit)
    )
    signs = [0.0] * len(v.sentences)
    if signs:
        for hit in casual:
            signs[v.sentence_at(hit.start)] += 1
        for hit in formal:
            signs[v.sentence_at(hit.start)] -= 1
        for start, _ in stiff:
            signs[v.sentence_at(start)] -= 0.5
    return Marks(tuple(casual), tuple(formal), stiff, tuple((s > 0) - (s < 0) for s in signs), _mixed_case(v))


_WH = re.compile(r"(?:what|who|how|where|when|why|whatever|which|as|than)\s+$")


def _strong(listed: Lexicon, v: View) -> list[Hit]:
    return [hit for hit in listed.find(v) if listed.weights[hit.entry] >= 0.5]


def _kept_whole(v: View, hit: Hit) -> bool:
    """ "I know what it is" cannot be contracted, nor can "how it is going" be called stiff."""
    before = v.plain[max(0, hit.start - 10) : hit.start]
    return bool(_WH.search(before)) and v.norm[hit.start : hit.end] in _KEPT


_KEPT = frozenset({"it is", "that is", "you are", "they are", "i am", "we are"})


def _mixed_case(v: View) -> bool:
    """Some sentences begin in lower case and others with a capital."""
    first = [v.raw[m.start()] for start, end in v.sentences if (m := _FIRST.search(v.prose, start, end))]
    lower, upper = sum(c.islower() for c in first), sum(c.isupper() for c in first)
    return (lower >= 2 and upper >= 2) or (lower == upper == 1 and len(v.words) >= 12)


_FIRST = re.compile(r"[^\W_]")


def casual_index(text: str, config: RewardConfig) -> float:
    """How casual a text reads, about -1..1: the figure that is measured against labelled data (not the reward).

    Unlike the reward it counts weak signs too: short forms, "I" and "you", no capital at the start, long words.
    """
    v = view(text)
    n = len(v.words)
    if not n:
        return 0.0
    m = marks(v, config)
    contracted = sum(hit.entry < 0 for hit in m.casual)
    casual = config.lexicon("casual").weight(v) + contracted
    formal = config.lexicon("formal").weight(v) + 0.5 * len(m.uncontracted)
    persons = sum(w in _PERSONS for w in v.words)
    length = sum(map(len, v.words)) / n
    lower = _FIRST.search(v.prose)
    start = 0.15 if lower and v.raw[lower.start()].islower() else 0.0
    return (2 * casual - 3 * formal + persons) / (n + 6) - 0.12 * (length - 4.2) + start


_PERSONS = frozenset({"i", "im", "ive", "id", "ill", "me", "my", "you", "your", "youre", "u", "we", "gonna", "hey"})


def tone(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Result:
    """1 for steady casual text; formal words and flips between registers cost.

    >>> config = RewardConfig.default()
    >>> tone("", "Sure thing.", Row(), config).score
    1.0
    >>> tone("", "Furthermore, it is recommended to proceed.", Row(), config).score <= 0.4
    True
    >>> tone("", "Indeed.", Row(register="formal"), config).score
    """
    kind, _ = decide(prompt, row, config)
    if row.register == "formal" or kind in ("creative", "code"):
        return Result(None)
    v = view(completion)
    m = marks(v, config)
    why: list[str] = []
    spans: list[Span] = []
    f = m.formality
    c = min(len(m.casual), 1 + len(v.sentences) / 2)
    level = 1 - f / (f + c + 1.5)
    if f:
        each = (level - 1) / f
        spans += [Span(h.start, h.end, "tone", "formal", round(each, 2), v.raw[h.start : h.end]) for h in m.formal]
        spans += [Span(s, e, "tone", "uncontracted", round(each / 2, 2), v.raw[s:e]) for s, e in m.uncontracted]
        spans.sort(key=lambda s: s.start)
        shown = ", ".join(f"'{s.text}'" for s in spans[:4]) + (" ..." if len(spans) > 4 else "")
        why.append(f"stiff wording ({shown}): {level - 1:+.2f}")
    flips = 0
    last = 0
    for sign in m.signs:
        flips += int(sign != 0 and last != 0 and sign != last)
        last = sign or last
    cost = (0.25 + 0.15 * (flips - 1)) if flips else 0.0
    if flips:
        why.append(
            f"the register flips {flips} time{'' if flips == 1 else 's'} between casual and formal: {-cost:+.2f}"
        )
    if m.mixed_case:
        cost += 0.15
        why.append("some sentences begin in lower case, others with a capital: -0.15")
    return Result(quantise(level - cost), tuple(spans), tuple(why))
