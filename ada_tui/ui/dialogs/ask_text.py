"""Ask for one line of text: a prompt to sample, a comment, words to look for."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ada_tui.ui import actions
from ada_tui.ui.text import reveal


class AskText(ModalScreen[str | None]):
    """Dismisses with the text (maybe empty), None when the person went back."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("confirm")]

    def __init__(self, title: str, question: str, *, example: str = "", value: str = "") -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._example = example
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Content(reveal(self._title).text)
            yield Static(reveal(self._question).text, markup=False)
            yield Input(self._value, placeholder=self._example)
            yield Static("enter takes it, esc goes back", classes="quiet", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_close(self) -> None:
        self.dismiss(None)
