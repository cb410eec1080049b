"""A question with a few answers, one key each. Escape answers nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ada_tui.ui import actions
from ada_tui.ui.text import reveal


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the key that gives it, what it means."""

    key: str
    words: str


class Choice(ModalScreen[str]):
    """Dismisses with the key of the answer, "" for none."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("confirm")]

    def __init__(self, title: str, words: str, answers: list[Answer]) -> None:
        super().__init__()
        self._title = title
        self._words = words
        self._answers = answers

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Content(reveal(self._title).text)
            yield Static(reveal(self._words).text, markup=False)
            yield Static("")
            for answer in [*self._answers, Answer("esc", "back, change nothing")]:
                yield Static(Content.assemble((f"{answer.key:>4}  ", "$accent"), answer.words))

    def on_key(self, event: events.Key) -> None:
        if any(event.key == answer.key for answer in self._answers):
            event.stop()
            self.dismiss(event.key)

    def action_close(self) -> None:
        self.dismiss("")
