"""Above the cards: the prompt in full, and what is known about it."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from ada_tui.protocol import Group
from ada_tui.store import GroupEntry
from ada_tui.ui.draw import Line
from ada_tui.ui.text import crop, one_line
from ada_tui.ui.theme import palette

DECIDED = {"row": "said by the data", "rule": "decided by rule", "default": "nothing decided it"}
"""Who decided the kind, in words."""


class PromptHead(Widget):
    """Two lines: the prompt; its kind and who decided it, the step, who spoke."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._entry: GroupEntry | None = None
        self._group: Group | None = None
        self._batch = 1

    def show(self, entry: GroupEntry | None, group: Group | None, batch: int) -> None:
        self._entry, self._group, self._batch = entry, group, batch
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, colours, entry = self.size.width, palette(self.app.current_theme), self._entry
        line = Line(colours.paper + colours.ink)
        if entry is None:
            return line.strip(width)
        if y == 0:
            turns = len(self._group.history) if self._group else 0
            line.add(" ❯ ", colours.accent)
            if turns:
                line.add(f"… {turns} earlier turns … "[: max(0, width // 3)], colours.muted)
            prompt = self._group.prompt if self._group else entry.prompt
            return line.add(one_line(prompt, width - line.width - 1), colours.bold).strip(width)
        if y == 1:
            facts = [
                entry.kind,
                DECIDED.get(entry.kind_by, ""),
                f"step {entry.step}" if entry.step else "",
                entry.source,
            ]
            facts += [entry.policy, f"{len(entry)} completions"]
            facts += [f"batch of {self._batch} groups" if self._batch > 1 else ""]
            words = " · ".join(one_line(fact, 40) for fact in facts if fact)
            return line.add("   " + crop(words, max(1, width - 4)), colours.muted).strip(width)
        return line.strip(width)
