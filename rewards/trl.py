"""The rewards as TRL's GRPOTrainer wants them: callables over a batch, one card per completion, shared by all.

It imports neither trl nor torch. The trained reward is the first callable, `total` (weight 1), computed here from the
live configuration; the parts follow with weight 0, so that TRL logs them.

    functions = trl_reward_functions(RewardConfig.default())
    GRPOTrainer(..., reward_funcs=functions, args=GRPOConfig(reward_weights=functions.reward_weights))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.card import Fault, Reward, score_group
from rewards.combine import gdpo_columns, reward_names
from rewards.config import RewardConfig
from rewards.types import Card, Row


@dataclass(frozen=True, slots=True)
class ScoredBatch:
    """What one call of the trainer scored: all lists are per completion and parallel."""

    prompts: list[str]
    completions: list[str]
    truncated: list[bool]
    rows: list[Row]
    groups: list[int]
    """Number of the group that each completion belongs to."""
    cards: list[Card]
    totals: list[float]
    """As returned to TRL."""
    faults: list[tuple[int, Fault]]
    """(group, fault)."""
    config: RewardConfig


Observer = Callable[[ScoredBatch], None]
Agree = Callable[[frozenset[tuple[str, str]]], Iterable[tuple[str, str]]]
"""Takes the (prompt, reward) pairs that this process found faulty, returns those of all processes."""


class TruncationDetector:
    """A completion is truncated when it fills the token limit and does not end with an end token.

    >>> detect = TruncationDetector(3, {2})
    >>> detect([5, 6, 7]), detect([5, 6, 2]), detect([5])
    (True, False, False)
    """

    def __init__(self, max_completion_length: int, eos_ids: Iterable[int]) -> None:
        self.max_completion_length = max_completion_length
        self.eos_ids = frozenset(eos_ids)

    def __call__(self, completion_ids: Sequence[int]) -> bool:
        return len(completion_ids) >= self.max_completion_length and completion_ids[-1] not in self.eos_ids


class RewardSnapshot:
    """Holds the configuration in force and scores batches with it. `snapshot.config = new` counts from the next
    batch."""

    def __init__(
        self, config: RewardConfig, *, own: Mapping[str, Reward] | None = None,
        truncated: Callable[[Sequence[int]], bool] | None = None, observer: Observer | None = None,
        agree: Agree | None = None,
    ) -> None:  # fmt: skip
        self.config = config
        self.own = dict(own or {})
        self.truncated = truncated
        self.observer = observer
        self.agree = agree
        self._last: tuple[Any, Any, RewardConfig, ScoredBatch] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "observer": None, "agree": None, "_last": None}

    def batch(self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]) -> ScoredBatch:
        """The scored batch; computed once for all callables that ask for the same completions."""
        last = self._last
        if last and last[0] is prompts and last[1] is completions and last[2] is self.config:
            return last[3]
        scored = self._score(prompts, completions, columns)
        self._last = (prompts, completions, self.config, scored)
        if self.observer:
            self.observer(scored)
        return scored

    def _score(self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]) -> ScoredBatch:
        config = self.config
        turns = [split_prompt(prompt) for prompt in prompts]
        texts = [completion_text(completion) for completion in completions]
        rows = _rows(len(texts), columns)
        ids = columns.get("completion_ids")
        cut = _flags(columns.get("truncated"), len(texts))
        if self.truncated and ids is not None:
            cut = [self.truncated(i) for i in ids]
        groups = _groups(turns, rows)
        cards: list[Card | None] = [None] * len(texts)
        faults: list[tuple[int, Fault]] = []
        members: dict[int, list[int]] = {}
        for i, group in enumerate(groups):
            members.setdefault(group, []).append(i)

        def run(group: int, dropped: frozenset[str]) -> list[Fault]:
            where = members[group]
            prompt, history = turns[where[0]]
            done = score_group(
                prompt, [texts[i] for i in where], rows[where[0]], config, history=history,
                truncated=[cut[i] for i in where], own=self.own, dropped=dropped,
            )  # fmt: skip
            for i, card in zip(where, done.cards, strict=True):
                cards[i] = card
            return done.faults

        for group in members:
            faults += [(group, fault) for fault in run(group, frozenset())]
        if self.agree:
            mine = frozenset((turns[members[g][0]][0], fault.reward) for g, fault in faults)
            everywhere = frozenset(self.agree(mine))
            for group in members:
                dropped = frozenset(reward for prompt, reward in everywhere if prompt == turns[members[group][0]][0])
                if any((turns[members[group][0]][0], reward) not in mine for reward in dropped):
                    run(group, dropped)
        done_cards = [card for card in cards if card is not None]
        totals = [card.total for card in done_cards]
        return ScoredBatch([p for p, _ in turns], texts, cut, rows, groups, done_cards, totals, faults, config)


class RewardColumn:
    """One reward as TRL calls it: a picklable callable with a stable `__name__`."""

    def __init__(self, name: str, snapshot: RewardSnapshot) -> None:
        self.__name__ = name
        self.snapshot = snapshot

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        scored = self.snapshot.batch(prompts, completions, columns)
        return [self._value(card) for card in scored.cards]

    def _value(self, card: Card) -> float | None:
        if self.__name__ == "total":
            return card.total
        if self.__name__ == "guard":
            return card.raw.guard
        if self.__name__ == "substance":
            return card.raw.substance
        return card.raw.rewards.get(self.__name__)


class GdpoColumn(RewardColumn):
    """A part as trained by `normalize_then_sum`: factor x focus x score, 0 when gated."""

    def _value(self, card: Card) -> float | None:
        if self.__name__ == "guard":
            return card.raw.guard
        return gdpo_columns(card.raw, self.snapshot.config, (self.__name__,))[0]


class RewardFunctions(list[RewardColumn]):
    """The callables for `reward_funcs`, with the matching `reward_weights` and the snapshot they all read."""

    def __init__(self, columns: Iterable[RewardColumn], reward_weights: list[float], snapshot: RewardSnapshot) -> None:
        super().__init__(columns)
        self.reward_weights = reward_weights
        self.snapshot = snapshot

    def __reduce__(self) -> tuple[Any, ...]:
        return RewardFunctions, (list(self), self.reward_weights, self.snapshot)


def trl_reward_functions(
    config: RewardConfig, *, snapshot: RewardSnapshot | None = None, own: Mapping[str, Reward] | None = None,
    truncated: Callable[[Sequence[int]], bool] | None = None, observer: Observer | None = None,
    agree: Agree | None = None,
) -> RewardFunctions:  # fmt: skip
    """The reward functions for GRPOTrainer: `total` with weight 1, then every part with weight 0.

    With `aggregation = "normalize_then_sum"` the parts and the guard are trained with the configured weights and
    `total` has weight 0.

    >>> functions = trl_reward_functions(RewardConfig.default())
    >>> [f.__name__ for f in functions][:3], functions.reward_weights[:3]
    (['total', 'length', 'filler'], [1.0, 0.0, 0.0])
    """
    snapshot = snapshot or RewardSnapshot(config, own=own, truncated=truncated, observer=observer, agree=agree)
    names = [*reward_names(config), *(n for n in snapshot.own if n not in reward_names(config))]
    if config.aggregation == "normalize_then_sum":
        columns = [RewardColumn("total", snapshot), *(GdpoColumn(n, snapshot) for n in (*names, "guard"))]
        weights = [0.0, *(config.weights.get(n, 0.0) for n in names), config.weights.get("guard", 1.0)]
        return RewardFunctions(columns, weights, snapshot)
    parts = [*names, "guard", "substance"]
    return RewardFunctions([RewardColumn(n, snapshot) for n in ("total", *parts)], [1.0] + [0.0] * len(parts), snapshot)


def completion_text(completion: Any) -> str:
    """The text of a completion: a string, or the assistant's turns of a conversation."""
    if isinstance(completion, str):
        return completion
    return "\n".join(
        content_text(message.get("content"))
        for message in completion
        if message.get("role", "assistant") == "assistant"
    )


