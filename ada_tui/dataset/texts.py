"""What can be wrong inside a text, and the same text without it: control characters, template tokens, mojibake,
placeholders.

Pure functions. Not here: turns and their order (`normalise.py`). Anybody may import it.
"""

from __future__ import annotations

import re

from ada_tui.dataset.assemble import Note

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)|[ -/]*[0-~])")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(
    r"<[|｜][A-Za-z][\w▁]{1,40}[|｜]>|<(?:pad|eos|bos|unk|start_of_turn|end_of_turn)>|\[PAD\]"
    r"|\[/?INST\]|<</?SYS>>|\A\s*<s>|</s>\s*\Z"
)
_PLACEHOLDER = re.compile(r"\{\{\s*[A-Za-z_][\w.\- ]{0,40}\s*\}\}")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_TAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_MOJIBAKE = re.compile(f"(?:[ÂÃÐÑ][{_TAIL}]|[âã][{_TAIL}][{_TAIL}]|ð[{_TAIL}][{_TAIL}][{_TAIL}])+")


def clean_line(line: bytes) -> bool:
    """Is every text in this line of JSON surely free of faults? The cheap test that spares most rows the dear one.

    Searching for one byte is much cheaper than for several, so that comes first.
    """
    if not line or not line.isascii() or b"\x7f" in line or b"<" in line:
        return False
    if b"\\" in line and b"\\u" in line:
        return False
    if line.count(b"[") > 1 and (b"[PAD]" in line or b"INST]" in line):
        return False
    return b"{{" not in line


def inspect(text: str) -> tuple[str, list[Note]]:
    """(the text with the certain repairs done, what was wrong with it).

    >>> inspect("It\\u00e2\\u20ac\\u2122s\\x07 fine<|im_end|>")[0]
    'It’s fine'
    """
    notes: list[Note] = []
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
        notes.append(("lone-surrogate", "half of a character pair stands alone in the text"))
    if _MOJIBAKE.search(text):
        repaired = _MOJIBAKE.sub(_decoded_again, text)
        if repaired != text:
            notes.append(("mojibake", f"the text was decoded wrongly ({_around(_MOJIBAKE, text)!r})"))
            text = repaired
    if "\ufffd" in text and not notes:
        notes.append(("mojibake", "a character was lost (U+FFFD) before this file was written"))
    if _ANSI.search(text) or _CONTROL.search(text):
        found = len(_ANSI.findall(text)) + len(_CONTROL.findall(_ANSI.sub("", text)))
        text = _CONTROL.sub("", _ANSI.sub("", text))
        notes.append(("control-characters", f"{found} control character{'s' * (found > 1)} or escape sequences"))
    if token := _TOKEN.search(text):
        notes.append(("special-token", f"{token[0].strip()!r} is a token of a chat template, not text"))
        text = _TOKEN.sub("", text)
    if "{{" in text and (match := _PLACEHOLDER.search(_CODE.sub("", text))):
        notes.append(("placeholder", f"the placeholder {match[0]!r} was never filled in"))
    return text, notes


def _around(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return text[max(0, match.start() - 6) : match.end() + 6] if match else ""


def _decoded_again(match: re.Match[str]) -> str:
    """UTF-8 that was read as Windows-1252 (or Latin-1), read again as UTF-8; unchanged when it is none."""
    try:
        return b"".join(_byte(char) for char in match[0]).decode("utf-8")
    except UnicodeDecodeError:
        return match[0]


def _byte(char: str) -> bytes:
    return bytes([ord(char)]) if ord(char) < 0x100 else char.encode("cp1252")
