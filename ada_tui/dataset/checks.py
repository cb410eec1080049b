"""Go through chat files once: every usable chat, and all that is wrong, with file, line, turn, code and sentence.

`scan` streams, so that converting and fixing take the same path as checking; `check` runs it to the end. One bad record
never stops the rest. Not here: repairs inside a chat (`normalise.py`). Anybody may import it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ada_tui.dataset.formats import Chat, Unusable, to_chat, unwrap
from ada_tui.dataset.near import copies
from ada_tui.dataset.normalise import Normal, normalise
from ada_tui.dataset.problems import Problem
from ada_tui.dataset.read import records
from ada_tui.dataset.texts import clean_line
from rewards.types import Row

NEAR_LIMIT = 100_000
"""Chats up to which near-duplicates are looked for."""
KEPT_PER_CODE = 1000
"""Problems of one code that are listed when they cost no row; the rest is counted. Skipped rows are all listed."""
FILLED = 0.4
"""A reply that the filler rule scores this low or lower is called a bad reference."""


class Checked(NamedTuple):
    """One usable chat and where it stands."""

    file: str
    line: int
    chat: Chat
    normal: Normal
    id: str
    """The id it brought, made unique; "" when it brought none."""
    changes: tuple[tuple[int | None, str, str], ...]
    """(turn, code, sentence) of everything that was put right."""


@dataclass(slots=True)
class Report:
    """What is in the files and what is wrong with them."""

    rows: int = 0
    """Records met."""
    ok: int = 0
    """Records that give a usable chat."""
    formats: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Problems by code, those not listed included."""
    with_reference: int = 0
    """Usable chats that have a reply."""
    systems: Counter[str] = field(default_factory=Counter)
    """Usable chats by the system prompt they bring (the first 100 different ones)."""
    near_checked: bool = True
    """False when there were too many chats to look for near-duplicates."""

    @property
    def skipped(self) -> int:
        """Records that give none."""
        return self.rows - self.ok

    def add(self, problem: Problem) -> None:
        """Count a problem and list it, unless a great many like it are listed already."""
        self.counts[problem.code] += 1
        if problem.skips or self.counts[problem.code] <= KEPT_PER_CODE:
            self.problems.append(problem)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "ok": self.ok,
            "skipped": self.skipped,
            "formats": dict(self.formats.most_common()),
            "counts": dict(self.counts.most_common()),
            "with_reference": self.with_reference,
            "system_prompts": len(self.systems),
            "near_duplicates_checked": self.near_checked,
            "problems": [problem.to_json() for problem in self.problems],
        }


def check(paths: Iterable[Path | str], report: Report | None = None) -> Report:
    """Everything about the files. Never raises for what they hold."""
    report = report or Report()
    for _ in scan(paths, report):
        pass
    return report


def scan(paths: Iterable[Path | str], report: Report) -> Iterator[Checked]:
    """Every usable chat of the files, in order; `report` is filled on the way and complete when the iterator ends."""
    pass_ = _Pass(report)
    for path in paths:
        yield from pass_.file(Path(path))
    pass_.finish()