def content_text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    return ""


def split_prompt(prompt: Any) -> tuple[str, tuple[str, ...]]:
    """(last user turn, earlier turns without the system prompt).

    >>> split_prompt([{"role": "system", "content": "Be Ada."}, {"role": "user", "content": "Hi"}])
    ('Hi', ())
    """
    if isinstance(prompt, str):
        return prompt, ()
    turns = [(m.get("role"), content_text(m.get("content"))) for m in prompt if m.get("role") != "system"]
    last = max((i for i, (role, _) in enumerate(turns) if role == "user"), default=len(turns) - 1)
    if last < 0:
        return "", ()
    return turns[last][1], tuple(text for _, text in turns[:last])


def _rows(n: int, columns: Mapping[str, Any]) -> list[Row]:
    names = [
        name for name in Row.__dataclass_fields__ if isinstance(columns.get(name), list) and len(columns[name]) == n
    ]
    return [Row.from_columns({name: columns[name][i] for name in names}) for i in range(n)]


def _flags(column: Any, n: int) -> list[bool]:
    """A `truncated` column that the rollout brought along, else all False."""
    return [bool(flag) for flag in column] if isinstance(column, list) and len(column) == n else [False] * n


def _groups(turns: Sequence[tuple[str, tuple[str, ...]]], rows: Sequence[Row]) -> list[int]:
    """Neighbours with the same prompt and row are a group."""
    out: list[int] = []
    for i in range(len(turns)):
        same = i > 0 and turns[i] == turns[i - 1] and rows[i] == rows[i - 1]
        out.append(out[-1] if same else (out[-1] + 1 if out else 0))
    return out
