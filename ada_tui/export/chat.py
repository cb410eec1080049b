"""Talk to a GGUF in llama.cpp with the chat template that stands in the file. The last look before the device.

Not here: comparing it with transformers (`parity.py`). llama.cpp is loaded inside functions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ada_tui.errors import BadInput
from ada_tui.export import gguf
from ada_tui.extras import install_line

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Messages = Sequence[dict[str, str]]

SAMPLING = frozenset({
    "temperature", "top_p", "top_k", "min_p", "typical_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
})  # fmt: skip
"""Ollama's parameters that llama-cpp-python takes under the same name; the others (seed, num_ctx) are set elsewhere."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model."""

    text: str
    tokens: int
    finished: bool
    """It ended by itself; False = cut at the cap."""
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0


def free_cores() -> int:
    """Cores that nothing else uses, at least 1. llama.cpp's threads wait for each other in a spin: beside a training
    run more of them is slower, many times.
    """
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, round(cores - os.getloadavg()[0])))


class Chat:
    """A GGUF in memory."""

    def __init__(self, path: Path, *, num_ctx: int = 2048, threads: int = 0, logits: bool = False) -> None:
        """
        Args:
            num_ctx: context in tokens.
            threads: 0 = the cores that are free now.
            logits: keep the scores of every position (for `scores`).

        Raises:
            BadInput: no GGUF, a damaged one, or llama-cpp-python is missing.
        """
        gguf.check(path)
        try:
            import llama_cpp
        except ImportError:
            raise BadInput(install_line("llama_cpp")) from None
        threads = threads or free_cores()
        try:
            self._model: Any = llama_cpp.Llama(
                str(path), n_ctx=num_ctx, n_threads=threads, n_threads_batch=threads, n_gpu_layers=-1,
                logits_all=logits, verbose=False, seed=0,
            )  # fmt: skip
        except (ValueError, AssertionError) as error:  # a damaged file, or no memory for the context
            raise BadInput(f"{path}: llama.cpp cannot load it ({error}); export the run again") from None

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self._model.close()

    @property
    def metadata(self) -> dict[str, str]:
        """The header of the file, all values as text."""
        return dict(self._model.metadata)

    def reply(
        self, messages: Messages, *, sampling: dict[str, float] | None = None, max_tokens: int = 128, seed: int = 0
    ) -> Reply:
        """The answer to `messages`, rendered with the template in the file. No `sampling` = greedy.

        Raises:
            BadInput: the file has no chat template, or it refuses these messages.
        """
        if "tokenizer.chat_template" not in self._model.metadata:
            raise BadInput("the GGUF holds no chat template; the base model's tokenizer files are incomplete")
        greedy = {"temperature": 0.0, "repeat_penalty": 1.0}
        chosen = {name: value for name, value in (sampling or {}).items() if name in SAMPLING}
        began = time.monotonic()
        answer = self._model.create_chat_completion(
            messages=[dict(m) for m in messages], max_tokens=max_tokens, seed=seed, **(greedy | chosen)
        )  # fmt: skip
        choice = answer["choices"][0]
        return Reply(
            text=choice["message"]["content"] or "",
            tokens=answer["usage"]["completion_tokens"],
            finished=choice["finish_reason"] == "stop",
            seconds=time.monotonic() - began,
        )

    def render(self, messages: Messages) -> str:
        """The prompt for the reply, by the template in the file; "" when it has none."""
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        source = self._model.metadata.get("tokenizer.chat_template", "")
        eos, bos = (self.token(i) if i >= 0 else "" for i in (self._model.token_eos(), self._model.token_bos()))
        formatter = Jinja2ChatFormatter(template=source, eos_token=eos, bos_token=bos)
        return str(formatter(messages=[dict(m) for m in messages]).prompt)

    def tokenize(self, text: str) -> list[int]:
        """Token ids of `text`, special tokens recognised, nothing added in front."""
        return list(self._model.tokenize(text.encode("utf-8", "surrogatepass"), add_bos=False, special=True))

    def token(self, index: int) -> str:
        """The text of one token, special ones included."""
        return str(self._model.detokenize([index], special=True).decode("utf-8", "replace"))

    def scores(self, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
        """Logits after every token of `tokens`; shape (len(tokens), vocabulary). Needs `logits=True`."""
        tokens = list(tokens)
        known = self._model.longest_token_prefix(list(self._model.eval_tokens), tokens)
        self._model.n_tokens = min(known, len(tokens) - 1)  # the rest is evaluated anew from there
        self._model.eval(tokens[self._model.n_tokens :])
        scores: npt.NDArray[np.float32] = self._model.scores[: len(tokens)].copy()
        return scores
