"""The weights: one row per reward and one for the guard, turned by keys; what each turn changes stands below them."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ada_tui.ranking import Summary
from ada_tui.ui import actions
from ada_tui.ui.draw import Line
from ada_tui.ui.text import crop
from ada_tui.ui.theme import Palette, palette
from rewards import combine
from rewards.config import RewardConfig

MOST = 10.0
"""A weight's upper end in the panel: only ratios matter, so more would say nothing new."""


class WeightsPanel(Widget, can_focus=True):
    """Row: name, weight, focus multiplier on the present kind, share of the total, mean effective pull as a bar."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("weights")]
    at: reactive[int] = reactive(0)
    """The selected weight."""

    class Turned(Message):
        """The person turned a weight: `config` is what they want now."""

        def __init__(self, config: RewardConfig, name: str) -> None:
            super().__init__()
            self.config = config
            self.name = name

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = " Weights w "
        self.config = RewardConfig()
        self.reference = self.config
        self.summary = Summary()
        self._kind = ("", False)

    @property
    def names(self) -> list[str]:
        """The rows: rewards in their order, the guard last."""
        return [*combine.reward_names(self.config), "guard"]

    @property
    def name_at(self) -> str:
        return self.names[self.at]

    def show(self, config: RewardConfig, reference: RewardConfig) -> None:
        """Show `config`; weights that differ from `reference` are marked."""
        self.config, self.reference = config, reference
        self.refresh()

    def show_kind(self, kind: str, has_gold: bool) -> None:
        """Focus multipliers and shares are those of this kind of prompt."""
        self._kind = (kind, has_gold)
        self.refresh()

    def show_summary(self, summary: Summary) -> None:
        self.summary = summary
        self.refresh()

    # -- drawing

    def render_line(self, y: int) -> Strip:
        width, colours = self.size.width, palette(self.app.current_theme)
        names = self.names
        if not self.config.weights:  # not read yet: the first picture does not wait for the phrase lists
            return Strip.blank(width, colours.paper)
        if y < len(names):
            return self._row(names[y], y == self.at, width, colours)
        extra = y - len(names)
        if extra == 0:
            return self._changes(width, colours)
        if extra == 1:
            return self._flat(width, colours)
        return Strip.blank(width, colours.paper)

    def _row(self, name: str, selected: bool, width: int, colours: Palette) -> Strip:
        config, kind = self.config, self._kind
        weight, edited = config.weights.get(name, 0.0), self._edited(name)
        line = Line((colours.lifted if selected else colours.paper) + colours.ink)
        line.add("▌" if selected else " ", colours.accent if self.has_focus else colours.muted)
        line.add(f"{crop(name, 11):11}", None if weight else colours.muted)
        line.add(f"{weight:5.2f}", colours.accent + colours.bold if edited else None if weight else colours.muted)
        line.add("*" if edited else " ", colours.accent)
        if name == "guard":
            return line.add(" as is", colours.muted).strip(width)
        multiplier = self._multiplier(name)
        if width >= 30:
            line.add(f"×{multiplier:g}".rjust(3) if multiplier != 1 else "   ", colours.muted)
        share = combine.shares(config, *kind).get(name, 0.0) if kind[0] else 0.0
        line.add(f"{share:5.0%} " if kind[0] else "      ", None if share else colours.muted)
        whole = sum(self.summary.pull.values())
        pull = self.summary.pull.get(name, 0.0) / whole if whole else 0.0
        return line.bar(pull, max(1, width - line.width - 1), colours.good, colours.faint).strip(width)

    def _multiplier(self, name: str) -> float:
        kind, has_gold = self._kind
        table = dict(combine.weights_for(self.config, kind, has_gold))
        weight = self.config.weights.get(name, 0.0)
        return table.get(name, weight) / weight if weight else 1.0

    def _edited(self, name: str) -> bool:
        return self.config.weights.get(name) != self.reference.weights.get(name)

    def _changes(self, width: int, colours: Palette) -> Strip:
        line, summary = Line(colours.paper + colours.muted), self.summary
        if not summary.groups:
            return line.add(" no groups yet").strip(width)
        changed = summary.winners_changed
        line.add(f" ◆ {changed}", colours.accent if changed else None).add(f" of {summary.groups} winners change")
        return line.strip(width)

    def _flat(self, width: int, colours: Palette) -> Strip:
        line, summary = Line(colours.paper + colours.muted), self.summary
        if not summary.groups:
            return line.strip(width)
        line.add(f" = {summary.dead} flat")
        if summary.came_alive:
            line.add(f"  {summary.came_alive} came alive", colours.good)
        if summary.went_dead:
            line.add(f"  {summary.went_dead} went flat", colours.bad)
        return line.strip(width)

    # -- turning

    def validate_at(self, value: int) -> int:
        return max(0, min(value, len(self.names) - 1))

    def _turn_to(self, value: float) -> None:
        value = round(max(0.0, min(MOST, value)), 2)
        if value != self.config.weights.get(self.name_at, 0.0):
            self.config = self.config.with_weight(self.name_at, value)
            self.refresh()
            self.post_message(self.Turned(self.config, self.name_at))

    def _turn_by(self, step: float) -> None:
        self._turn_to(self.config.weights.get(self.name_at, 0.0) + step)

    def action_up(self) -> None:
        self.at -= 1

    def action_down(self) -> None:
        self.at += 1

    def action_less(self) -> None:
        self._turn_by(-0.1)

    def action_more(self) -> None:
        self._turn_by(0.1)

    def action_finer_less(self) -> None:
        self._turn_by(-0.01)

    def action_finer_more(self) -> None:
        self._turn_by(0.01)

    def action_digit(self, digit: str) -> None:
        self._turn_to(float(digit))

    def action_mute(self) -> None:
        self._turn_to(0.0)

    def action_restore(self) -> None:
        self._turn_to(self.reference.weights.get(self.name_at, 0.0))

    def on_click(self, event: events.Click) -> None:
        if event.y < len(self.names):
            self.at = event.y
