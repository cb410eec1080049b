"""The Go TEMPLATE says what the Hugging Face template says, token for token, by Go's own text/template."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ada_tui.errors import BadInput
from ada_tui.export import template
from ada_tui.export.template import CONVERSATIONS, ChatFormat, Messages, Render, derive

GoRender = Callable[[Iterable[dict[str, object]]], list[str]]

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
INTRODUCED = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are Nobody.<|im_end|>\n' }}{% endif %}"
    + CHATML
)
LLAMA3 = (
    "{% for m in messages %}{% set c = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n'"
    " + m['content'] | trim + '<|eot_id|>' %}{% if loop.first %}{% set c = '<|begin_of_text|>' + c %}{% endif %}"
    "{{ c }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
ZEPHYR = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '</s>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
BRACES = (
    "{% for m in messages %}{{ '{{' + m['role'] + '}}' + m['content'] + ';' }}{% endfor %}"
    "{{ '{{assistant}}' if add_generation_prompt }}"
)

OPEN_ENDED: tuple[Messages, ...] = (
    ({"role": "user", "content": "count"}, {"role": "assistant", "content": "1 2 3"}),
    (
        {"role": "system", "content": "You are Ada."}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hey, \N{HOT BEVERAGE}"},
    ),
)  # fmt: skip
"""Chats that end with a turn of the assistant, which the model is to go on with."""


def jinja(source: str) -> Render:
    """A chat template as transformers renders it."""
    compiled = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(source)
    return lambda messages, reply: compiled.render(messages=messages, add_generation_prompt=reply)


@pytest.mark.parametrize("source", [CHATML, INTRODUCED, LLAMA3, ZEPHYR, BRACES])
def test_go_renders_what_jinja_renders(source: str, go_render: GoRender) -> None:
    render = jinja(source)
    chat = derive(render)
    asked = [{"template": chat.go(), "messages": list(messages)} for messages in CONVERSATIONS]
    assert go_render(asked) == [render(messages, True) for messages in CONVERSATIONS]


@pytest.mark.parametrize("source", [CHATML, INTRODUCED, LLAMA3])
def test_a_last_assistant_turn_stays_open(source: str, go_render: GoRender) -> None:
    render = jinja(source)
    chat = derive(render)
    asked = [{"template": chat.go(), "messages": list(messages)} for messages in OPEN_ENDED]
    wanted = [render(messages, False).removesuffix(chat.assistant[1]) for messages in OPEN_ENDED]
    assert go_render(asked) == wanted
    assert all(text.endswith(messages[-1]["content"]) for text, messages in zip(wanted, OPEN_ENDED, strict=True))


@pytest.mark.parametrize("source", [CHATML, LLAMA3])
def test_callers_that_know_only_system_and_prompt(source: str, go_render: GoRender) -> None:
    render = jinja(source)
    single = [c for c in CONVERSATIONS if [m["role"] for m in c] in (["system", "user"], ["user"])]
    asked = [{"template": derive(render).go(), "messages": list(messages), "legacy": True} for messages in single]
    texts = [render(messages, True) for messages in single]
    if source == LLAMA3:  # the beginning-of-text token is the tokeniser's there
        texts = [text if "system" in text else text.removeprefix("<|begin_of_text|>") for text in texts]
    assert go_render(asked) == texts


def test_the_real_qwen_template_token_for_token(qwen_folder: Path, go_render: GoRender) -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(qwen_folder)

    def render(messages: Messages, reply: bool) -> str:
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=reply))

    chat = derive(render)
    assert "You are Qwen" in chat.no_system
    rendered = go_render({"template": chat.go(), "messages": list(messages)} for messages in CONVERSATIONS)
    for messages, text in zip(CONVERSATIONS, rendered, strict=True):
        wanted = tokenizer.apply_chat_template(list(messages), tokenize=True, add_generation_prompt=True)
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == list(wanted["input_ids"])


def test_stops() -> None:
    assert derive(jinja(CHATML)).stops() == ["<|im_end|>", "<|im_start|>"]
    assert derive(jinja(LLAMA3)).stops() == ["<|eot_id|>", "<|start_header_id|>"]
    assert "</s>" in derive(jinja(ZEPHYR)).stops()


REFUSED = {
    "no system turn": (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{% endfor %}"
    ),
    "system inside the first user turn": (
        "{% if messages[0].role == 'system' %}{% set s = messages[0].content + '\n\n' %}{% set rest = messages[1:] %}"
        "{% else %}{% set s = '' %}{% set rest = messages %}{% endif %}"
        "{% for m in rest %}{% if m.role == 'user' %}[INST] {{ s if loop.first else '' }}{{ m.content }} [/INST]"
        "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
    ),
    "earlier replies are dropped": (
        "{% for m in messages %}{% if m.role != 'assistant' or loop.last %}"
        "<{{ m.role }}>{{ m.content }}</>{% endif %}{% endfor %}"
    ),
    "text is changed": "{% for m in messages %}<{{ m.role }}>{{ m.content | upper }}</>{% endfor %}",
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_template_that_go_could_not_follow_is_refused(why: str) -> None:
    with pytest.raises(BadInput, match="chat template"):
        derive(jinja(REFUSED[why]))


def test_derive_recovers_any_plain_format() -> None:
    chat = ChatFormat(("<s>A:", "|"), ("B:", "/\n"), ("C:", "$"), "C:", "<s>")
    assert template.derive(chat.render) == chat