class _Pass:
    """What must be remembered from chat to chat: contents, ids, system prompts, prompts."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.seen: dict[int, int] = {}
        self.ids: dict[str, int] = {}
        self.id_kind: type | None = None
        self.files: list[str] = []
        self.place = 0
        self.prompts: list[tuple[str, int, str]] = []
        self.system_at: tuple[str, int] | None = None

    def file(self, path: Path) -> Iterator[Checked]:
        name, report = str(path), self.report
        self.place = len(self.files) << 40
        self.files.append(name)
        for item in records(path):
            if isinstance(item, Problem):
                report.rows += item.line > 0
                report.add(item)
                continue
            line, value, raw, notes = item
            waiting = [value]
            while waiting:
                one = waiting.pop()
                report.rows += 1
                try:
                    checked = self.chat(name, line, one, raw, notes)
                except Unusable as error:
                    inner = unwrap(one) if error.code == "unknown-format" else None
                    if inner is None:
                        report.add(Problem(name, line, error.turn, error.code, error.message))
                    else:
                        report.rows -= 1
                        waiting += reversed(inner)
                    continue
                report.ok += 1
                yield checked

    def chat(self, name: str, line: int, value: Any, raw: bytes, notes: tuple[tuple[str, str], ...]) -> Checked:
        """Raises Unusable."""
        chat = to_chat(value)
        normal = normalise(chat, look_inside=not clean_line(raw))
        self._once(line, normal)
        report = self.report
        report.formats[chat.format] += 1
        report.with_reference += normal.complete
        changes = normal.notes
        if notes:
            changes[:0] = [(None, *note) for note in notes]
        if chat.columns:
            changes += _columns(chat)
        identity = self._id(chat, line, changes) if chat.id is not None else ""
        if normal.system is not None:
            self._system(name, line, normal.system)
        if normal.complete and (filler := filler_of(normal.turns[-2].content, normal.turns[-1].content)):
            changes.append((None, "filler-reply", filler))
        for turn, code, message in changes:
            report.add(Problem(name, line, turn, code, message))
        if report.near_checked:
            said = "\n".join([turn.content for turn in normal.turns if turn.role == "user"])
            self.prompts.append((name, line, said))
            if len(self.prompts) > NEAR_LIMIT:
                report.near_checked, self.prompts = False, []
        return Checked(name, line, chat, normal, identity, tuple(changes))

    def _once(self, line: int, normal: Normal) -> None:
        key = hash((normal.system, *[turn.content for turn in normal.turns]))
        before = len(self.seen)
        first = self.seen.setdefault(key, self.place | line)
        if len(self.seen) == before:
            raise Unusable("duplicate", f"the same chat stands {self._where(first)} already")

    def _id(self, chat: Chat, line: int, changes: list[tuple[int | None, str, str]]) -> str:
        if isinstance(chat.id, bool) or not isinstance(chat.id, str | int):
            changes.append((None, "mixed-id-types", f"the id is a {type(chat.id).__name__}, not text or a number"))
            return ""
        kind = type(chat.id)
        if self.id_kind is None:
            self.id_kind = kind
        elif kind is not self.id_kind:
            changes.append((None, "mixed-id-types", "some ids are numbers, others text"))
        identity = str(chat.id).strip()
        if not identity:
            return ""
        before = len(self.ids)
        first = self.ids.setdefault(identity, self.place | line)
        if len(self.ids) > before:
            return identity
        changes.append((None, "duplicate-id", f"the id {identity!r:.60} stands {self._where(first)} already"))
        return ""

    def _where(self, place: int) -> str:
        """An earlier chat in words; `place` = number of the file << 40 | line."""
        line, file = place & ((1 << 40) - 1), place >> 40
        return f"on line {line}" if file == self.place >> 40 else f"on line {line} of {self.files[file]}"

    def _system(self, name: str, line: int, system: str) -> None:
        systems = self.report.systems
        if system in systems or len(systems) < 100:
            systems[system] += 1
            if len(systems) == 2 and self.system_at is None:
                self.system_at = (name, line)

    def finish(self) -> None:
        """What can only be said once everything was seen."""
        report = self.report
        if self.system_at is not None:
            text = f"{len(report.systems)} different system prompts occur; here is the second"
            report.add(Problem(*self.system_at, None, "several-systems", text))
        if report.near_checked:
            for later, first in copies([prompt for _, _, prompt in self.prompts]):
                name, line, prompt = self.prompts[later]
                where = self.prompts[first]
                if prompt == where[2]:
                    continue  # another answer to the same question: no near-duplicate, one topic
                file = "" if where[0] == name else f" of {where[0]}"
                text = f"almost the same prompt stands on line {where[1]}{file}"
                report.add(Problem(name, line, None, "near-duplicate", text))
        report.problems.sort(key=lambda problem: problem.line == 0)


def _columns(chat: Chat) -> list[tuple[int | None, str, str]]:
    """Take columns with impossible values out of the chat, and say so: a stray column must not cost the row."""
    found: list[tuple[int | None, str, str]] = []
    for name, value in list(chat.columns.items()):
        try:
            Row.from_columns({name: value})
        except ValueError as error:
            del chat.columns[name]
            found.append((None, "bad-column", str(error)[:200]))
    return found


OPENING, CLOSING = 60, 120
"""Characters at both ends of a reply in which filler is looked for: it opens and closes replies."""
_FILLER = (
    " question", "as an ai", "language model", "happy to", "glad to", "let me know", "feel free", "hope th", "assist",
    "certainly", "absolutely", "of course", "important to", "hesitate", "anything else",
)  # fmt: skip
"""A reply without any of these is not worth the rule's time."""


def filler_of(prompt: str, reply: str) -> str | None:
    """A sentence about the filler in a reply that is bad enough to be a bad reference, or None."""
    lower = f"{reply[:OPENING]} {reply[-CLOSING:]}".lower()
    for sign in _FILLER:
        if sign in lower:
            break
    else:
        return None
    from rewards import RewardConfig
    from rewards.filler import filler

    result = filler(prompt, reply, Row(), RewardConfig.default())
    if result.score is None or result.score > FILLED or not result.spans:
        return None
    return f"the reply is filler ({', '.join(repr(span.text) for span in result.spans[:3])})"
