"""The line above the footer: what goes on, whether the weights have arrived, memory, and how old all of it is."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from ada_tui.ui.draw import Line, duration, gib
from ada_tui.ui.session import Session
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import Palette, palette

GLYPHS = {"running": "▶", "paused": "‖", "done": "✓", "stopped": "■", "failed": "✗", "dead": "✗"}
"""A job's status as a glyph: the word always stands beside it."""


class StatusLine(Widget):
    """Left: phase and step. Middle: the weights' way to the worker. Right: memory and the age of the last event."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.session: Session | None = None
        self.note = ""
        """What the app itself is doing, when it is not the job that does it."""

    def render_line(self, y: int) -> Strip:
        width, colours = self.size.width, palette(self.app.current_theme)
        base = colours.lifted + colours.ink
        line = Line(base).add(" ")
        if self.session is None:
            line.add(self.note or "no run open", colours.muted)
            return line.strip(width)
        right = _right(self.session, colours)
        room = width - sum(len(text) for text, _ in right)
        _left(line, self.session, self.note, room, colours)
        _middle(line, self.session, room, colours)
        return line.right(width, *right).strip(width)


def _left(line: Line, session: Session, note: str, room: int, colours: Palette) -> None:
    store, status = session.store, session.status.name
    line.add(f"{GLYPHS.get(status, '·')} ", colours.bad if status in ("failed", "dead") else colours.good)
    stage = store.stage
    if not session.live:
        words = f"{status}: {session.status.reason}" if session.status.reason else status
        if store.step is not None:
            words = f"{status} at step {store.step.step}" + words[len(status) :]
        line.add(one_line(note or words, max(10, room - line.width - 1)), None if status == "done" else colours.bad)
        return
    if note:
        line.add(one_line(note, room // 2))
        return
    line.add(one_line(stage.name if stage else "starting", 16))
    if store.step is not None or store.steps_wanted:
        done, wanted = store.step.step if store.step else 0, store.steps_wanted
        line.add(f"  {done}/{wanted} " if wanted else f"  step {done} ", colours.muted)
        if wanted and room > 60:
            line.bar(done / wanted, 10, colours.good, colours.faint).add(" ")
    if stage is not None and stage.detail and line.width + 24 < room:
        line.add(one_line(stage.detail, room - line.width - 24) + " ", colours.muted)


def _middle(line: Line, session: Session, room: int, colours: Palette) -> None:
    state, words = session.control_state()
    if not state or room - line.width < 12:
        return
    style = {"pending": colours.accent, "applied": colours.good}.get(state, colours.bad)
    glyph = {"pending": "◌", "applied": "●"}.get(state, "✗")
    text = one_line(f"{glyph} {words}", max(8, room - line.width - 3))
    line.to(max(line.width + 1, (room - len(text)) // 2)).add(text, style)


def _right(session: Session, colours: Palette) -> list[tuple[str, Style]]:
    memory, age = session.store.memory, session.age
    pieces: list[tuple[str, Style]] = []
    if memory is not None:
        if memory.device_total:
            pieces.append((f"VRAM {(memory.device_used or 0) / 2**30:.1f}/{gib(memory.device_total)} ", colours.muted))
        else:
            pieces.append((f"RAM {gib(memory.rss)} ", colours.muted))
    if session.live and age is not None:
        if session.stale:
            pieces.append((f"⚠ silent for {duration(age)} ", colours.bad + colours.bold))
        else:
            pieces.append((f"{duration(age)} ago ", colours.muted))
    return pieces
