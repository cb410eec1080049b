"""How long prompts and references are in tokens, by the model's own tokenizer: what to expect before a run.

Not here: the cap the worker applies (`ada_tui.worker.lengths`, the same arithmetic). Needs the `tokenizers` package,
not torch. Anybody may import it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ada_tui.dataset.rows import PromptRow
from ada_tui.errors import BadInput
from ada_tui.persona import Persona

HEADROOM = 1.3
"""The proposed cap over the 95th percentile of the references."""
SMALLEST_CAP = 16
BINS = 12


@dataclass(frozen=True, slots=True)
class Lengths:
    """The spread of token counts; all zero without any text."""

    count: int
    median: int
    p95: int
    longest: int
    histogram: list[tuple[int, int]]
    """(upper edge in tokens, texts up to it and above the edge before)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Token lengths of a set of rows."""

    prompts: Lengths
    """The whole rendered prompt: system, history, last user turn, and what a ChatML template adds."""
    references: Lengths
    """The reply with its end token."""
    cap: int
    """Proposed `grpo.max_completion`."""


def probe(rows: Sequence[PromptRow], model: Path, persona: Persona) -> Probe:
    """Measure rows with the tokenizer of a model folder (or a tokenizer.json).

    Raises:
        BadInput: there is no tokenizer.json, or it cannot be read.
    """
    from tokenizers import Tokenizer

    path = model / "tokenizer.json" if model.is_dir() else model
    if not path.is_file():
        raise BadInput(f"{path}: no such tokenizer; give a model folder that holds tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception for whatever is wrong with the file
        raise BadInput(f"{path}: cannot be read as a tokenizer ({error!s:.80})") from None
    chats = [row.messages(persona) for row in rows]
    prompts = [
        sum(sizes) + _around(tokenizer) * (len(sizes) + 1)
        for sizes in _sizes(tokenizer, [[turn["content"] for turn in chat] for chat in chats])
    ]
    replies = [[row.row.reference] for row in rows if row.row.reference]
    references = [sum(sizes) + 1 for sizes in _sizes(tokenizer, replies)]
    found = lengths(references)
    return Probe(lengths(prompts), found, max(SMALLEST_CAP, math.ceil(HEADROOM * found.p95)))


def _sizes(tokenizer: Any, texts: list[list[str]]) -> list[list[int]]:
    flat = tokenizer.encode_batch([text for group in texts for text in group], add_special_tokens=False)
    sizes = iter([len(encoding.ids) for encoding in flat])
    return [[next(sizes) for _ in group] for group in texts]


def _around(tokenizer: Any) -> int:
    """Tokens that a ChatML template puts around one turn."""
    return len(tokenizer.encode("<|im_start|>user\n<|im_end|>\n", add_special_tokens=False).ids)


def lengths(sizes: Sequence[int]) -> Lengths:
    """Median, 95th percentile (nearest rank), longest, histogram.

    >>> lengths([1, 2, 3, 4]).p95
    4
    """
    if not sizes:
        return Lengths(0, 0, 0, 0, [])
    ordered = sorted(sizes)
    width = max(1, math.ceil(ordered[-1] / BINS))
    edges = range(width, ordered[-1] + width, width)
    counts = [sum(edge - width < size <= edge for size in ordered) for edge in edges]
    return Lengths(
        count=len(ordered),
        median=ordered[(len(ordered) - 1) // 2],
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        longest=ordered[-1],
        histogram=list(zip(edges, counts, strict=True)),
    )
