"""The Modelfile: persona, the training chat template in Go, stops, sampling as trained with, a context that fits.

One object gives both the file and the body of Ollama's create call, so that the two cannot differ. Never an ADAPTER
line: Ollama dropped it, and a merged file is what parity was measured on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ada_tui.errors import BadInput
from ada_tui.export.template import ChatFormat
from ada_tui.persona import Persona

PARAMETERS = frozenset({
    "temperature", "top_p", "top_k", "min_p", "typical_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
    "frequency_penalty", "num_predict", "seed",
})  # fmt: skip
"""What [sampling] of a persona may set: Ollama's own names."""

INTEGERS = frozenset({"top_k", "repeat_last_n", "num_predict", "seed"})

CONTEXT_STEP = 1024
LEAST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Modelfile:
    """Everything Ollama is told about the model, beside its weights."""

    gguf: str
    """File name, in the same folder."""
    template: str
    system: str
    num_ctx: int
    stops: list[str] = field(default_factory=list)
    sampling: dict[str, float] = field(default_factory=dict)
    title: str = ""
    """First line, as a comment."""

    def text(self) -> str:
        """The file. Raises BadInput when a text holds the delimiter of the format."""
        for name, value in (("chat template", self.template), ("system prompt", self.system)):
            if '"""' in value or value.endswith('"'):
                raise BadInput(f'the {name} holds """ or ends with a double quote, which no Modelfile can express')
        lines = [f"# {' '.join(self.title.split())}"] if self.title else []
        lines += [f"FROM ./{self.gguf}", "", f'TEMPLATE """{self.template}"""', ""]
        if self.system:
            lines += [f'SYSTEM """{self.system}"""', ""]
        for name, value in self.parameters().items():
            for one in value if isinstance(value, list) else [value]:
                lines.append(f"PARAMETER {name} {_quoted(one) if isinstance(one, str) else one}")
        return "\n".join(lines) + "\n"

    def parameters(self) -> dict[str, Any]:
        """Ollama's parameters, `stop` as a list."""
        return {"num_ctx": self.num_ctx, **self.sampling, **({"stop": self.stops} if self.stops else {})}

    def create(self, model: str, digest: str) -> dict[str, Any]:
        """The body of POST /api/create for a file that was uploaded as blob `digest` ("sha256:...")."""
        body: dict[str, Any] = {"model": model, "files": {self.gguf: digest}, "template": self.template}
        if self.system:
            body["system"] = self.system
        return {**body, "parameters": self.parameters()}


def write(
    gguf: str, chat: ChatFormat, persona: Persona, *, num_ctx: int, eos: list[str], bos: str = "", title: str = ""
) -> Modelfile:
    """The Modelfile of `persona` for a model whose chats look like `chat`.

    Args:
        eos: texts of the model's end-of-sequence tokens; they become stops beside those of the template.
        bos: text that the tokenizer puts in front by itself; it is left out of the template, or it would stand twice.

    Raises:
        BadInput: the persona sets a parameter that Ollama does not know.
    """
    if unknown := set(persona.sampling) - PARAMETERS:
        raise BadInput(
            f"persona, [sampling]: {', '.join(sorted(unknown))}: not a parameter of Ollama; "
            f"known are {', '.join(sorted(PARAMETERS))}"
        )
    sampling = {name: int(value) if name in INTEGERS else value for name, value in persona.sampling.items()}
    if bos:
        chat = ChatFormat(
            (chat.system[0].removeprefix(bos), chat.system[1]), chat.user, chat.assistant, chat.reply,
            chat.no_system.removeprefix(bos),
        )  # fmt: skip
    stops = list(dict.fromkeys([*chat.stops(), *eos]))
    return Modelfile(gguf, chat.go(), persona.system, num_ctx, stops, sampling, title)


def context_size(system: int, longest_chat: int, reply: int, limit: int) -> int:
    """Tokens of context that hold the system prompt and a good history (all arguments in tokens).

    Ollama cuts a prompt that is too long to half the context, the system prompt first to suffer; so there is room for
    four of the longest chats known.

    Args:
        limit: what the model was built for (max_position_embeddings); 0 = not known.
    """
    wanted = system + 4 * longest_chat + reply
    size = max(LEAST_CONTEXT, math.ceil(wanted / CONTEXT_STEP) * CONTEXT_STEP)
    return min(size, limit) if limit else size


def _quoted(text: str) -> str:
    """A stop sequence as the file wants it: quotes round it, no escapes inside. Raises BadInput."""
    if '"' in text or "\n" in text:
        raise BadInput(f"the stop sequence {text!r} holds a quote or a line break, which no Modelfile can express")
    return f'"{text}"'
