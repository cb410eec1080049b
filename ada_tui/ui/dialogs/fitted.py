"""What the picks say about the weights: old and new, their worth on held-out picks, and what no rule measures."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ada_tui.picks import Fit
from ada_tui.ui import actions
from ada_tui.ui.draw import bar, signed
from ada_tui.ui.text import crop, one_line
from rewards.config import RewardConfig

SHOWN = 6
"""Unexplained picks listed."""


class Fitted(ModalScreen[bool]):
    """Dismisses with True when the fitted weights are wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("fitted")]

    def __init__(self, fit: Fit, config: RewardConfig, prompts: dict[str, str]) -> None:
        """`prompts`: group id -> prompt, for the picks that no weighting explains."""
        super().__init__()
        self._fit = fit
        self._config = config
        self._prompts = prompts

    def compose(self) -> ComposeResult:
        fit = self._fit
        with VerticalScroll(classes="dialog wide", can_focus=False) as box:
            box.border_title = Content(f"Weights from {fit.picks} picks")
            yield Static(fit.words[:1].upper() + fit.words[1:] + ".", markup=False)
            yield Static("")
            for name, value in fit.weights.items():
                yield Static(self._row(name, value))
            if fit.unexplained:
                yield Static("")
                yield Static(
                    f"{len(fit.unexplained)} picks that no weighting explains: no rule measures why", markup=False
                )
                for group in fit.unexplained[:SHOWN]:
                    yield Static(Content(f"  {one_line(self._prompts.get(group, group), 70)}").stylize("$muted"))
            yield Static("enter takes these weights, esc leaves them as they are", classes="quiet", markup=False)

    def _row(self, name: str, value: float) -> Content:
        old = self._config.weights.get(name, 0.0)
        filled, rest = bar(value / max(1.0, *self._fit.weights.values()), 20)
        change = signed(value - old)
        return Content.assemble(
            (f"{crop(name, 14):14}", "$muted"), f"{old:5.2f} → ", (f"{value:5.2f}", "bold"), f" {change}  ",
            (filled, "$good"), (rest, "$track"),
        )  # fmt: skip

    def action_apply(self) -> None:
        self.dismiss(True)

    def action_close(self) -> None:
        self.dismiss(False)
