"""Picks and rankings as preference data: TRL's DPO pairs and KTO verdicts.

A pick is one line of JSON in picks.jsonl of a run: {"type": "pick", "group": ID, "chosen": N} and, where the person
said which reply is worst, "rejected": N (positions in the group). Groups without a pick are ranked by the rules.
Not here: the pairs that a dpo job trains on (`evaluate.candidates`). Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from ada_tui.jobs import JobDir, read_lines
from ada_tui.persona import Persona
from ada_tui.protocol import Group
from rewards import RawScores, RewardConfig
from rewards.combine import totals_many

GAP = 0.1
"""Least difference of totals at which a ranking counts as a preference (two steps of the scale)."""
Form = Literal["dpo", "kto"]


@dataclass(frozen=True, slots=True)
class Pick:
    """A person's verdict on one group: positions of the best reply and, when said, of the worst."""

    chosen: int
    rejected: int | None = None


def picks(job: JobDir) -> dict[str, Pick]:
    """The newest pick per group; lines of other types and damaged lines are passed over."""
    found: dict[str, Pick] = {}
    for _, line in read_lines(job.path / "picks.jsonl"):
        try:
            data = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(data, dict) or data.get("type") != "pick" or type(data.get("chosen")) is not int:
            continue
        worst = data.get("rejected")
        found[str(data.get("group", ""))] = Pick(data["chosen"], worst if type(worst) is int else None)
    return found


def preferences(
    groups: Iterable[Group],
    verdicts: Mapping[str, Pick],
    config: RewardConfig,
    persona: Persona,
    form: Form = "dpo",
    gap: float = GAP,
) -> Iterator[dict[str, Any]]:
    """One DPO record, or two KTO records (good, bad), per group in which one reply is better than another.

    A pick decides which reply is best; which is worst it decides too, or the rules do. DPO records carry `by`:
    "person" or "rules".
    """
    for group in groups:
        pair = _pair(group, verdicts.get(group.id), config, gap)
        if pair is None:
            continue
        best, worst = (group.completions[index].text for index in pair)
        prompt = persona.messages(group.history, group.prompt)
        if form == "dpo":
            by = "person" if group.id in verdicts else "rules"
            yield {"prompt": prompt, "chosen": _reply(best), "rejected": _reply(worst), "by": by}
        else:
            yield {"prompt": prompt, "completion": _reply(best), "label": True}
            yield {"prompt": prompt, "completion": _reply(worst), "label": False}


def _reply(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def _pair(group: Group, pick: Pick | None, config: RewardConfig, gap: float) -> tuple[int, int] | None:
    """(best, worst) positions, or None when the group says nothing."""
    if len({completion.text for completion in group.completions}) < 2:
        return None
    totals = totals_many((RawScores.from_dict(c.raw) for c in group.completions), config)
    order = sorted(range(len(totals)), key=lambda index: totals[index])
    if pick is None:
        return (order[-1], order[0]) if totals[order[-1]] - totals[order[0]] >= gap else None
    if not 0 <= pick.chosen < len(totals):
        return None
    texts = [completion.text for completion in group.completions]
    if pick.rejected is not None and 0 <= pick.rejected < len(totals):
        return None if texts[pick.rejected] == texts[pick.chosen] else (pick.chosen, pick.rejected)
    return pick.chosen, next(index for index in order if texts[index] != texts[pick.chosen])
