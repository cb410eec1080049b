"""The guard: what no persona excuses. A penalty of -1..0, and a gate that makes every other reward worthless.

It is no vote among the rewards: empty, broken or repeated text must not win by doing nothing wrong. Only `rewards`
imports it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from rewards.config import RewardConfig
from rewards.filler import candidates
from rewards.kinds import content_words, decide
from rewards.length import band, is_code_reply
from rewards.text import View, view
from rewards.types import ABSTAIN_KINDS, SOCIAL_KINDS, Result, Row, Span
from rewards.uncertainty import contains_answer, stance
from rewards.unsolicited import list_items

_TEMPLATE = re.compile(
    r"<\|[\w /]{1,40}\|>|<\|?(?:im_start|im_end|endoftext|eot_id|bos|eos|pad|start_of_turn|end_of_turn)\|?>"
    r"|\[/?INST\]|<</?SYS>>|</?s>"
)
_ROLE = re.compile(r"^[ \t*]{0,6}(?:user|human|assistant|system|ada|you|me)[ *]{0,4}:", re.MULTILINE | re.IGNORECASE)
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2190-\u21ff\u23e9-\u23fa]")
_STRETCH = re.compile(r"([a-z])\1{3,}", re.IGNORECASE)
_BANGS = re.compile(r"!!!|\?\?\?")
_CAPS = re.compile(r"(?<![^\W_])[A-Z]{2,}(?![^\W_])")


@dataclass(slots=True)
class _Finding:
    v: View
    gated: bool = False
    cost: float = 0.0
    spans: list[Span] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def hard(self, reason: str, *spans: tuple[int, int]) -> None:
        self.gated = True
        self.why.append(f"{reason}: nothing else counts")
        self._mark("broken", -1.0, spans)

    def soft(self, cost: float, category: str, reason: str, *spans: tuple[int, int]) -> None:
        self.cost += cost
        self.why.append(f"{reason}: {-cost:+.2f}")
        self._mark(category, -cost, spans)

    def _mark(self, category: str, delta: float, spans: tuple[tuple[int, int], ...]) -> None:
        self.spans += [Span(a, b, "guard", category, round(delta, 2), self.v.raw[a:b]) for a, b in spans]


@dataclass(frozen=True, slots=True)
class Guarded:
    """The guard's value, whether the gate fell, and the evidence."""

    value: float
    gated: bool
    result: Result


