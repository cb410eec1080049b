"""What SFT learns from the same rows: whole chats, with the persona's system prompt where the chat brought none.

Not here: the training (`ada_tui.worker.sft`). Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ada_tui.dataset.rows import Message, PromptRow
from ada_tui.persona import Persona


def sft_chats(rows: Iterable[PromptRow], persona: Persona) -> Iterator[dict[str, list[Message]]]:
    """{"messages": [...]} of every row that has a reference, in TRL's conversational form."""
    for row in rows:
        if row.row.reference:
            reply = {"role": "assistant", "content": row.row.reference}
            yield {"messages": [*row.messages(persona), reply]}


def other_systems(rows: Iterable[PromptRow], persona: Persona) -> str | None:
    """A sentence when the chats bring system prompts that the deployed model will not see, else None."""
    found = {row.system for row in rows if row.system is not None and row.system != persona.system}
    if not found:
        return None
    several = f"{len(found)} system prompts" if len(found) > 1 else "a system prompt"
    return f"the chats bring {several} other than the persona's: the model is trained on what it will not be given"
