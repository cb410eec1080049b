"""From one JSON value to a chat: the record shapes people have, told apart record by record.

Known: ShareGPT (`conversations` of from/value), ChatML or OpenAI (`messages` of role/content, content a string or a
list of parts), TRL prompt/completion and chosen/rejected (strings or lists of messages), Alpaca, a bare list of turns,
text that was already rendered with a ChatML template, and our own prompt rows. Not here: bytes and lines (`read.py`),
whether the chat is any good (`checks.py`). Anybody may import it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewards.types import Row

ROLES = {
    "system": "system", "developer": "system", "context": "system", "instructions": "system",
    "user": "user", "human": "user", "prompter": "user", "customer": "user", "person": "user", "me": "user",
    "assistant": "assistant", "bot": "assistant", "gpt": "assistant", "model": "assistant", "chatgpt": "assistant",
    "ai": "assistant", "chatbot": "assistant", "assistent": "assistant", "bing": "assistant", "bard": "assistant",
    "claude": "assistant", "ada": "assistant", "agent": "assistant",
    "tool": "tool", "function": "tool", "observation": "tool", "function_call": "tool", "function_response": "tool",
    "tool_call": "tool", "tool_calls": "tool", "tool_response": "tool", "ipython": "tool", "environment": "tool",
}  # fmt: skip
"""Every role name we know (lower case) and what it means."""

COLUMNS = frozenset(Row.__dataclass_fields__) - {"id", "split", "topic_cluster", "reference"}
"""Columns of a record that are taken over into the row."""

LISTS = ("messages", "conversations", "conversation", "turns", "dialogue", "dialog", "chat")
"""Fields that hold a list of turns."""
WRAPPERS = ("data", "rows", "train", "items", "examples", "samples", "chats")
"""Fields of an object around the chats of a whole file."""
TEMPLATED = "<|im_start|>"


class Turn(NamedTuple):
    """One turn. `role` is system, user, assistant or tool."""

    role: str
    content: str


class Unusable(ValueError):
    """The record cannot become a chat: a problem code, the turn (1-based; None = the whole record) and a sentence."""

    def __init__(self, code: str, message: str, turn: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.turn = code, message, turn


@dataclass(slots=True)
class Chat:
    """One record as read. `turns` still holds whatever the file had: system and tool turns, wrong order, empty text."""

    turns: list[Turn]
    format: str
    id: Any = None
    columns: dict[str, Any] = field(default_factory=dict)
    rejected: str | None = None
    """The worse reply of a preference record."""
    templated: bool = False
    """Parsed back from rendered text."""
    record: Mapping[str, Any] | None = None
    """Where it came from, when that was an object."""
    shift: int = 0
    """1 when the first turn is a system prompt that stood beside the turns, so that turn numbers stay the file's."""


def to_chat(record: Any) -> Chat:
    """The chat in one record.

    Raises:
        Unusable: the record has none of the known shapes, or a turn in it is no turn.
    """
    if isinstance(record, list):
        return Chat(_turns(record), "turns")
    if isinstance(record, str):
        if TEMPLATED in record:
            return Chat(parse_template(record), "templated", templated=True)
        raise Unusable("not-an-object", "the line is a JSON string, not a chat")
    if not isinstance(record, dict):
        name = "null" if record is None else f"a JSON {_JSON_NAMES.get(type(record), 'value')}"
        raise Unusable("not-an-object", f"the line is {name}, not a chat")
    for name in LISTS:
        if record.get(name) is not None:
            return _from_list(record, name)
    if record.get("chosen") is not None:
        return _from_preference(record)
    if record.get("prompt") is not None:
        return _from_prompt(record)
    if "instruction" in record:
        return _from_alpaca(record)
    if isinstance(text := record.get("text"), str):
        if TEMPLATED in text:
            return _chat(record, parse_template(text), "templated", templated=True)
        raise Unusable("unknown-format", "'text' is plain text without turns; a chat needs roles")
    if not record:
        raise Unusable("unknown-format", "the object is empty")
    for name in (*LISTS, "chosen", "prompt", "text"):
        if name in record:
            raise Unusable("null-content", f"{name!r} is null")
    raise Unusable("unknown-format", f"no known chat format; the keys are {', '.join(sorted(map(str, record))[:6])}")


def unwrap(record: Any) -> list[Any] | None:
    """The chats of an object that only wraps a list of them, e.g. {"data": [...]}; None when it does not."""
    if not isinstance(record, dict) or not record.keys().isdisjoint(
        (*LISTS, "prompt", "instruction", "chosen", "text")
    ):
        return None
    for name in WRAPPERS:
        if isinstance(inner := record.get(name), list):
            return [
                item["row"] if isinstance(item, dict) and item.keys() >= {"row", "row_idx"} else item for item in inner
            ]
    return None


_JSON_NAMES = {bool: "true or false", int: "number", float: "number"}


def _chat(record: Mapping[str, Any], turns: list[Turn], name: str, **more: Any) -> Chat:
    if len(record) == 1:
        return Chat(turns, name, record=record, **more)
    columns = {key: record[key] for key in COLUMNS & record.keys()}
    identity = record.get("id")
    if isinstance(system := record.get("system"), str) and system.strip():
        return Chat([Turn("system", system), *turns], name, identity, columns, record=record, shift=1, **more)
    return Chat(turns, name, identity, columns, record=record, **more)


def _from_list(record: Mapping[str, Any], name: str) -> Chat:
    value = record[name]
    if isinstance(value, str) and TEMPLATED in value:
        return _chat(record, parse_template(value), "templated", templated=True)
    if not isinstance(value, list):
        raise Unusable("not-a-list", f"{name!r} must be a list of turns")
    turns = _turns(value)
    first = value[0] if value else None
    sharegpt = "from" in first if isinstance(first, dict) else name.startswith("conversation")
    return _chat(record, turns, "sharegpt" if sharegpt else "chatml")