def guard(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Guarded:
    """-1 and gated for broken text; 0 for healthy text; in between for bad manners.

    >>> config = RewardConfig.default()
    >>> guard("Hi", "", Row(), config).gated, guard("Hi", "Hey, you!", Row(), config).value
    (True, 0.0)
    """
    v, p = view(completion), view(prompt)
    found = _Finding(v)
    _hard(found, v, p, row, config, prompt, completion)
    if not found.gated:
        _soft(found, v, p, row, config, prompt, completion, truncated)
    value = -1.0 if found.gated else -min(20, round(found.cost * 20)) / 20 + 0.0
    why = found.why
    return Guarded(value, found.gated, Result(round(1 + value, 2), tuple(found.spans), tuple(why)))


def _hard(f: _Finding, v: View, p: View, row: Row, config: RewardConfig, prompt: str, completion: str) -> None:
    if not v.raw.strip():
        return f.hard("empty")
    if match := _TEMPLATE.search(v.raw):
        f.hard(f"chat-template token '{match.group()}'", match.span())
    code = is_code_reply(prompt, completion, row, config)
    words = v.words
    if not words:
        return None if code else f.hard("no words")
    if "language" not in row.allow and _non_latin(v.prose, v.raw) > 0.15 and not _non_latin(p.norm, p.raw):
        f.hard("another script than the prompt's")
    elif "language" not in row.allow and _foreign(v, config) and not _foreign(p, config):
        f.hard("another language than the prompt's")
    n = len(words)
    if n >= 20 and repetition(words) > 0.45:
        f.hard(f"{repetition(words):.0%} of the three-word runs are repeated")
    if run := _same_word(v):
        f.hard("the same word four times in a row", run)
    if n >= 5 and not v.has_code_block and _copies(v, p, row, config):
        f.hard("copied from the prompt")
    if _gibberish(v) > (0.25 if n >= 8 and not v.has_code_block else 0.5):
        f.hard("gibberish")
    if n >= 7 and "," not in v.prose and len(list_items(v)) < 2:
        function = config.lexicon("function_words").words
        if sum(w in function for w in words) < 0.12 * n:
            f.hard("words without grammar")
    return None


def _soft(
    f: _Finding, v: View, p: View, row: Row, config: RewardConfig, prompt: str, completion: str, truncated: bool
) -> None:
    words, n = v.words, len(v.words)
    kind, _ = decide(prompt, row, config)
    share = repetition(words)
    if n >= 8 and share > 0.25:
        f.soft(0.3, "repetition", f"{share:.0%} of the three-word runs are repeated")
    elif twice := _said_twice(v):
        f.soft(0.3, "repetition", "says a sentence twice", twice)
    emoji = [m.span() for m in _EMOJI.finditer(v.raw) if v.prose[m.start()] != " "]
    if emoji:
        f.soft(min(0.6, 0.1 * len(emoji)), "emoji", f"{len(emoji)} emoji", *emoji)
    if match := _BANGS.search(v.prose) or _STRETCH.search(v.prose):
        f.soft(0.2, "shrill", f"'{v.raw[match.start() : match.end()]}'", match.span())
    caps = _CAPS.findall(v.raw) if len(v.raw) < 5000 else []
    if n >= 4 and sum(len(c) > 2 for c in caps) >= max(3, 0.5 * n):
        f.soft(0.3, "shouting", "shouting")
    if v.obfuscated:
        f.soft(0.2, "obfuscated", "hidden letters", *v.obfuscated)
    penalty = config.number("lower_case_penalty", 0.2)
    if penalty and n >= 3 and not any(c.isupper() for c in v.raw) and _begins_low(v):
        f.soft(penalty, "lower case", "all in lower case")
    roles = [m.span() for m in _ROLE.finditer(v.raw) if v.prose[m.start() : m.end()].strip()]
    if len(roles) >= 2 or (roles and v.prose[: roles[0][0]].strip()):
        f.soft(0.5, "roles", "plays both roles", *roles)
    code = is_code_reply(prompt, completion, row, config)
    if n <= 2 and not code and kind not in SOCIAL_KINDS and kind != "factual":
        f.soft(0.5, "too short", "two words or fewer")
    if n and words == p.words:
        f.soft(0.3, "echo", "only repeats the prompt")
    hedges = stance(v, config).hedges
    if len(hedges) >= 4 and len(hedges) > 0.15 * n:
        f.soft(0.3, "hedging", f"{len(hedges)} hedges in {n} words", *[(h.start, h.end) for h in hedges])
    if kind == "code" and not row.reference and not v.has_code and n >= 20:
        f.soft(0.1, "no code", "no code where code was asked for")
    if slang := _slang(v, config):
        f.soft(0.3, "slang", "made of slang", *slang)
    if _says_nothing(v, p, row, kind, config):
        f.soft(0.3, "empty words", "says nothing")
    if (
        n >= 4
        and not code
        and v.prose.rstrip()[-1:].isalnum()
        and not v.word_set & config.lexicon("function_words").words
    ):
        f.soft(0.2, "key words", "a row of key words")
    _, most, source = band(prompt, completion, row, config)
    if n >= max(3 * most, 30):
        f.soft(0.1, "rambling", f"{n} words, three times what {source} call for")
    if truncated:
        f.soft(0.5, "truncated", "cut off before its end")


_FIRST = re.compile(r"[^\W_]")


def _begins_low(v: View) -> bool:
    """Most sentences begin with a small letter (one that begins with a digit says nothing)."""
    first = [v.raw[m.start()] for start, end in v.sentences if (m := _FIRST.search(v.prose, start, end))]
    low = sum(c.islower() for c in first)
    return low > 0 and low >= len(first) / 2


@lru_cache(maxsize=64)
def repetition(words: tuple[str, ...]) -> float:
    """Share of three-word runs that stood in the text before.

    >>> repetition(("a", "b", "c", "d"))
    0.0
    """
    runs = max(0, len(words) - 2)
    if not runs:
        return 0.0
    return 1 - len(set(zip(words, words[1:], words[2:], strict=False))) / runs


def copied(words: tuple[str, ...], source: tuple[str, ...]) -> float:
    """Share of three-word runs that the source has too."""
    if len(words) < 3 or len(source) < 3:
        return 0.0
    theirs = set(zip(source, source[1:], source[2:], strict=False))
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return sum(run in theirs for run in runs) / len(runs)


def _copies(v: View, p: View, row: Row, config: RewardConfig) -> bool:
    """Mostly the prompt's own words. An answer in a full sentence ("The largest planet is Jupiter") adds a new one."""
    share = copied(v.words, p.words)
    if share <= 0.6 or (contains_answer(v, row.gold) and not contains_answer(p, row.gold)):
        return False
    new = set(content_words(v, config)) - p.word_set
    return share > 0.85 or len(v.words) >= 30 or not new


def _same_word(v: View) -> tuple[int, int] | None:
    words = v.words
    for i in range(len(words) - 3):
        if words[i] == words[i + 1] == words[i + 2] == words[i + 3]:
            return v.tokens.raw_span(v.tokens.starts[i], v.tokens.ends[i + 3])
    return None


def _said_twice(v: View) -> tuple[int, int] | None:
    """A sentence of three words or more that stood before, or a reply that is one text and the same once more."""
    words, half = v.words, len(v.words) // 2
    if len(v.sentences) >= 2 and len(words) % 2 == 0 and words[:half] == words[half:]:
        return v.tokens.raw_span(v.tokens.starts[half], v.tokens.ends[-1])
    seen: Counter[str] = Counter()
    for start, end in v.sentences:
        sentence = " ".join(re.findall(r"\w+", v.prose[start:end]))
        if sentence.count(" ") >= 2:
            seen[sentence] += 1
            if seen[sentence] > 1:
                return start, end
    text = " ".join(v.norm.split())
    if len(text) > 20 and text[: len(text) // 2].strip() == text[len(text) // 2 :].strip():
        return len(v.raw) // 2, len(v.raw)
    return None


def _says_nothing(v: View, p: View, row: Row, kind: str, config: RewardConfig) -> bool:
    """No word that carries meaning, on a prompt whose row has no reference to tell by."""
    if kind in ABSTAIN_KINDS or kind == "defer" or row.gold:
        return False
    if kind in SOCIAL_KINDS and config.lexicon(f"social_{kind}").find(v):
        return False
    if row.reference or row.keywords or v.has_code or not v.words:
        return False
    empty = config.lexicon("generic").words | config.lexicon("hedges").words
    if kind in SOCIAL_KINDS:
        empty -= config.lexicon("social_words").words
    canned = [(hit.start, hit.end) for hit in candidates(v, config.compiled)]
    starts = zip(v.words, v.tokens.raw_starts(), strict=True)
    words = {word for word, at in starts if not any(start <= at < end for start, end in canned)}
    said = words & set(content_words(v, config)) - empty
    evades = config.lexicon("stalling").find(v) or config.lexicon("clueless").find(v)
    return len(v.words) >= 3 and (not said or (bool(evades) and len(said) < 3))


def _slang(v: View, config: RewardConfig) -> list[tuple[int, int]]:
    """Slang that makes up a third of the reply."""
    hits = config.lexicon("slang").find(v)
    return [(h.start, h.end) for h in hits] if len(hits) >= 4 and len(hits) > 0.3 * len(v.words) else []


def _non_latin(prose: str, raw: str) -> float:
    """Share of the letters outside code that belong to no Latin alphabet (a look-alike inside a Latin word is no
    other language)."""
    if raw.isascii():
        return 0.0
    letters = other = 0
    for shown, char in zip(prose, raw, strict=True):
        if char.isascii():
            letters += char.isalpha()
            continue
        if char.isalpha() and shown != " ":
            letters += 1
            other += _is_other(char)
    return other / letters if letters else 0.0


def _foreign(v: View, config: RewardConfig) -> bool:
    """A vote of stop words: more of them are Spanish, French, German, Italian, Portuguese or Dutch than English."""
    foreign, english = config.lexicon("foreign").words, config.lexicon("function_words").words
    theirs = sum(w in foreign for w in v.words)
    return theirs >= 2 and theirs > 0.15 * len(v.words) and theirs > 1.5 * sum(w in english for w in v.words)


_LATIN_CACHE: dict[str, bool] = {}


def _is_other(char: str) -> bool:
    known = _LATIN_CACHE.get(char)
    if known is None:
        name = unicodedata.name(char, "")
        known = not (
            "LATIN" in name
            or name.startswith(("MATHEMATICAL", "FULLWIDTH LATIN", "MODIFIER", "SCRIPT", "DOUBLE-STRUCK"))
        )
        if len(_LATIN_CACHE) < 20_000:
            _LATIN_CACHE[char] = known
    return known


_UNSPELT = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{6,}|q(?=[^u])|[jv][bcdfgjkmnpqstvwxz]|[xz][jqvkzgd]|qwe|sdf|dfg|fgh|ghj|hjk|zxc|xcv|cvb|vbn|lkj|kjh|jhg|hgf|gfd|fds"
)


_NO_VOWELS = {ord(c): None for c in "aeiouy"}


def _gibberish(v: View) -> float:
    """Share of words that no language would spell so; code aside."""
    words = [w for w in v.words if w.isascii() and w.isalpha()]
    if len(words) < 3:
        return 0.0
    return sum(_is_gibberish(w) for w in words) / len(words)


@lru_cache(maxsize=16384)
def _is_gibberish(word: str) -> bool:
    n = len(word)
    if n < 4:
        return False
    vowels = len(word) - len(word.translate(_NO_VOWELS))
    return vowels == 0 or n > 28 or vowels / n < 0.14 or bool(_UNSPELT.search(word))
