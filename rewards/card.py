"""Putting it together: one Card for a completion, Cards and advantages for a group.

It adds no rule of its own. A reward that fails is dropped for its whole group and named; nothing here raises because
of a text.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rewards.combine import batch_advantages, total
from rewards.config import RewardConfig
from rewards.filler import filler
from rewards.guard import Guarded, guard
from rewards.kinds import decide
from rewards.length import length
from rewards.substance import substance
from rewards.text import quantise, view
from rewards.tone import tone
from rewards.types import Card, RawScores, Result, Row
from rewards.uncertainty import uncertainty
from rewards.unsolicited import unsolicited

Reward = Callable[..., Result]
"""`reward(prompt, completion, row, config, *, truncated=False) -> Result`."""

BUILT_IN: Mapping[str, Reward] = {
    "length": length, "filler": filler, "tone": tone, "uncertainty": uncertainty, "unsolicited": unsolicited,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """A reward that could not be used for a group, and why."""

    reward: str
    error: str
    index: int = -1
    """Completion of the group on which it failed; -1 = the whole call."""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The cards of one prompt's completions and their advantages as a lone group."""

    cards: list[Card]
    advantages: list[float]
    faults: list[Fault] = field(default_factory=list)


def score(
    prompt: str, completion: str, row: Row, config: RewardConfig, *, history: Sequence[str] = (),
    truncated: bool = False,
    own: Mapping[str, Reward] | None = None,
) -> Card:  # fmt: skip
    """The card of one completion.

    Args:
        prompt: the last user turn.
        completion: the reply, as generated.
        row: what is known about the prompt.
        config: weights and phrase lists.
        history: earlier turns, oldest first: what they mention is part of the topic and no new detail.
        truncated: the reply was cut off by the token limit.
        own: the person's own rewards by name (`rewards.own`).

    >>> card = score("Morning", "Morning! Sleep ok?", Row(), RewardConfig.default())
    >>> card.kind, card.total
    ('greeting', 1.0)
    """
    return score_group(prompt, [completion], row, config, history=history, truncated=[truncated], own=own).cards[0]


def score_group(
    prompt: str, completions: Sequence[str], row: Row, config: RewardConfig, *, history: Sequence[str] = (),
    truncated: Sequence[bool] | None = None, own: Mapping[str, Reward] | None = None, dropped: Collection[str] = (),
) -> GroupScore:  # fmt: skip
    """The cards of a group and its advantages. Advantages are those of a lone group: a training batch has several.

    Args:
        dropped: rewards that are not to be used (another process found them faulty).
    """
    flags = list(truncated) if truncated is not None else [False] * len(completions)
    faults: list[Fault] = []
    columns: dict[str, list[Result]] = {}
    for name, reward in {**BUILT_IN, **(own or {})}.items():
        if name == "uncertainty" and history:
            reward = partial(uncertainty, history=history)
        if name not in dropped:
            columns[name] = _column(name, reward, prompt, completions, row, config, flags, faults)
        else:
            columns[name] = [_missing("was dropped by another process")] * len(completions)
    guards = [guard(prompt, c, row, config, truncated=t) for c, t in zip(completions, flags, strict=True)]
    kind, kind_by = decide(prompt, row, config)
    cards = []
    for i, completion in enumerate(completions):
        g: Guarded = guards[i]
        weight = substance(prompt, completion, row, config, history=history)
        results = {name: column[i] for name, column in columns.items()}
        raw = RawScores({n: r.score for n, r in results.items()}, g.value, g.gated, weight.score, kind, bool(row.gold))
        results |= {"guard": g.result, "substance": weight}
        cards.append(Card(raw, round(total(raw, config), 6), kind_by, results, len(view(completion).words)))
    return GroupScore(cards, batch_advantages([[card.raw for card in cards]], config)[0] if cards else [], faults)


def _missing(why: str) -> Result:
    return Result(None, (), (why,))


def _column(
    name: str, reward: Reward, prompt: str, completions: Sequence[str], row: Row, config: RewardConfig,
    flags: Sequence[bool], faults: list[Fault],
) -> list[Result]:  # fmt: skip
    """One reward over a group; on any failure no opinion at all, for every completion."""
    column: list[Result] = []
    for i, (completion, truncated) in enumerate(zip(completions, flags, strict=True)):
        try:
            column.append(checked(reward(prompt, completion, row, config, truncated=truncated)))
        except Exception as error:  # a person's own code may raise anything, and the run must go on
            faults.append(Fault(name, f"{type(error).__name__}: {error}", i, traceback.format_exc(limit=8)))
            return [_missing(f"the reward {name!r} failed ({type(error).__name__}: {error})")] * len(completions)
    if len({result.score is None for result in column}) > 1:
        what = "gives None for some completions of a group and a score for others; None must depend on the row only"
        faults.append(Fault(name, what))
        return [_missing(f"the reward {name!r} {what}")] * len(completions)
    return column


def checked(value: object) -> Result:
    """What a reward returned, as a Result with a finite score of 0..1 (a bare number will do).

    Raises:
        ValueError: it is none.
    """
    result = value if isinstance(value, Result) else None
    number: object = result.score if result is not None else value
    if number is None:
        return result or Result(None)
    if isinstance(number, str | bytes) or not hasattr(number, "__float__"):
        raise ValueError(f"returned {number!r}, which is no number")
    score = float(number)
    if not math.isfinite(score):
        raise ValueError(f"returned {number!r}, which is no finite number")
    if not 0 <= score <= 1:
        raise ValueError(f"returned {number!r}, which is not in 0..1")
    return Result(quantise(score), result.spans if result else (), result.why if result else ())
