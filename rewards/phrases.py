"""Finding phrases of a list in a text: literal by default, regex by choice. The engine under fillers and lexicons.

It knows nothing of weights, positions or categories. Literal phrases sit in a table keyed by their first word, so the
cost grows with the text, not with the list. `rewards` only; standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rewards.text import Tokens, View, view

MAX_REGEX = 200
"""Longest regular expression that is accepted in a filler list."""

MAX_LEXICON_REGEX = 1000
"""The same for a lexicon, whose lines often are long lists of alternatives."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Pattern number `entry` stands at `raw[start:end]`."""

    start: int
    end: int
    entry: int


@dataclass(frozen=True, slots=True)
class _Literal:
    words: tuple[str, ...]
    gaps: tuple[str, ...]
    tail: str
    """Punctuation that must follow ("of course!"); empty = anything may."""
    entry: int


def check_regex(pattern: str, *, lexicon: bool = False) -> str | None:
    """Why a regular expression is refused, or None. Lexicons may be longer and repeat a word a few times.

    >>> check_regex("(a+)+")
    'has a quantifier inside a quantifier, which can take forever on some texts'
    >>> check_regex("hope (?:this|that) helps")
    """
    limit, most, unbounded_most = (MAX_LEXICON_REGEX, 8, 8) if lexicon else (MAX_REGEX, 1, 2)
    if len(pattern) > limit:
        return f"is longer than {limit} characters"
    try:
        compiled = _compile(pattern)
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no valid regular expression ({error})"
    nested, unbounded = _quantifiers(parsed, most, inside=False)
    if nested:
        return "has a quantifier inside a quantifier, which can take forever on some texts"
    if unbounded > unbounded_most:
        return "has too many of *, + and {n,}, which is slow on long texts"
    if compiled.match("") or compiled.search("a") or re.compile(pattern).match(""):
        return "matches the empty string or a single letter"
    return None


def _quantifiers(node: Any, most: int, inside: bool) -> tuple[bool, int]:
    """(a variable quantifier stands inside another one, number of unbounded quantifiers) of a parsed expression."""
    nested, unbounded = False, 0
    for item in node.data if isinstance(node, re._parser.SubPattern) else node:  # type: ignore[attr-defined]
        if isinstance(item, tuple) and str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _low, high, body = item[1]
            repeats = high > most
            nested |= inside and high > 1
            unbounded += int(high >= 1000)
            deeper = _quantifiers(body, most, inside or repeats)
        elif isinstance(item, tuple | list | re._parser.SubPattern):  # type: ignore[attr-defined]
            deeper = _quantifiers(item, most, inside)
        else:
            continue
        nested, unbounded = nested or deeper[0], unbounded + deeper[1]
    return nested, unbounded


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern.replace(' ', chr(92) + 's+')})(?![^\W_])")


def first_words(pattern: str) -> frozenset[str] | None:
    """The words that a match of a regular expression can begin with; None when they cannot be told.

    >>> sorted(first_words("(?:very )?(?:good|nice) ideas?"))
    ['good', 'nice', 'very']
    """
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    prefixes = _prefixes(parsed.data, {""})
    if prefixes is None or len(prefixes) > 200:
        return None
    words = [view(prefix).words for prefix in prefixes]
    return frozenset(found[0] for found in words) if all(words) else None


def _prefixes(items: Sequence[Any], before: set[str]) -> set[str] | None:
    """Every text of `before` with what the items can add, up to the first space (then it ends with one)."""
    for item in items:
        if all(prefix.endswith(" ") for prefix in before):
            return before
        kind, value = str(item[0]), item[1]
        done = {prefix for prefix in before if prefix.endswith(" ")}
        growing = before - done
        added: set[str] | None
        if kind == "LITERAL":
            added = {prefix + chr(value) for prefix in growing}
        elif kind == "BRANCH":
            branches = [_prefixes(branch.data, growing) for branch in value[1]]
            added = None if any(b is None for b in branches) else set().union(*(b for b in branches if b is not None))
        elif kind == "SUBPATTERN":
            added = _prefixes(value[3].data, growing)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            once = _prefixes(value[2].data, growing)
            if once is None or (value[1] > 1 and any(not prefix.endswith(" ") for prefix in once)):
                return None
            added = once | growing if value[0] == 0 else once
        elif kind in ("ASSERT", "ASSERT_NOT", "AT"):
            added = growing
        else:
            added = None
        if added is None:
            return None
        before = done | added
    return before


