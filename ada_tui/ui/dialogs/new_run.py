"""Start a run: the few figures that matter, their meaning from the settings' own documentation, the batch as a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ada_tui.errors import BadInput
from ada_tui.settings import Settings
from ada_tui.ui import actions
from ada_tui.ui.text import reveal
from ada_tui.workspace import Workspace

FIELDS = {
    "sft": (("sft", "epochs"), ("sft", "rows_per_step"), ("sft", "learning_rate"), ("lora", "rank"), ("lora", "alpha")),
    "grpo": (("grpo", "steps"), ("grpo", "group"), ("grpo", "prompts_per_step"), ("grpo", "learning_rate"),
             ("grpo", "beta"), ("grpo", "max_completion")),
}  # fmt: skip
"""The fields of the form per kind of run; everything else is as ada.toml says."""


@dataclass(frozen=True, slots=True)
class RunWanted:
    """What the form was filled with."""

    kind: str
    settings: Settings


class NewRun(ModalScreen[RunWanted | None]):
    """Dismisses with what to start, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("confirm")]

    def __init__(self, workspace: Workspace, settings: Settings, kind: str, start: str) -> None:
        super().__init__()
        self._workspace = workspace
        self._settings = settings
        self._kind = kind
        self._start = start
        """Where GRPO starts, in words."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide") as box:
            box.border_title = Content(f"New {self._kind.upper()} run")
            yield Static(reveal(self._start).text, markup=False, id="start")
            for section, name in FIELDS[self._kind]:
                with Horizontal(classes="field"):
                    yield Static(name.replace("_", " "), classes="label", markup=False)
                    value = getattr(getattr(self._settings, section), name)
                    yield Input(str(value), id=f"{section}-{name}", compact=True)
            yield Static("", id="sum", markup=False)
            yield Static("", id="meaning", classes="quiet", markup=False)
            yield Static("", id="wrong", markup=False)
            yield Static("↑ ↓ another field, enter starts, esc goes back", classes="quiet", markup=False)

    def on_mount(self) -> None:
        self._show_sum()

    def on_key(self, event: Key) -> None:
        if event.key in ("up", "down"):
            event.stop()
            if event.key == "up":
                self.focus_previous(Input)
            else:
                self.focus_next(Input)

    def on_descendant_focus(self) -> None:
        focused = self.focused
        if isinstance(focused, Input) and focused.id:
            section, _, name = focused.id.partition("-")
            field = type(getattr(self._settings, section)).model_fields[name]
            self.query_one("#meaning", Static).update(field.description or "")

    @on(Input.Changed)
    def _show_sum(self) -> None:
        wrong, line = self.query_one("#wrong", Static), self.query_one("#sum", Static)
        try:
            settings = self._filled()
        except BadInput as error:
            wrong.update(_short(error))
            return
        wrong.update("")
        if self._kind == "grpo":
            grpo = settings.grpo
            whole = grpo.group * grpo.prompts_per_step
            line.update(f"{grpo.prompts_per_step} prompts × {grpo.group} completions = {whole} completions a step")
        else:
            line.update(f"{settings.sft.rows_per_step} chats a step, {settings.sft.epochs:g} times over all of them")

    def _filled(self) -> Settings:
        """The settings with what the form says. Raises BadInput."""
        values: dict[str, dict[str, object]] = {}
        for section, name in FIELDS[self._kind]:
            values.setdefault(section, {})[name] = self.query_one(f"#{section}-{name}", Input).value.strip()
        return self._workspace.settings(_merged(self._settings, values))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        try:
            self.dismiss(RunWanted(self._kind, self._filled()))
        except BadInput as error:
            self.query_one("#wrong", Static).update(_short(error))

    def action_close(self) -> None:
        self.dismiss(None)


def _short(error: BadInput) -> str:
    """The message without the file it comes from: the form is on the screen."""
    return reveal(str(error).partition(": ")[2]).text


def _merged(settings: Settings, values: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    base: dict[str, dict[str, Any]] = settings.model_dump()
    return {section: {**base[section], **fields} for section, fields in values.items()}
