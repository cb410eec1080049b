"""Hidden characters are shown, never sent to the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ada_tui.text import visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("\x00\x07\x7f", "␀␇␡"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("Great\u200b question", "Great⟨ZWSP⟩ question"),
        ("one\ntwo\tthree", "one⏎two→three"),
        ("\ud800", "⟨U+D800⟩"),
        ("👩\u200d🚀 日本", "👩\u200d🚀 日本"),
        ("a\u200db", "a⟨ZWJ⟩b"),
        ("[/red] [0]", "[/red] [0]"),
    ],
)
def test_visible(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@given(st.text())
def test_nothing_that_moves_the_cursor_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in shown)
    shown.encode()
