"""The `unsolicited` reward: nothing nobody asked for. Counts kinds of extras, not length (`length` does that).

Only `rewards` imports it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rewards.config import RewardConfig
from rewards.kinds import content_words, decide, stem
from rewards.phrases import without_overlaps
from rewards.text import View, quantise, view
from rewards.types import ABSTAIN_KINDS, SOCIAL_KINDS, Result, Row, Span

_ITEM = re.compile(r"^[ ]{0,8}(?:[-*+•]|\d{1,2}[.)]|[a-z]\))[ ]+\S", re.MULTILINE)
_RAW_ITEM = re.compile(r"^[ \t]{0,8}(?:[-*+•‣–]|\d{1,2}[.)]|[a-zA-Z]\))[ \t]+\S.*$", re.MULTILINE)
_INLINE_ITEM = re.compile(r"(?<!\w)(?:\(?[1-9]\)|[1-9]\.)(?= [^\W\d_])")
_HEADER = re.compile(r"^[ ]{0,3}(?:#{1,6} \S.*|\*\*[^*\n]{2,60}\*\*:?[ ]*)$", re.MULTILINE)
_LINK = re.compile(r"https?://\S+|\bwww\.\w\S*|\]\([^)\s]{1,300}\)")


@dataclass(slots=True)
class _Bill:
    """Adds up what is charged."""

    v: View
    cost: float = 0.0
    spans: list[Span] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def charge(self, cost: float, category: str, reason: str, spans: list[tuple[int, int]]) -> None:
        if cost <= 0:
            return
        self.cost += cost
        each = round(-cost / max(1, len(spans)), 2)
        self.spans += [Span(a, b, "unsolicited", category, each, self.v.raw[a:b]) for a, b in spans]
        self.why.append(f"{reason}: {-cost:+.2f}")


def unsolicited(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Result:
    """1 minus what the extras cost; the row's `allow` column lifts each.

    >>> config = RewardConfig.default()
    >>> unsolicited("Morning", "Morning! Sleep ok?", Row(), config).score
    1.0
    """
    kind, _ = decide(prompt, row, config)
    v = view(completion)
    bill = _Bill(v)
    social = kind in SOCIAL_KINDS
    allow = row.allow
    if "code" not in allow and kind != "code":
        spans = _code_spans(v)
        bill.charge(0.7 if spans else 0.0, "code", "code nobody asked for", spans)
    if "list" not in allow and (social or kind in ABSTAIN_KINDS or kind in ("factual", "opinion")):
        items = list_items(v)
        bill.charge(0.5 if len(items) >= 2 else 0.0, "list", f"a list of {len(items)} items", items)
    if "header" not in allow:
        spans = [m.span() for m in _HEADER.finditer(v.raw) if v.prose[m.start() : m.end()].strip()]
        bill.charge(0.3 if spans else 0.0, "header", "a heading in a chat", spans)
    if "link" not in allow:
        spans = [m.span() for m in _LINK.finditer(v.raw) if v.prose[m.start() : m.end()].strip()]
        bill.charge(0.3 if spans else 0.0, "link", "a link nobody asked for", spans)
    if "tips" not in allow and kind not in ("howto", "feedback"):
        _phrases(bill, "tips", 0.3, "tip", config)
    if "extra" not in allow:
        _phrases(bill, "extras", 0.25, "extra", config)
    if "offer" not in allow:
        _phrases(bill, "offers", 0.2, "offer", config)
    if social and "extra" not in allow:
        _social(bill, prompt, row, config)
    return Result(quantise(1 - bill.cost), tuple(sorted(bill.spans, key=lambda s: (s.start, s.end))), tuple(bill.why))


def _phrases(bill: _Bill, name: str, each: float, category: str, config: RewardConfig) -> None:
    """Charges every sentence that holds a phrase of the list once."""
    seen: set[int] = set()
    spans: list[tuple[int, int]] = []
    for hit in without_overlaps(config.lexicon(name).find(bill.v)):
        sentence = bill.v.sentence_at(hit.start)
        if sentence not in seen:
            seen.add(sentence)
            spans.append((hit.start, hit.end))
    shown = ", ".join(f"'{bill.v.raw[a:b]}'" for a, b in spans[:3])
    bill.charge(each * len(spans), category, f"{category} nobody asked for ({shown})", spans)


def _code_spans(v: View) -> list[tuple[int, int]]:
    if "```" in v.norm:
        start = v.norm.index("```")
        return [(start, len(v.raw) if (end := v.norm.find("```", start + 3)) < 0 else end + 3)]
    return []


def list_items(v: View) -> list[tuple[int, int]]:
    """Raw spans of list items outside code, on lines of their own or numbered within one."""
    items = [m.span() for m in _RAW_ITEM.finditer(v.raw) if v.prose[m.start() : m.end()].strip()]
    if len(items) >= 2:
        return items
    inline = [m.span() for m in _INLINE_ITEM.finditer(v.prose)]
    return inline if len(inline) >= 3 else items


def _social(bill: _Bill, prompt: str, row: Row, config: RewardConfig) -> None:
    v = bill.v
    more = v.sentences[3:]
    bill.charge(
        0.15 * len(more), "long-winded", f"{len(more)} sentence{'s' * (len(more) != 1)} beyond three", list(more)
    )
    questions = [s for s in v.sentences if v.prose[s[0] : s[1]].rstrip("\"') ").endswith("?")][1:]
    bill.charge(
        0.15 * len(questions),
        "questions",
        f"{len(questions)} question{'s' * (len(questions) != 1)} beyond one",
        questions,
    )
    known = {stem(w) for w in view(prompt).words} | {stem(w) for w in config.lexicon("social_words").words}
    known |= {stem(w) for w in view(row.reference).words}
    new = {stem(w) for w in content_words(v, config)} - known
    bill.charge(0.08 * max(0, len(new) - 6), "off topic", f"{len(new)} new content words where six are plenty", [])
