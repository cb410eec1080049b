"""Model and user text made safe to look at: control, bidi and zero-width characters become visible symbols.

Not here: markup (the UI never parses markup in such text) and scoring (`rewards/text.py`). Anybody may import it.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_NAMES = {"\u200b": "ZWSP", "\u200c": "ZWNJ", "\u200d": "ZWJ", "\u2060": "WJ", "\ufeff": "BOM", "\u00ad": "SHY"}
_ZWJ_BASE = frozenset({"So", "Sk", "Mn"})


def visible(text: str, *, newlines: str = "⏎", tabs: str = "→") -> str:
    """`text` on one line with every hidden character shown: ESC as ␛, U+202E as ⟨U+202E⟩, a newline as ⏎.

    A zero-width joiner inside an emoji sequence stays, since it is part of what the reader sees.

    >>> visible("a\\x1b[31mb\\nc")
    'a␛[31mb⏎c'
    """

    def symbol(match: re.Match[str]) -> str:
        char, at = match[0], match.start()
        code = ord(char)
        if char == "\u200d" and 0 < at < len(text) - 1 and unicodedata.category(text[at - 1]) in _ZWJ_BASE:
            return char
        if code < 0x20:
            return chr(0x2400 + code)
        if code == 0x7F:
            return "␡"
        return f"⟨{_NAMES.get(char, f'U+{code:04X}')}⟩"

    shown = _HIDDEN.sub(symbol, text)
    return shown.replace("\n", newlines).replace("\t", tabs)
