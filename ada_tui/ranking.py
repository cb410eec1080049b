"""What-if: stored groups ranked under a reward configuration, and what differs from another one.

No generation, no text, no I/O, no UI. All arithmetic is `rewards.combine`'s; this file decides what is compared with
what and keeps results until the configuration changes. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ada_tui.store import GroupEntry
from rewards import combine
from rewards.config import RewardConfig

PULLED = 500
"""Groups (the first of a sweep) over which the mean effective pull is taken: it settles long before."""

SWEEP = 200
"""Groups per slice of a sweep: about 4 ms, so that a key press never waits for a long list."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One group under one configuration. Lists are per completion, in the order in which they are stored."""

    totals: list[float]
    places: list[int]
    """1 = best; equal totals share the better place."""
    dead: bool
    """All totals are equal: the group teaches nothing."""

    @property
    def order(self) -> list[int]:
        """Indices of the completions, best first; ties stay in stored order."""
        return sorted(range(len(self.places)), key=self.places.__getitem__)

    @property
    def best(self) -> int:
        return self.places.index(1) if self.places else -1

    @property
    def mean(self) -> float:
        return sum(self.totals) / len(self.totals) if self.totals else 0.0

    @property
    def spread(self) -> float:
        """Highest minus lowest total."""
        return max(self.totals) - min(self.totals) if self.totals else 0.0


@dataclass(slots=True)
class Summary:
    """Over all groups that a sweep has seen: what the edited weights change."""

    groups: int = 0
    winners_changed: int = 0
    came_alive: int = 0
    went_dead: int = 0
    dead: int = 0
    pull: dict[str, float] = field(default_factory=dict)
    """Mean effective pull per reward (and of the guard) over the first `PULLED` groups."""
    complete: bool = False


class Ranking:
    """Ranks groups under `config`; `reference` is what they are compared with (the training's own configuration)."""

    def __init__(self, config: RewardConfig, reference: RewardConfig) -> None:
        self.config = config
        self.reference = reference
        self._now: dict[GroupEntry, Ranked] = {}
        self._before: dict[GroupEntry, Ranked] = {}

    def turn(self, config: RewardConfig) -> None:
        """Rank under another configuration from now on."""
        self.config = config
        self._now.clear()

    def rebase(self, reference: RewardConfig) -> None:
        """Compare with another configuration from now on."""
        self.reference = reference
        self._before.clear()

    @property
    def edited(self) -> bool:
        """Whether the configuration ranks differently from the reference (phrase lists are another matter)."""
        return (self.config.weights, self.config.focus) != (self.reference.weights, self.reference.focus)

    def now(self, entry: GroupEntry) -> Ranked:
        found = self._now.get(entry)
        if found is None:
            found = self._now[entry] = _rank(entry, self.config)
        return found

    def before(self, entry: GroupEntry) -> Ranked:
        if self.reference is self.config:
            return self.now(entry)
        found = self._before.get(entry)
        if found is None:
            found = self._before[entry] = _rank(entry, self.reference)
        return found

    def moved(self, entry: GroupEntry) -> list[int]:
        """Places gained (> 0) or lost (< 0) per completion against the reference."""
        return [before - now for before, now in zip(self.before(entry).places, self.now(entry).places, strict=True)]

    def winner_changed(self, entry: GroupEntry) -> bool:
        """The completion that was best is best no more."""
        before = self.before(entry).best
        return before >= 0 and self.now(entry).places[before] != 1

    def advantages(self, entry: GroupEntry, batch: Sequence[GroupEntry]) -> tuple[list[float], bool]:
        """Advantage per completion, and whether it is scaled over a batch: a lone group only has itself."""
        whole = [group for group in batch if group.raws]
        lone = len(whole) < 2
        computed = combine.batch_advantages([group.raws for group in whole], self.config)
        return computed[whole.index(entry)] if entry in whole else [], not lone

    def sweep(self, groups: Sequence[GroupEntry]) -> Iterator[Summary]:
        """Go through all groups in slices; yields the summary so far after each, the last one `complete`."""
        summary = Summary()
        pulls: dict[str, float] = {}
        for start in range(0, len(groups), SWEEP):
            for entry in groups[start : start + SWEEP]:
                now, before = self.now(entry), self.before(entry)
                summary.groups += 1
                summary.dead += now.dead
                summary.winners_changed += self.winner_changed(entry)
                summary.came_alive += before.dead and not now.dead
                summary.went_dead += now.dead and not before.dead
                if summary.groups <= PULLED:
                    for name, value in combine.effective_pull(entry.raws, self.config).items():
                        pulls[name] = pulls.get(name, 0.0) + value
            summary.pull = {name: value / min(summary.groups, PULLED) for name, value in pulls.items()}
            yield summary
        summary.complete = True
        yield summary


def _rank(entry: GroupEntry, config: RewardConfig) -> Ranked:
    totals = combine.totals_many(entry.raws, config)
    return Ranked(totals, combine.rank(totals), combine.zero_spread(totals))
