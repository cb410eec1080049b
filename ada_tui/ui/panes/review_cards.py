"""From a stored group to what its cards show, and the evidence for one of them. Reads no file, draws nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ada_tui.picks import Pick
from ada_tui.protocol import Group
from ada_tui.ranking import Ranking
from ada_tui.store import GroupEntry
from ada_tui.ui.widgets.card import CardView
from rewards import combine
from rewards.card import score
from rewards.config import RewardConfig
from rewards.types import Card, Row

SCORED = 256
"""Cards with spans that are kept."""


def views(
    entry: GroupEntry, group: Group, ranking: Ranking, batch: Sequence[GroupEntry], pick: Pick | None
) -> list[CardView]:
    """The cards of a group, best first. `batch`: the groups over which advantages are scaled."""
    ranked, moved = ranking.now(entry), ranking.moved(entry)
    advantages, over_batch = ranking.advantages(entry, batch)
    known = combine.reward_names(ranking.config)
    names = tuple(name for name in known if any(name in raw.rewards for raw in entry.raws))
    muted = frozenset(name for name in names if not ranking.config.weights.get(name))
    last = max(ranked.places, default=0)
    return [
        CardView(
            index=index, position=position, best=not ranked.dead and ranked.places[index] == 1,
            worst=not ranked.dead and ranked.places[index] == last, total=ranked.totals[index], moved=moved[index],
            advantage=advantages[index], over_batch=over_batch, raw=entry.raws[index], names=names, muted=muted,
            text=group.completions[index].text, words=entry.words[index], tokens=entry.tokens[index],
            truncated=entry.truncated[index], verdict=_verdict(pick, index),
        )
        for position, index in enumerate(ranked.order, 1)
    ]  # fmt: skip


def _verdict(pick: Pick | None, index: int) -> str:
    """The sign of the person's verdict on one completion."""
    if pick is None:
        return ""
    return "★" if pick.chosen == index else "✗" if pick.rejected == index else ""


class Evidence:
    """Spans and reasons per completion: scored again when asked for (milliseconds), kept until the lists change."""

    def __init__(self) -> None:
        self._cards: dict[tuple[GroupEntry, int], Card] = {}
        self._lists: tuple[object, ...] = ()

    def card(self, entry: GroupEntry, group: Group, index: int, config: RewardConfig) -> Card | None:
        """The card of one completion under the lists of `config`; None when the file lacks its text."""
        if index >= len(group.completions):
            return None
        lists = (config.fillers, config.lexicons, config.parameters)
        if lists != self._lists or len(self._cards) >= SCORED:
            self._cards.clear()
            self._lists = lists
        key = (entry, index)
        if key not in self._cards:
            try:
                row = Row.from_columns(group.row)
            except ValueError:  # columns of a foreign or newer file: score as if nothing were known
                row = Row()
            completion = group.completions[index]
            history = [turn.get("content", "") for turn in group.history]
            self._cards[key] = score(
                group.prompt, completion.text, row, config, history=history, truncated=completion.truncated
            )
        return self._cards[key]
