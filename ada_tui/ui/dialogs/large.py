"""One completion over the whole screen: all of its text with the marked places, and every reason."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer

from ada_tui.ui import actions
from ada_tui.ui.draw import Line, signed
from ada_tui.ui.text import reveal, wrap
from ada_tui.ui.theme import palette
from ada_tui.ui.widgets.card import CardView, text_lines
from ada_tui.ui.widgets.why import reasons
from rewards.types import Card


class LargeText(ScrollView, can_focus=True):
    """Prompt, figures, text, reasons, one below the other."""

    def __init__(self, view: CardView, card: Card, prompt: str) -> None:
        super().__init__()
        self._view = view
        self._card = card
        self._prompt = prompt
        self._lines: list[Strip] = []

    def on_resize(self) -> None:
        width, colours, view = self.size.width, palette(self.app.current_theme), self._view
        measure = min(100, width - 4)
        base = colours.paper + colours.ink
        lines = [Line(base)]
        shown = reveal(self._prompt)
        for number, (start, end) in enumerate(wrap(shown, measure)):
            line = Line(base).add(" ❯ " if number == 0 else "   ", colours.accent)
            lines.append(line.add(shown.text[start:end], colours.bold))
        lines.append(Line(base))
        head = Line(base).add(f"   {view.glyph} {view.total:.2f} ", colours.bold)
        head.add(f"advantage {signed(view.advantage)}  {view.words} words  {view.tokens} tokens", colours.muted)
        lines += [head.add("  ✂ cut off by the token limit" if view.truncated else "", colours.bad), Line(base)]
        lines += [line.indent(3) for line in text_lines(view.text, self._card.spans, measure, None, base, colours)]
        lines += [Line(base), Line(base).add("   Why", colours.bold + colours.accent)]
        self._lines = [line.strip(width) for line in lines]
        self._lines += [Strip.join([Strip.blank(2, base), strip]) for strip in reasons(self._card, measure, colours)]
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index, width = y + self.scroll_offset.y, self.size.width
        paper = palette(self.app.current_theme).paper
        if index >= len(self._lines):
            return Strip.blank(width, paper)
        return self._lines[index].adjust_cell_length(width, paper)


class Large(ModalScreen[None]):
    """The screen around it."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("detail")]

    def __init__(self, view: CardView, card: Card, prompt: str) -> None:
        super().__init__()
        self._text = LargeText(view, card, prompt)

    def compose(self) -> ComposeResult:
        yield self._text
        yield Footer(show_command_palette=False, compact=True)

    def action_close(self) -> None:
        self.dismiss()

    def action_up(self) -> None:
        self._text.scroll_up(animate=False)

    def action_down(self) -> None:
        self._text.scroll_down(animate=False)
