"""Everything that can be wrong with a chat file: one code each, whether it costs the row, and what is done about it.

Plain data, no logic. Anybody may import it. docs/data.md holds the same table; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Code(NamedTuple):
    """What a problem code means."""

    skips: bool
    """The record gives no row."""
    remedy: str
    """What is done about it, or what the person can do."""


CODES: dict[str, Code] = {
    # the file
    "missing-file": Code(True, "check the path"),
    "directory": Code(True, "name the files in it"),
    "unreadable-file": Code(True, "check the permissions"),
    "empty-file": Code(True, "export the chats again"),
    "binary-file": Code(True, "export the chats as JSONL or Parquet"),
    "broken-file": Code(True, "what could be read before the damage is kept"),
    # the record
    "broken-json": Code(True, "correct the line"),
    "cut-line": Code(True, "the export stopped here: export again"),
    "long-line": Code(True, "split the file into one chat a line"),
    "lenient-json": Code(False, "read all the same; --fix writes valid JSON"),
    "glued-records": Code(False, "read as separate chats; --fix puts each on its line"),
    "not-utf8": Code(False, "read as Windows-1252; --fix writes UTF-8"),
    "not-an-object": Code(True, "put a chat on the line"),
    "unknown-format": Code(True, "rename the fields to one of the known formats"),
    "not-a-list": Code(True, "make it a list of turns"),
    "bad-column": Code(False, "the column is left out; correct its value"),
    "mixed-id-types": Code(False, "ids are compared as text"),
    "duplicate-id": Code(False, "the later chat gets another id"),
    "duplicate": Code(True, "the first one is kept"),
    "near-duplicate": Code(False, "both are kept, on the same side of the split"),
    "over-long": Code(False, "cut by SFT at sft.max_length; shorten it"),
    "several-systems": Code(False, "training and deployment must see the same system prompt: settle on one"),
    # its turns
    "no-turns": Code(True, "put turns into the chat"),
    "bad-turn": Code(True, "give the turn a role and a text"),
    "unknown-role": Code(True, "use system, user, assistant or tool"),
    "null-content": Code(True, "write the text"),
    "empty-content": Code(True, "write the text"),
    "bad-content": Code(True, "make it text"),
    "not-text": Code(True, "leave out chats about images or sound"),
    "only-system": Code(True, "add a user turn and a reply"),
    "no-user": Code(True, "add what the reply answers"),
    "no-reply": Code(True, "write the reply, or give it as a prompt without one"),
    "unanswered": Code(False, "the last user turn is left out"),
    "no-reference": Code(False, "good for GRPO, not for SFT; substance cannot be judged"),
    "not-alternating": Code(False, "turns of one role in a row are joined"),
    "assistant-first": Code(False, "the opening assistant turn is left out"),
    "system-misplaced": Code(False, "the first system turn is taken, wherever it stands"),
    "system-twice": Code(False, "the first system turn is kept"),
    "tool-turns": Code(False, "tool turns are left out"),
    # their text
    "placeholder": Code(False, "fill it in: the model learns to say it"),
    "pre-templated": Code(False, "parsed back into turns, so that it is not templated twice"),
    "special-token": Code(False, "the tokens are taken out"),
    "control-characters": Code(False, "they are taken out"),
    "lone-surrogate": Code(False, "replaced by U+FFFD"),
    "mojibake": Code(False, "decoded again where that is certain; otherwise correct it"),
    "filler-reply": Code(False, "a bad reference: rewrite it, or the model learns the filler"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    file: str
    line: int
    """1-based; in Parquet the row; 0 = the whole file."""
    turn: int | None
    """1-based within the chat; None = the whole record."""
    code: str
    message: str
    """One sentence."""

    @property
    def skips(self) -> bool:
        """The record gives no row."""
        return CODES[self.code].skips

    def to_json(self) -> dict[str, str | int | None]:
        return {"file": self.file, "line": self.line, "turn": self.turn, "code": self.code, "message": self.message}

    def __str__(self) -> str:
        turn = f", turn {self.turn}" if self.turn else ""
        return f"{self.file}:{self.line}{turn}: {self.message} [{self.code}]"
