"""How often a phrase fires in text that is fine: the count shown beside each entry, and the refusal of one too common.

The clean sample is the replies of the bundled chats. Used by the app's phrase editor; it scores nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rewards.config import FillerEntry
from rewards.files import data_directory
from rewards.phrases import PhraseIndex
from rewards.text import view

MAX_SHARE = 0.05
"""Share of the clean sample above which a phrase is refused: it is a habit of good replies, not filler."""


@lru_cache(maxsize=1)
def clean_sample() -> tuple[str, ...]:
    """The replies of the bundled chats, written one by one to be free of filler; empty where they are not installed."""
    path = data_directory().parent / "ada" / "conversations.jsonl"
    if not path.is_file():
        return ()
    chats = [
        json.loads(line)["conversations"] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    return tuple(turn["value"] for chat in chats for turn in chat if turn["from"] == "gpt")


def hit_counts(entries: Iterable[FillerEntry], sample: Sequence[str] | None = None) -> dict[str, int]:
    """Per entry id: in how many replies of the sample the phrase stands, wherever it may count.

    >>> hit_counts([FillerEntry.make("a rich tapestry of")])
    {'hype/a-rich-tapestry-of': 0}
    """
    entries = list(entries)
    index = PhraseIndex([(entry.pattern, entry.regex) for entry in entries])
    counts = {entry.id: 0 for entry in entries}
    for text in clean_sample() if sample is None else sample:
        for number in index.entries(view(text)):
            counts[entries[number].id] += 1
    return counts


def refuse_if_common(entry: FillerEntry, sample: Sequence[str] | None = None) -> str | None:
    """Why an entry is refused for firing too often, or None."""
    texts = clean_sample() if sample is None else sample
    count = hit_counts([entry], texts)[entry.id]
    if count > MAX_SHARE * len(texts):
        return f"stands in {count} of {len(texts)} good replies; that is a habit, not filler: choose a longer phrase"
    return None
