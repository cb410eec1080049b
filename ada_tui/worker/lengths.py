"""How long replies may get: the cap of a run, from its references. Only ada_tui.worker may import it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ada_tui.dataset import PromptRow

HEADROOM = 1.3
"""The cap over the 95th percentile of the references."""

SHARE = 0.95
WITHOUT_REFERENCES = 256
SMALLEST = 16


def completion_cap(tokenizer: Any, rows: Sequence[PromptRow], wanted: int) -> int:
    """`wanted` tokens, or when that is 0: 1.3 times the 95th percentile of the references, end token included."""
    if wanted > 0:
        return wanted
    references = [row.row.reference for row in rows if row.row.reference]
    if not references:
        return WITHOUT_REFERENCES
    lengths = sorted(len(ids) + 1 for ids in tokenizer(references, add_special_tokens=False)["input_ids"])
    typical = lengths[math.ceil(SHARE * len(lengths)) - 1]
    return max(SMALLEST, math.ceil(HEADROOM * typical))
