"""Help: every key, those of the page one came from first. Made from the action registry."""

from __future__ import annotations

from textual.strip import Strip

from ada_tui.ui import actions
from ada_tui.ui.draw import Line
from ada_tui.ui.text import reveal, wrap
from ada_tui.ui.theme import Palette
from ada_tui.ui.widgets.lines import Lines

LEGEND = (
    ("● ○", "best and worst completion of the group"),
    ("▲2 ▼1", "places gained and lost against the weights that the run uses"),
    ("◆", "another completion wins under your weights"),
    ("=", "flat: all completions have the same total, so the group teaches nothing"),
    ("✂", "the reply was cut off by the token limit"),
    ("×5", "focus: on this kind of prompt the reward counts that much more"),
    ("⊘", "gated: the guard found the reply unusable, the total is the guard alone"),
    ("⟨ZWSP⟩ ␛", "hidden characters, shown so that nobody is fooled by them"),
)
"""The signs of the review page."""


class HelpPane(Lines, can_focus=True):
    """The page. Arrow keys scroll (ScrollView's own bindings)."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._first: tuple[str, ...] = ("app",)

    def focus_first(self) -> None:
        self.focus()

    def show(self, places: tuple[str, ...]) -> None:
        """List the keys of these places first."""
        self._first = places
        self.lay_out_again()

    def lay_out(self, width: int, colours: Palette) -> list[Strip]:
        order = [*self._first, *(place for place in actions.PLACES if place not in self._first)]
        return _lines(order, width, colours)


def _lines(order: list[str], width: int, colours: Palette) -> list[Strip]:
    base = colours.paper + colours.ink
    out = [Line(base).strip(width)]
    for place in order:
        known = actions.of(place)
        if not known:
            continue
        out.append(Line(base).add(f"  {actions.PLACES[place]}", colours.bold + colours.accent).strip(width))
        out += [line for action in known for line in _entry(action.written, action.help, width, colours)]
        out.append(Line(base).strip(width))
    out.append(Line(base).add("  Signs", colours.bold + colours.accent).strip(width))
    out += [line for sign, words in LEGEND for line in _entry(sign, words, width, colours)]
    return out


def _entry(key: str, words: str, width: int, colours: Palette) -> list[Strip]:
    shown = reveal(words)
    lines = []
    for number, (start, end) in enumerate(wrap(shown, max(10, min(90, width - 18)))):
        line = Line(colours.paper + colours.ink).add(f"  {key if number == 0 else '':14} ", colours.muted)
        lines.append(line.add(shown.text[start:end]).strip(width))
    return lines
