"""Replies scored by the rules and written down as a `protocol.Group`. Only ada_tui.worker may import it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ada_tui.errors import BadInput
from ada_tui.protocol import Alarm, Completion, Group
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampled
from rewards import Card, ConfigError, Fault, RewardConfig, Row, score_group
from rewards.card import Reward
from rewards.own import Found, find


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt to answer: what the person says, what was said before, what is known about it."""

    prompt: str
    history: list[dict[str, str]]
    row: Row


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores groups under one configuration."""

    config: RewardConfig
    own: Mapping[str, Reward]

    def score(
        self, asked: Asked, replies: Sequence[Sampled], *, id: str, batch_id: int, source: str, policy: str,
        step: int = 0, control_version: int = 0,
    ) -> tuple[Group, list[Card]]:  # fmt: skip
        """The group as it is stored, and the cards behind it."""
        scored = score_group(
            asked.prompt, [reply.text for reply in replies], asked.row, self.config,
            history=[turn["content"] for turn in asked.history],
            truncated=[reply.truncated for reply in replies], own=self.own,
        )  # fmt: skip
        dropped = sorted({fault.reward for fault in scored.faults})
        completions = [
            completion(card, reply.text, len(reply.ids), reply.truncated, dropped)
            for card, reply in zip(scored.cards, replies, strict=True)
        ]
        group = Group(
            id=id, batch_id=batch_id, step=step, source=source, policy=policy, prompt=asked.prompt,
            history=asked.history, row=asked.row.to_columns(), kind_by=scored.cards[0].kind_by,
            control_version=control_version, completions=completions,
        )  # fmt: skip
        return group, scored.cards


def completion(card: Card, text: str, tokens: int, truncated: bool, dropped: list[str]) -> Completion:
    """One reply as it is stored."""
    return Completion(
        text=text, tokens=tokens, truncated=truncated, words=card.words, raw=card.raw.to_dict(), dropped=dropped
    )


def reward_config(context: JobContext, own: Found, rewards: dict[str, Any] | None = None) -> RewardConfig:
    """The reward configuration of the job, or `rewards`, with the job's aggregation and scaling and the own weights.

    Raises:
        BadInput: it cannot be used; the message says why.
    """
    plain = dict(context.job.rewards if rewards is None else rewards)
    for name in ("aggregation", "scale_rewards"):
        if name in context.job.params:
            plain[name] = context.job.params[name]
    try:
        config = RewardConfig.from_dict(plain) if plain.get("weights") else RewardConfig.default()
    except (ConfigError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise BadInput(f"the reward configuration cannot be used: {error}") from None
    return own.configure(config)


def own_rewards(context: JobContext) -> Found:
    """The person's own rewards: from the workspace that the job directory stands in, and from nowhere else.

    A file that cannot be used is left out and named in an alarm.
    """
    name = context.job.params.get("own_rewards")
    if not isinstance(name, str) or not name:
        return Found()
    root = Path(context.job.workspace).resolve()
    folder = (root / name).resolve()
    if not folder.is_relative_to(root) or not context.jobdir.path.resolve().is_relative_to(root / "checkpoints"):
        context.emit(
            Alarm(
                kind="own_rewards", detail=f"{folder} is not in the workspace of this job: its code is not run",
                action="put your rewards into my_rewards/ of the workspace and start the job there",
            )
        )  # fmt: skip
        return Found()
    found = find(folder)
    for fault in found.faults:
        context.emit(Alarm(kind="reward_fault", detail=fault.error, action=f"mend the file in {folder}"))
    return found


def scorer_of(context: JobContext) -> Scorer:
    """The scorer of a job that does not change its rewards while it runs. Raises BadInput."""
    own = own_rewards(context)
    return Scorer(reward_config(context, own), own.rewards)


def row_of(columns: dict[str, Any]) -> Row:
    """A row from a job record. Raises BadInput."""
    try:
        return Row.from_columns(columns)
    except ValueError as error:
        raise BadInput(f"the row of a prompt cannot be used: {error}") from None


def describe(fault: Fault) -> str:
    """One line about a reward that failed."""
    return f"reward {fault.reward!r} was dropped for a group: {fault.error}"
