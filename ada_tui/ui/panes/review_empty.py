"""What the review page says while there is nothing to review: why, and which key changes that."""

from __future__ import annotations

from collections.abc import Sequence

from ada_tui.ui.session import Session
from ada_tui.ui.widgets.empty import Empty


def say_why(nothing: Empty, main: Session | None, samples: Sequence[Session], query: str) -> None:
    """Fill `nothing` for the open run (None = none is) and the groups sampled by hand."""
    if query:
        ways = [("/", "look for something else; nothing typed shows all")]
        nothing.say("No prompt is like that", f"Looked for: {query}", ways)
        return
    session = next((s for s in reversed(samples) if not s.store.groups), None) or main
    if session is None:
        nothing.say(
            "Nothing to review yet",
            "A run brings groups of completions, scored by every reward. Ways to the first one:",
            [("d", "demo: the whole loop, small model"), ("s", "sample a group for your prompt"),
             ("F3", "train on your own chats and model"), ("o", "open a past run")],
        )  # fmt: skip
    elif session.live:
        stage = session.store.stage
        words = f"It is at: {stage.name} {stage.detail}" if stage else "The worker is starting."
        nothing.say(f"{session.id} has no groups yet", words, [("F3", "watch it")])
    else:
        reason = session.status.reason or f"It ended as {session.status.name} without one."
        ways = [("s", "sample a group now"), ("o", "open another run")]
        nothing.say(f"{session.id} holds no groups", reason, ways)
