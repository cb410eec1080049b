"""What a Hugging Face chat template puts around the turns, found by asking it; and the same thing as a Go template.

Ollama does not run the model's Jinja template: it guesses, or takes the Go template of the Modelfile. So the format is
derived from the template that training used, proved on a table of conversations, and written out for Go. A template
that does more than put text around turns is refused, never approximated. Not here: the rest of the Modelfile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ada_tui.errors import BadInput

Messages = Sequence[dict[str, str]]

Render = Callable[[Messages, bool], str]
"""(messages, whether the prompt for the reply follows) -> text: `tokenizer.apply_chat_template` in short."""

CONVERSATIONS: tuple[tuple[dict[str, str], ...], ...] = (
    ({"role": "user", "content": "Morning"},),
    ({"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Morning"}),
    (
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hey"},
        {"role": "user", "content": "how's the board?"},
    ),
    (
        {"role": "system", "content": "Two lines.\nSecond line, with \"quotes\" and {{ braces }}."},
        {"role": "user", "content": "1"}, {"role": "assistant", "content": "2\n\n3"},
        {"role": "user", "content": "4"}, {"role": "assistant", "content": "5"}, {"role": "user", "content": "6"},
    ),
    ({"role": "user", "content": "Grüß dich \N{WAVING HAND SIGN} 你好\n\ttab, 'one', \"two\", \\n, <b>&amp;"},),
    ({"role": "system", "content": "x"}, {"role": "user", "content": "{{ .System }} {% raw %} \"\"\" <think>"}),
)  # fmt: skip
"""What every format is proved on: with and without system, several turns, unicode, text that looks like code."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The text around every kind of turn. `render` is the definition; `go` says the same in Go's text/template."""

    system: tuple[str, str]
    """(before, after) the system prompt; `before` includes what starts the whole text, e.g. a bos token."""
    user: tuple[str, str]
    assistant: tuple[str, str]
    reply: str
    """What stands before the reply that the model is to write."""
    no_system: str = ""
    """What stands at the start when the chat brings no system turn (Qwen2.5 introduces itself here)."""

    def render(self, messages: Messages, reply: bool) -> str:
        """The text of `messages`; with `reply`, up to where the model goes on."""
        parts = [] if messages and messages[0]["role"] == "system" else [self.no_system]
        around = {"system": self.system, "user": self.user, "assistant": self.assistant}
        for message in messages:
            before, after = around[message["role"]]
            parts += [before, message["content"], after]
        return "".join(parts) + (self.reply if reply else "")

    def go(self) -> str:
        """The TEMPLATE of a Modelfile. A last assistant turn is left open, as Ollama does when asked to go on with it.

        The `else` branch is for callers that know only .System, .Prompt and .Response.
        """
        (s0, s1), (u0, u1), (a0, a1) = (
            (_literal(before), _literal(after)) for before, after in (self.system, self.user, self.assistant)
        )
        reply, start = _literal(self.reply), _literal(self.no_system)
        introduction = '{{ if and (eq $i 0) (ne .Role "system") }}' + start + "{{ end }}" if start else ""
        return (
            "{{ if .Messages }}{{ range $i, $_ := .Messages }}{{ $last := eq (len (slice $.Messages $i)) 1 }}"
            + introduction
            + '{{ if eq .Role "system" }}' + s0 + "{{ .Content }}" + s1
            + '{{ else if eq .Role "user" }}' + u0 + "{{ .Content }}" + u1
            + '{{ else if eq .Role "assistant" }}' + a0 + "{{ .Content }}{{ if not $last }}" + a1 + "{{ end }}{{ end }}"
            + '{{ if and $last (ne .Role "assistant") }}' + reply + "{{ end }}{{ end }}"
            + "{{ else }}{{ if .System }}" + s0 + "{{ .System }}" + s1 + "{{ end }}"
            + "{{ if .Prompt }}" + u0 + "{{ .Prompt }}" + u1 + "{{ end }}" + reply + "{{ .Response }}{{ end }}"
        )  # fmt: skip

    def stops(self) -> list[str]:
        """Texts at which a reply is over: what ends an assistant turn, and what would start another turn."""
        heads = [part.strip().split("\n")[0] for part in (self.assistant[1], self.user[0], self.assistant[0])]
        tokens = [_special(head) for head in heads]
        return list(dict.fromkeys(token for token in tokens if token))


def derive(render: Render) -> ChatFormat:
    """The format of the chat template behind `render`, proved on `CONVERSATIONS`.

    Raises:
        BadInput: the template refuses a plain chat, or does more than put text around turns.
    """
    try:
        chat = _ask(render)
    except Exception as error:  # Jinja raises what it likes, the template's own raise_exception included
        raise BadInput(f"the chat template refuses a plain chat ({' '.join(str(error).split())[:200]})") from error
    for messages in CONVERSATIONS:
        for reply in (True, False):
            wanted, got = render(messages, reply), chat.render(messages, reply)
            if wanted != got:
                raise BadInput(
                    "the chat template does more than put text around the turns, so Ollama could not follow it: "
                    f"expected {wanted[:120]!r}, got {got[:120]!r}; use a plain template (ChatML) in the model folder"
                )
    return chat


def _ask(render: Render) -> ChatFormat:
    s, u, a, v = "QSYSTEMQ", "QFIRSTQ", "QREPLYQ", "QSECONDQ"
    system, first = {"role": "system", "content": s}, {"role": "user", "content": u}
    replied, second = {"role": "assistant", "content": a}, {"role": "user", "content": v}
    whole = render([system, first, replied, second], False)
    before_system, rest = whole.split(s)
    between_system_user, rest = rest.split(u)
    between_user_assistant, rest = rest.split(a)
    between_assistant_user, after_user = rest.split(v)
    after_assistant = render([system, first, replied], False).split(a)[1]
    before_user = _without_prefix(between_assistant_user, after_assistant)
    return ChatFormat(
        system=(before_system, _without_suffix(between_system_user, before_user)),
        user=(before_user, after_user),
        assistant=(_without_prefix(between_user_assistant, after_user), after_assistant),
        reply=_without_prefix(render([system, first, replied, second], True), whole),
        no_system=_without_suffix(render([first], False).split(u)[0], before_user),
    )


def _without_prefix(text: str, prefix: str) -> str:
    if not text.startswith(prefix):
        raise ValueError(f"{text!r} does not start with {prefix!r}")
    return text[len(prefix) :]


def _without_suffix(text: str, suffix: str) -> str:
    if not text.endswith(suffix):
        raise ValueError(f"{text!r} does not end with {suffix!r}")
    return text[: len(text) - len(suffix)]


def _literal(text: str) -> str:
    """`text` as Go template source. Only an opening brace pair means anything outside an action."""
    return text.replace("{{", '{{ "{{" }}')


def _special(text: str) -> str:
    """The special token at the start of `text`, e.g. <|im_end|>; "" when it starts with something else."""
    if not text.startswith(("<", "[")):
        return ""
    end = text.find({"<": ">", "[": "]"}[text[0]])
    return text[: end + 1]
