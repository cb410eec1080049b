"""How a text is looked at: normalised, masked, cut into words and sentences, with every offset still valid in the raw
text.

It is not a tokenizer for models and judges nothing. Every rule of `rewards` reads texts through `view`; it imports only
the standard library.

Three views of one text:

* `norm`: lower case, curly quotes, dashes, odd spaces and look-alike letters as one ASCII character each. Same length
as
  the raw text, so offsets need no translation.
* `prose`: `norm` with code blanked by spaces; `plain`: quotations blanked too. Still the same length.
* `Tokens`: the words of a view without zero-width characters and with split letters ("g.r.e.a.t") joined; each word
  knows where it stands in the raw text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

CAP = 4000
"""Characters of a completion that are scored; the rest is cut off, so that no input is slow."""

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_INLINE = re.compile(r"`[^`\n]+`")
_QUOTE = re.compile(r'(?<![a-z0-9])"[^"\n]{1,200}"')
_ZERO_WIDTH = re.compile("[\u00ad\u0300-\u036f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_SPLIT = re.compile(r"(?<![^\W_])[a-z]([.\-_*|/~+,:;' ])[a-z](?:\1[a-z]){2,}(?![^\W_])")
_INNER = re.compile(r"(?<=[a-z])[.\-_*|/~^+,:;](?=[a-z])")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_BREAK = re.compile(r"(?<![.!?])[.!?]+[\"')\]]*(?=\s|$)|\n\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:mr|mrs|ms|dr|st|vs|etc|e\.g|i\.e|approx|no|fig)|\b[a-z])$")
_EMPHASIS = {ord(c): " " for c in "*_~"}


def _look_alikes() -> dict[int, str]:
    """One ASCII character for every character that is drawn like it."""
    table: dict[int, str] = {}
    ranges = ((0xA0, 0x250), (0x1E00, 0x1F00), (0x2100, 0x2150), (0x2460, 0x24EA), (0x1D400, 0x1D800), (0xFF01, 0xFF5F))
    for low, high in ranges:
        for code in range(low, high):
            base = unicodedata.normalize("NFKD", chr(code))[:1]
            if base.isascii() and base.isalnum():
                table[code] = base
            elif 0xFF01 <= code < 0xFF5F:
                table[code] = chr(code - 0xFEE0)
    pairs = {
        "'": "\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\u02b9\uff07",
        '"': "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033",
        "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", ".": "\u2026\u2024\u00b7\u2022\u2219\u30fb",
        " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t",
        "a": "\u0430\u03b1\u0251", "b": "\u0432\u042c\u044c\u03b2", "c": "\u0441\u03f2", "d": "\u0501",
        "e": "\u0435\u03b5\u0454",
        "h": "\u04bb\u043d\u0570", "i": "\u0456\u03b9\u0131\u0142", "j": "\u0458\u03f3", "k": "\u043a\u03ba",
        "l": "\u04cf", "m": "\u043c",
        "n": "\u0578\u03b7", "o": "\u043e\u03bf\u0585\u00f8", "p": "\u0440\u03c1", "q": "\u051b", "r": "\u0433",
        "s": "\u0455",
        "t": "\u0442\u03c4", "u": "\u03c5\u057d", "v": "\u03bd\u0475", "w": "\u0461\u051d\u03c9",
        "x": "\u0445\u03c7", "y": "\u0443\u03b3\u04af",
        "A": "\u0410\u0391", "B": "\u0412\u0392", "C": "\u0421\u03f9", "E": "\u0415\u0395", "G": "\u050c",
        "H": "\u041d\u0397",
        "I": "\u0406\u0399\u0130\u04c0", "J": "\u0408", "K": "\u041a\u039a", "M": "\u041c\u039c", "N": "\u039d",
        "O": "\u041e\u039f\u00d8",
        "P": "\u0420\u03a1", "S": "\u0405", "T": "\u0422\u03a4", "V": "\u0474", "W": "\u051c", "X": "\u0425\u03a7",
        "Y": "\u0423\u03a5\u04ae",
        "Z": "\u0396",
    }  # fmt: skip
    for ascii_char, lookalikes in pairs.items():
        for char in lookalikes:
            table[ord(char)] = ascii_char
    return table


LOOK_ALIKES = _look_alikes()


def normalise(text: str) -> str:
    """The text in lower case with typographic and look-alike characters replaced; never longer or shorter.

    >>> normalise("It’s  Grеat")
    "it's  great"
    """
    if text.isascii():
        return text.lower().replace("\t", " ")
    text = text.translate(LOOK_ALIKES)
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def quantise(score: float) -> float:
    """The nearest multiple of 0.05 in 0..1: ties between completions become exact, noise below it disappears.

    >>> quantise(0.4066), quantise(1.3)
    (0.4, 1.0)
    """
    return min(20, max(0, round(score * 20))) / 20


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda m: " " * (m.end() - m.start()), text)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The words of one view. `words` have no apostrophes ("its", "dont"), so that leaving one out hides nothing."""

    text: str
    """The squeezed text that the words were found in."""
    words: tuple[str, ...]
    starts: tuple[int, ...]
    """Offsets in `text`; `raw_span` translates them."""
    ends: tuple[int, ...]
    index: tuple[int, ...] | None
    """Position in the raw text of each character of `text`; None = the same."""

    positions: Mapping[str, list[int]]
    """Numbers of the words that are equal, per word."""

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` stands in the raw text."""
        if self.index is None or start >= end:
            return start, end
        return self.index[start], self.index[end - 1] + 1

    def raw_starts(self) -> Sequence[int]:
        """Where each word begins in the raw text."""
        return self.starts if self.index is None else [self.index[start] for start in self.starts]


def _tokens(text: str, index: tuple[int, ...] | None) -> Tokens:
    words, starts, ends = [], [], []
    for match in _WORD.finditer(text):
        word = match.group()
        words.append(word.replace("'", "") if "'" in word else word)
        starts.append(match.start())
        ends.append(match.end())
    positions: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        if word in positions:
            positions[word].append(at)
        else:
            positions[word] = [at]
    return Tokens(text, tuple(words), tuple(starts), tuple(ends), index, positions)


def _drop(text: str, index: tuple[int, ...] | None, gone: set[int]) -> tuple[str, tuple[int, ...] | None]:
    if not gone:
        return text, index
    keep = [i for i in range(len(text)) if i not in gone]
    joined = "".join([text[i] for i in keep])
    return joined, tuple(keep) if index is None else tuple([index[i] for i in keep])


class View:
    """One text, looked at in every way the rules need. Made by `view`, which remembers the last few hundred."""

    def __init__(self, raw: str) -> None:
        self.raw = raw[:CAP]
        self.norm = normalise(self.raw)
        self._memo: dict[Any, Any] = {}

    @cached_property
    def prose(self) -> str:
        """`norm` with code blanked."""
        if "`" not in self.norm:
            return self.norm
        return _blank(_INLINE, _blank(_FENCE, self.norm))

    @cached_property
    def plain(self) -> str:
        """`prose` with quotations of up to 200 characters blanked."""
        return _blank(_QUOTE, self.prose) if '"' in self.prose else self.prose

    @cached_property
    def has_code_block(self) -> bool:
        return "```" in self.norm

    @cached_property
    def has_code(self) -> bool:
        return self.prose is not self.norm and self.prose != self.norm

    @cached_property
    def obfuscated(self) -> tuple[tuple[int, int], ...]:
        """Raw spans of letters that were hidden: zero-width inside a word, mixed alphabets, letters split by
        punctuation."""
        return tuple(_obfuscated(self))

    def _squeeze(self, text: str) -> Tokens:
        text = text.translate(_EMPHASIS) if not _EMPHASIS_FREE(text) else text
        index: tuple[int, ...] | None = None
        if not text.isascii():
            text, index = _drop(text, index, {m.start() for m in _ZERO_WIDTH.finditer(text)})
        gone: set[int] = set()
        for match in _SPLIT.finditer(text):
            gone.update(range(match.start() + 1, match.end(), 2))
        text, index = _drop(text, index, gone)
        return _tokens(text, index)

    @cached_property
    def tokens(self) -> Tokens:
        """Words outside code: what length and word shares count."""
        return self._squeeze(self.prose)

    @cached_property
    def plain_tokens(self) -> Tokens:
        """Words outside code and quotations: what phrases are matched against."""
        return self.tokens if self.plain is self.prose else self._squeeze(self.plain)

    @cached_property
    def joined_tokens(self) -> Tokens | None:
        """Like `plain_tokens` with punctuation inside words dropped ("gr.eat ques-tion"); None when there is none."""
        plain = self.plain_tokens
        gone = {m.start() for m in _INNER.finditer(plain.text)}
        if not gone:
            return None
        return _tokens(*_drop(plain.text, plain.index, gone))

    @property
    def words(self) -> tuple[str, ...]:
        return self.tokens.words

    @cached_property
    def word_set(self) -> frozenset[str]:
        return frozenset(self.tokens.words)

    @cached_property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        """Spans of the sentences and lines outside code, in raw offsets; each holds a word."""
        out: list[tuple[int, int]] = []
        text, start = self.prose, 0
        for match in _BREAK.finditer(text):
            at = match.start()
            if text[at] == "." and match.end() - at == 1 and _ABBREVIATION.search(text, max(start, at - 8), at):
                continue
            _add_sentence(out, text, start, match.end())
            start = match.end()
        _add_sentence(out, text, start, len(text))
        return tuple(out)

    def sentence_at(self, offset: int) -> int:
        """Number of the sentence that holds a raw offset."""
        return max(0, bisect_right(self.sentence_starts, offset) - 1)

    @cached_property
    def sentence_starts(self) -> tuple[int, ...]:
        return tuple(start for start, _ in self.sentences)

    def memo(self, key: Any, make: Any) -> Any:
        """The value of `make()`, computed once per text and key (compiled lists are the keys)."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]


def _EMPHASIS_FREE(text: str) -> bool:
    return "*" not in text and "_" not in text and "~" not in text


def _add_sentence(out: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    match = _WORD.search(text, start, end)
    if match:
        while start < match.start() and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        out.append((start, end))


_MIXED = re.compile(r"[^\W\d_]+")
_HIDDEN = re.compile("(?<=[^\\W\\d_])[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]+(?=[^\\W\\d_])")


def _obfuscated(v: View) -> list[tuple[int, int]]:
    spans = [m.span() for m in _SPLIT.finditer(v.prose) if m.group(1) != "'"]
    if v.raw.isascii():
        return spans
    spans += [m.span() for m in _HIDDEN.finditer(v.raw)]
    for match in _MIXED.finditer(v.raw):
        word = match.group()
        if word.isascii():
            continue
        latin = sum(char.isascii() for char in word)
        odd = sum(
            not c.isascii() and ord(c) > 0x24F and ord(c) in LOOK_ALIKES and not 0x1E00 <= ord(c) < 0x1F00 for c in word
        )
        if odd and (latin or any(0x1D400 <= ord(c) < 0x1D800 or 0xFF01 <= ord(c) < 0xFF5F for c in word)):
            spans.append(match.span())
    return sorted(spans)


@lru_cache(maxsize=512)
def view(text: str) -> View:
    """The view of a text; the last 512 are remembered, so that every rule shares one.

    >>> view("Well, `x = 1` is code.").words
    ('well', 'is', 'code')
    """
    return View(text)