class PhraseIndex:
    """Finds every occurrence of many phrases at once.

    >>> index = PhraseIndex([("great question", False), ("(?:this|that) helps", True)])
    >>> [(h.start, h.end, h.entry) for h in index.find(view("A great  question. Hope that helps"))]
    [(2, 17, 0), (24, 34, 1)]
    """

    def __init__(self, patterns: Sequence[tuple[str, bool]]) -> None:
        self._literals: dict[str, dict[str, list[_Literal]]] = {}
        self._begun: dict[str, list[tuple[re.Pattern[str], int]]] = {}
        self._anywhere: list[tuple[re.Pattern[str], int]] = []
        for entry, (pattern, is_regex) in enumerate(patterns):
            if is_regex:
                self._add_regex(pattern, entry)
            else:
                self._add_literal(pattern, entry)
        self._keys = self._literals.keys() | self._begun.keys()
        self._any_of = {
            word: _any_of(tuple(p.pattern for p, _ in some)) for word, some in self._begun.items() if len(some) > 2
        }

    def _add_literal(self, pattern: str, entry: int) -> None:
        tokens = view(pattern).tokens
        if not tokens.words:
            self._anywhere.append((re.compile(re.escape(pattern.lower().strip())), entry))
            return
        gaps = tuple(tokens.text[e:s].strip() for e, s in zip(tokens.ends[:-1], tokens.starts[1:], strict=True))
        tail = tokens.text[tokens.ends[-1] :].strip()[:1]
        second = tokens.words[1] if len(tokens.words) > 1 else ""
        by_second = self._literals.setdefault(tokens.words[0], {})
        by_second.setdefault(second, []).append(_Literal(tokens.words, gaps, tail, entry))

    def _add_regex(self, pattern: str, entry: int) -> None:
        if pattern.isascii() and "\\" not in pattern:
            pattern = pattern.lower()
        compiled = _compile(pattern)
        words = first_words(pattern)
        if words is None:
            self._anywhere.append((compiled, entry))
        for word in words or ():
            self._begun.setdefault(word, []).append((compiled, entry))

    def find(self, v: View) -> tuple[Hit, ...]:
        """Hits outside code and quotations, by position; they may overlap. Computed once per text."""
        found: tuple[Hit, ...] = v.memo(self, lambda: self._find(v))
        return found

    def entries(self, v: View) -> frozenset[int]:
        """Numbers of the patterns that occur."""
        return frozenset(hit.entry for hit in self.find(v))

    def _find(self, v: View) -> tuple[Hit, ...]:
        tokens = v.plain_tokens
        hits = self._by_word(tokens)
        for regex, entry in self._anywhere:
            for match in regex.finditer(tokens.text):
                if match.end() > match.start():
                    hits.append(Hit(*tokens.raw_span(*match.span()), entry))
        joined = v.joined_tokens
        if joined is not None:
            covered = {(h.start, h.entry) for h in hits}
            hits += [h for h in self._by_word(joined) if (h.start, h.entry) not in covered]
        if len(hits) > 1:
            hits.sort(key=lambda h: (h.start, -h.end, h.entry))
        return tuple(hits)

    def _by_word(self, tokens: Tokens) -> list[Hit]:
        hits: list[Hit] = []
        text, words, starts, ends = tokens.text, tokens.words, tokens.starts, tokens.ends
        for word in self._keys & tokens.positions.keys():
            by_second, regexes = self._literals.get(word, {}), self._begun.get(word, ())
            alone, any_of = by_second.get("", ()), self._any_of.get(word)
            for at in tokens.positions[word]:
                following = by_second.get(words[at + 1], ()) if by_second and at + 1 < len(words) else ()
                for literal in (*alone, *following):
                    n = len(literal.words)
                    if n > 1 and not (words[at : at + n] == literal.words and _gaps_fit(tokens, at, literal)):
                        continue
                    end = ends[at + n - 1]
                    if not literal.tail or text[end : end + 2].lstrip()[:1] == literal.tail:
                        hits.append(Hit(*tokens.raw_span(starts[at], end), literal.entry))
                if any_of is not None and not any_of.match(text, starts[at]):
                    continue
                for regex, entry in regexes:
                    match = regex.match(text, starts[at])
                    if match:
                        hits.append(Hit(*tokens.raw_span(*match.span()), entry))
        return hits


@lru_cache(maxsize=256)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression that tells whether any of many matches: a single call where nothing does."""
    return re.compile("|".join(patterns))


def _gaps_fit(tokens: Tokens, at: int, literal: _Literal) -> bool:
    """Between the words stands white space, or the punctuation that the phrase has there."""
    for k, gap in enumerate(literal.gaps, start=at):
        between = tokens.text[tokens.ends[k] : tokens.starts[k + 1]]
        if not between.isspace() and (not gap or between.strip() != gap):
            return False
    return True


def parse_line(line: str) -> tuple[float, str, bool]:
    """(weight, pattern, is it a regex) of one lexicon line.

    >>> parse_line("no idea"), parse_line("0.5 re:beats (?:me|us)")
    ((1.0, 'no idea', False), (0.5, 'beats (?:me|us)', True))
    """
    weight, rest = 1.0, line.strip()
    head, _, tail = rest.partition(" ")
    if tail and re.fullmatch(r"-?\d+\.\d+", head):
        weight, rest = float(head), tail.strip()
    return (weight, rest[3:].strip(), True) if rest.startswith("re:") else (weight, rest, False)


class Lexicon:
    """A compiled list of phrases with weights (1 unless a line begins with a decimal number)."""

    def __init__(self, lines: Sequence[str]) -> None:
        parsed = [parse_line(line) for line in lines]
        self.weights = tuple(weight for weight, _, _ in parsed)
        self.patterns = tuple(pattern for _, pattern, _ in parsed)
        self.index = PhraseIndex([(pattern, is_regex) for _, pattern, is_regex in parsed])
        self.words = frozenset(p.replace("'", "") for p in self.patterns if " " not in p)
        """The one-word entries, for set operations."""

    def find(self, v: View) -> tuple[Hit, ...]:
        return self.index.find(v)

    def first(self, v: View) -> Hit | None:
        hits = self.find(v)
        return hits[0] if hits else None

    def weight(self, v: View) -> float:
        """Sum of the weights of all hits that do not overlap an earlier one."""
        return sum(self.weights[h.entry] for h in without_overlaps(self.find(v)))


def without_overlaps(hits: Iterable[Hit]) -> list[Hit]:
    """The hits from left to right, the longest at each place, none overlapping."""
    out: list[Hit] = []
    for hit in hits:
        if not out or hit.start >= out[-1].end:
            out.append(hit)
    return out


@lru_cache(maxsize=256)
def lexicon(lines: tuple[str, ...]) -> Lexicon:
    """The compiled form of a list, shared by every configuration that has the same list."""
    return Lexicon(lines)
