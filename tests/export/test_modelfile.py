"""The Modelfile and the create call are one object: what stands in the file is what Ollama is told."""

from __future__ import annotations

import pytest

from ada_tui.errors import BadInput
from ada_tui.export.modelfile import Modelfile, context_size, write
from ada_tui.export.template import ChatFormat
from ada_tui.persona import Persona

CHAT = ChatFormat(("<s><sys>", "</sys>"), ("<user>", "</user>"), ("<ada>", "</ada>"), "<ada>", "<s>")
ADA = Persona("Ada", "You are Ada.\nShort.", {"temperature": 0.7, "top_k": 40.0})

WANTED = '''\
# Ada: grpo-1
FROM ./ada.gguf

TEMPLATE """{template}"""

SYSTEM """You are Ada.
Short."""

PARAMETER num_ctx 4096
PARAMETER temperature 0.7
PARAMETER top_k 40
PARAMETER stop "</ada>"
PARAMETER stop "<user>"
PARAMETER stop "<ada>"
PARAMETER stop "<|end|>"
'''


def test_the_file() -> None:
    model = write("ada.gguf", CHAT, ADA, num_ctx=4096, eos=["<|end|>"], title="Ada: grpo-1")
    assert model.text() == WANTED.replace("{template}", CHAT.go())


def test_the_create_call_says_the_same() -> None:
    model = write("ada.gguf", CHAT, ADA, num_ctx=4096, eos=["<|end|>"])
    body = model.create("ada:1", "sha256:00")
    assert body["files"] == {"ada.gguf": "sha256:00"}
    assert body["template"] in model.text()
    assert body["system"] in model.text()
    for name, value in body["parameters"].items():
        for one in value if isinstance(value, list) else [value]:
            assert f"PARAMETER {name} " + (f'"{one}"' if isinstance(one, str) else str(one)) in model.text()


def test_a_token_that_the_tokeniser_adds_is_not_written_twice() -> None:
    assert "<s>" in write("a", CHAT, ADA, num_ctx=1, eos=[]).template
    assert "<s>" not in write("a", CHAT, ADA, num_ctx=1, eos=[], bos="<s>").template


def test_no_system_prompt_no_system_line() -> None:
    model = write("a", CHAT, Persona("Ada"), num_ctx=1, eos=[])
    assert "SYSTEM" not in model.text()
    assert "system" not in model.create("a", "b")


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(BadInput, match="heat: not a parameter of Ollama"):
        write("a", CHAT, Persona("Ada", "x", {"heat": 1.0}), num_ctx=1, eos=[])


@pytest.mark.parametrize(
    "model",
    [
        Modelfile("a", "x", 'says """hi"""', 1), Modelfile("a", "x", 'ends with "', 1),
        Modelfile("a", 'x"""', "s", 1), Modelfile("a", "x", "s", 1, ["a\nb"]),
        Modelfile("a", "x", "s", 1, ['a"b']),
    ],
)  # fmt: skip
def test_what_no_modelfile_can_say_is_refused(model: Modelfile) -> None:
    with pytest.raises(BadInput, match="no Modelfile can express"):
        model.text()


@pytest.mark.parametrize(
    ("system", "chat", "reply", "limit", "size"),
    [(60, 100, 64, 8192, 4096), (60, 1500, 200, 32768, 7168), (60, 1500, 200, 4096, 4096), (500, 9000, 500, 0, 37888)],
)
def test_context_size(system: int, chat: int, reply: int, limit: int, size: int) -> None:
    assert context_size(system, chat, reply, limit) == size
