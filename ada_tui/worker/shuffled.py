"""CONTROL, never for real training: the totals of each group are dealt out at random among its completions.

What is scored, stored and charted stays true; only what the trainer learns from is shuffled. A run with it must not
improve; when it does, something other than the rewards improved it. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ada_tui.errors import BadInput
from ada_tui.protocol import Alarm
from rewards.trl import RewardColumn, RewardFunctions

WARNING = Alarm(
    kind="control_run",
    detail="CONTROL RUN: rewards are shuffled within each group, so this adapter must not be better than its start",
    action="do not ship it; it exists to be compared with",
)


class ShuffledTotal(RewardColumn):
    """`total`, permuted within each group; its mean and spread stay as they are."""

    def __init__(self, rewards: RewardFunctions, seed: int) -> None:
        super().__init__("total", rewards.snapshot)
        self._random = random.Random(seed)

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        scored = self.snapshot.batch(prompts, completions, columns)
        members: dict[int, list[int]] = {}
        for index, group in enumerate(scored.groups):
            members.setdefault(group, []).append(index)
        dealt: list[float | None] = [None] * len(scored.cards)
        for where in members.values():
            values = [scored.cards[index].total for index in where]
            self._random.shuffle(values)
            for index, value in zip(where, values, strict=True):
                dealt[index] = value
        return dealt


def shuffle(rewards: RewardFunctions, seed: int) -> RewardFunctions:
    """The same reward functions with a shuffled total.

    Raises:
        BadInput: the total is not what is trained (normalize_then_sum).
    """
    if rewards.reward_weights[0] != 1.0:
        raise BadInput("grpo.shuffle_rewards needs aggregation = sum_then_normalize: else the total is not trained on")
    return RewardFunctions([ShuffledTotal(rewards, seed), *rewards[1:]], rewards.reward_weights, rewards.snapshot)