def _turns(items: list[Any]) -> list[Turn]:
    turns = []
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            role = item.get("role")
            if role is None:
                role = item.get("from") or item.get("speaker") or item.get("author")
            content = item.get("content")
            if content is None:
                content = item.get("value")
                if content is None:
                    content = item.get("text")
        elif isinstance(item, list | tuple) and len(item) == 2:
            role, content = item
        else:
            raise Unusable("bad-turn", "a turn must be an object with a role and a text", number)
        if type(content) is str and type(role) is str and (known := ROLES.get(role)):
            turns.append(Turn(known, content))
            continue
        if isinstance(content, list | dict):
            content = _parts(content, number)
        turns.append(_turn(role, content, item, number))
    return turns


def _turn(role: Any, content: Any, item: Any, number: int) -> Turn:
    if role is None:
        raise Unusable("bad-turn", "the turn has no role", number)
    known = ROLES.get(role.strip().lower()) if isinstance(role, str) else None
    if known is None:
        raise Unusable("unknown-role", f"the role {role!r:.40} is not known", number)
    if isinstance(content, str):
        return Turn(known, content)
    if content is None:
        if known == "assistant" and isinstance(item, dict) and (item.get("tool_calls") or item.get("function_call")):
            return Turn("tool", "")
        if known == "tool":
            return Turn("tool", "")
        raise Unusable("null-content", "the turn has no text (null)", number)
    if isinstance(content, bool | int | float):
        raise Unusable("bad-content", "the text of the turn is a number, not text", number)
    raise Unusable("bad-content", "the text of the turn is neither text nor a list of text parts", number)


def _parts(content: Any, number: int) -> str:
    """The text of OpenAI's list of content parts; other parts (images, audio) cannot be trained on."""
    texts = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, dict) else None
            raise Unusable("not-text", f"the turn holds {kind or 'something'!s:.30} that is not text", number)
    return "\n".join(texts)


def _from_preference(record: Mapping[str, Any]) -> Chat:
    prompt, chosen, rejected = (record.get(key) for key in ("prompt", "chosen", "rejected"))
    if isinstance(chosen, list):
        turns = (_turns(prompt) if isinstance(prompt, list) else []) + _turns(chosen)
        if isinstance(prompt, str) and not any(turn.role == "user" for turn in turns):
            turns = [Turn("user", prompt), *turns]
        worse = _turns(rejected) if isinstance(rejected, list) else []
        return _chat(record, turns, "preference", rejected=worse[-1].content if worse else None)
    if not isinstance(chosen, str):
        raise Unusable("null-content", "'chosen' has no text")
    start = _prompt_turns(prompt)
    return _chat(
        record,
        [*start, Turn("assistant", chosen)],
        "preference",
        rejected=rejected if isinstance(rejected, str) else None,
    )


def _from_prompt(record: Mapping[str, Any]) -> Chat:
    """TRL prompt/completion, TRL prompt-only with our `reference`, and our own prompt rows (with `history`)."""
    history = record.get("history")
    turns = _turns(history) if isinstance(history, list) else []
    turns += _prompt_turns(record["prompt"])
    rendered = isinstance(record["prompt"], str) and TEMPLATED in record["prompt"]
    completion = record.get("completion", record.get("response", record.get("answer")))
    name = "prompt-completion"
    if completion is None:
        completion, name = record.get("reference"), "prompt-row"
    if isinstance(completion, list):
        return _chat(record, turns + _turns(completion), name, templated=rendered)
    if isinstance(completion, str):
        return _chat(record, [*turns, Turn("assistant", completion)], name, templated=rendered)
    if completion is None:
        return _chat(record, turns, "prompt-only", templated=rendered)
    raise Unusable("bad-content", "the completion is neither text nor a list of messages")


def _prompt_turns(prompt: Any) -> list[Turn]:
    if isinstance(prompt, list):
        return _turns(prompt)
    if isinstance(prompt, str):
        return parse_template(prompt) if TEMPLATED in prompt else [Turn("user", prompt)]
    raise Unusable("null-content", "'prompt' has no text")


def _from_alpaca(record: Mapping[str, Any]) -> Chat:
    instruction, extra = record["instruction"], record.get("input")
    output = record.get("output", record.get("response"))
    if not isinstance(instruction, str) or (extra is not None and not isinstance(extra, str)):
        raise Unusable("null-content", "'instruction' has no text", 1)
    if not isinstance(output, str):
        raise Unusable("null-content", "'output' has no text", 2)
    prompt = f"{instruction}\n\n{extra}" if extra and extra.strip() else instruction
    return _chat(record, [Turn("user", prompt), Turn("assistant", output)], "alpaca")


_CHATML = re.compile(r"<\|im_start\|>[ \t]*([^\n<]*)\n?(.*?)(?=<\|im_end\|>|<\|im_start\|>|\Z)", re.DOTALL)


def parse_template(text: str) -> list[Turn]:
    """The turns of text that was rendered with a ChatML template, so that it is never rendered twice.

    >>> parse_template("<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\nHey.<|im_end|>\\n")
    [Turn(role='user', content='Hi'), Turn(role='assistant', content='Hey.')]
    """
    turns = []
    for number, match in enumerate(_CHATML.finditer(text), 1):
        turns.append(_turn(match[1].strip() or None, match[2].strip(), None, number))
    if turns and turns[-1] == Turn("assistant", ""):
        turns.pop()  # the generation prompt at the end of a rendered prompt
    return turns
