"""Type a prompt; a group of completions is sampled for it."""

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
from ada_tui.ui.text import one_line


class AskPrompt(ModalScreen[str]):
    """Dismisses with the prompt, "" for none."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("confirm")]

    def __init__(self, who: str) -> None:
        super().__init__()
        self._who = who

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = Content("Sample now")
            yield Static(f"Eight replies by {one_line(self._who, 60)}. What does the person say?", markup=False)
            yield Input(placeholder="Morning", id="prompt")
            yield Static("enter samples, esc goes back", classes="quiet", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or "Morning")

    def action_close(self) -> None:
        self.dismiss("")
