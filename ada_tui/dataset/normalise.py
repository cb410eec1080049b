"""A chat in the order that training needs: an optional system turn, then user and assistant in turns.

What can be put right without guessing is put right and noted; what cannot makes the chat unusable. Not here: reading
(`read.py`, `formats.py`), comparing chats with each other (`checks.py`). Anybody may import it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ada_tui.dataset.formats import TEMPLATED, Chat, Turn, Unusable, parse_template
from ada_tui.dataset.texts import inspect

PROMPT_ONLY = frozenset({"prompt-only"})
"""Formats that mean to have no reply."""
OVER_LONG = 32_000
"""Characters of a chat from which it is called over-long (about 8,000 tokens)."""


@dataclass(slots=True)
class Normal:
    """A usable chat. `turns` alternates user, assistant, ...; it ends with the reply, or with the prompt when there is
    no reply (`complete` is False)."""

    system: str | None
    turns: list[Turn]
    complete: bool = True
    notes: list[tuple[int | None, str, str]] = field(default_factory=list)
    """(turn, problem code, sentence)."""


def normalise(chat: Chat, look_inside: bool = True) -> Normal:
    """The chat in training order; `look_inside` = inspect every text (the caller may know that they are clean).

    Raises:
        Unusable: nothing can be learned from this chat.
    """
    normal = Normal(None, [])
    if chat.templated:
        normal.notes.append((None, "pre-templated", "the text was rendered with a chat template already"))
    numbered = list(enumerate(chat.turns, 1 - chat.shift))
    if look_inside:
        numbered = _inspected(numbered, normal)
    if not _in_order(numbered, normal):
        _put_in_order(numbered, chat, normal)
    size = 0
    for turn in normal.turns:
        size += len(turn.content)
    if size > OVER_LONG:
        normal.notes.append((None, "over-long", f"the chat has {size:,} characters"))
    return normal


Numbered = list[tuple[int, Turn]]


def _inspected(numbered: Numbered, normal: Normal) -> Numbered:
    result: Numbered = []
    for number, turn in numbered:
        if turn.content.lstrip().startswith(TEMPLATED):
            inner = parse_template(turn.content)
            if inner:
                normal.notes.append((number, "pre-templated", "the turn was rendered with a chat template already"))
                result += [(number, part) for part in inner]
                continue
        text, notes = inspect(turn.content)
        normal.notes += [(number, code, message) for code, message in notes]
        result.append((number, turn if text is turn.content else Turn(turn.role, text)))
    return result


def _in_order(numbered: Numbered, normal: Normal) -> bool:
    """The fast path: a system turn or none, then user and assistant in turns, all with text, a reply at the end."""
    start = 1 if numbered and numbered[0][1].role == "system" else 0
    if len(numbered) - start < 2 or (len(numbered) - start) % 2:
        return False
    turns: list[Turn] = []
    wanted = "user"
    for _, turn in numbered[start:]:
        content = turn.content.strip()
        if turn.role != wanted or not content:
            return False
        turns.append(turn if content is turn.content else Turn(wanted, content))
        wanted = "assistant" if wanted == "user" else "user"
    normal.turns = turns
    if start:
        normal.system = numbered[0][1].content.strip() or None
    return True


def _put_in_order(numbered: Numbered, chat: Chat, normal: Normal) -> None:
    if not numbered:
        raise Unusable("no-turns", "the chat has no turns")
    spoken = _without_tools_and_system(numbered, normal)
    if not spoken:
        if normal.system is not None:
            raise Unusable("only-system", "the chat has only a system turn")
        raise Unusable("no-turns", "the chat has no user or assistant turn")
    for number, turn in spoken:
        if not turn.content:
            raise Unusable("empty-content", f"the {turn.role} turn is empty", number)
    joined = _joined(spoken, normal)
    if joined[0][1].role == "assistant":
        if len(joined) == 1:
            raise Unusable("no-user", "the chat has no user turn", joined[0][0])
        normal.notes.append((joined[0][0], "assistant-first", "the chat starts with an assistant turn"))
        joined = joined[1:]
    number, last = joined[-1]
    if last.role == "user":
        if chat.format in PROMPT_ONLY:
            normal.complete = False
            normal.notes.append((None, "no-reference", "the prompt has no reply to compare with"))
        elif len(joined) < 3:
            raise Unusable("no-reply", "the last assistant turn is missing", number)
        else:
            normal.notes.append((number, "unanswered", "the last assistant turn is missing"))
            joined = joined[:-1]
    normal.turns = [turn for _, turn in joined]


def _without_tools_and_system(numbered: Numbered, normal: Normal) -> Numbered:
    spoken: Numbered = []
    tools: list[int] = []
    for number, turn in numbered:
        content = turn.content.strip()
        if turn.role == "tool":
            tools.append(number)
        elif turn.role == "system":
            if normal.system is not None:
                normal.notes.append((number, "system-twice", "the chat has a second system turn"))
            elif content:
                normal.system = content
                if spoken or tools:
                    normal.notes.append((number, "system-misplaced", "the system turn is not at the start"))
        else:
            spoken.append((number, Turn(turn.role, content)))
    if tools:
        some = f"{len(tools)} tool turn{'s' * (len(tools) > 1)} in the chat"
        normal.notes.append((tools[0], "tool-turns", some))
    return spoken


def _joined(spoken: Numbered, normal: Normal) -> Numbered:
    joined: Numbered = []
    for number, turn in spoken:
        if joined and joined[-1][1].role == turn.role:
            before, first = joined[-1]
            normal.notes.append((number, "not-alternating", f"two {turn.role} turns in a row"))
            joined[-1] = (before, Turn(turn.role, f"{first.content}\n\n{turn.content}"))
        else:
            joined.append((number, turn))
    return joined
