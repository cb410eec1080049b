"""Picks and rankings as preference data: TRL's DPO pairs and KTO verdicts.

A person's pick (`ada_tui.picks`) decides; groups without one are ranked by the rules. Not here: the pairs a dpo job
trains on (`evaluate.candidates`). Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from ada_tui.persona import Persona
from ada_tui.picks import Pick
from ada_tui.protocol import Group
from rewards import RawScores, RewardConfig
from rewards.combine import totals_many

GAP = 0.1
"""Least difference of totals at which a ranking counts as a preference (two steps of the scale)."""
Form = Literal["dpo", "kto"]


def preferences(
    groups: Iterable[Group],
    verdicts: Mapping[str, Pick],
    config: RewardConfig,
    persona: Persona,
    form: Form = "dpo",
    gap: float = GAP,
) -> Iterator[dict[str, Any]]:
    """One DPO record, or two KTO records (good, bad), per group in which one reply is better than another.

    A pick names the best reply, the worst one, or both; what it leaves open the rules decide, and after a tie there is
    nothing to learn. DPO records carry `by`: "person" or "rules".
    """
    for group in groups:
        pair = _pair(group, verdicts.get(group.id), config, gap)
        if pair is None:
            continue
        best, worst = (group.completions[index].text for index in pair)
        prompt = persona.messages(group.history, group.prompt)
        if form == "dpo":
            pick = verdicts.get(group.id)
            by = "person" if pick is not None and pick.decided else "rules"
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
    texts = [completion.text for completion in group.completions]
    totals = totals_many((RawScores.from_dict(completion.raw) for completion in group.completions), config)
    order = sorted(range(len(totals)), key=lambda index: totals[index])
    if pick is not None and pick.tie:
        return None
    best = pick.chosen if pick is not None and 0 <= pick.chosen < len(texts) else None
    worst = pick.rejected if pick is not None and pick.rejected in range(len(texts)) else None
    if best is None and worst is None:
        return (order[-1], order[0]) if totals[order[-1]] - totals[order[0]] >= gap else None
    if best is None:
        best = next(index for index in reversed(order) if worst is not None and texts[index] != texts[worst])
    if worst is None:
        worst = next(index for index in order if texts[index] != texts[best])
    return None if texts[best] == texts[worst] else (best, worst)
