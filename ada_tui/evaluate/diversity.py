"""How varied the replies of an arm are: what no reward looks at and a hacked policy loses first.

Words as `rewards` sees them. No file, no model. Anybody may import it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.text import view

COMMON = 6
"""Words of the sequence whose most common instance is shown: long enough to be a stock phrase."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """Over all replies of an arm. Figures compare only between arms with as many replies."""

    distinct_3: float
    """Different word 3-grams / all of them (0..1)."""
    entropy: float
    """Bits per word of the word distribution."""
    common: str
    """The most common 6 words in a row; "" when every such run occurs once."""
    common_share: float
    """Share of replies that contain it (0..1)."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "distinct_3": self.distinct_3, "entropy": self.entropy,
            "common_6gram": self.common, "common_6gram_share": self.common_share,
        }  # fmt: skip


NO_REPLIES = Diversity(0.0, 0.0, "", 0.0)


def diversity(replies: Sequence[str]) -> Diversity:
    """The diversity of `replies`, all of them together.

    >>> found = diversity(["no idea what that is to be honest", "no idea what that is to me", "hi"])
    >>> found.common, round(found.common_share, 2)
    ('no idea what that is to', 0.67)
    """
    words = [view(reply).words for reply in replies]
    trigrams = Counter(gram for reply in words for gram in _grams(reply, 3))
    runs = Counter(gram for reply in words for gram in set(_grams(reply, COMMON)))
    common, times = max(runs.items(), key=lambda item: (item[1], item[0]), default=((), 0))
    return Diversity(
        distinct_3=len(trigrams) / total if (total := trigrams.total()) else 0.0,
        entropy=_entropy(Counter(word for reply in words for word in reply)),
        common=" ".join(common) if times > 1 else "",
        common_share=times / len(replies) if times > 1 else 0.0,
    )


def _grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _entropy(counts: Counter[str]) -> float:
    total = counts.total()
    return -math.fsum(n / total * math.log2(n / total) for n in counts.values()) if total else 0.0
