"""The eval job: several policies answer the same held-out prompts with the same seeds; one base model for all of them.

    job.data   = {"held_out": path, "arms": {"base": "", "sft": folder, "grpo": folder}, "best_of": {arm: n},
                  "regression": [capability items], "neutral": text}; the last three may be missing
    job.params = samples, prompts, temperature, top_p, max_completion, seed (`settings.EvalSettings`)

Every group is stored (source "eval", policy = arm), and each arm gets an Outcome "arm:<name>"; with the probes also
"probe:<name>" and "regression:<name>". Statistics over them live in `ada_tui.evaluate`. Only `__main__` imports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from peft import PeftModel

from ada_tui.dataset import PromptRow, load_rows
from ada_tui.errors import BadInput
from ada_tui.worker.adapters import add_adapter, load_adapter, speaking
from ada_tui.worker.backends import choose
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampled, sample_groups
from ada_tui.worker.lengths import completion_cap
from ada_tui.worker.probe import Probes
from ada_tui.worker.sample import ROWS, sampling
from ada_tui.worker.scoring import Asked, Scorer, scorer_of


def run(context: JobContext) -> None:
    params = context.job.params
    arms = {str(name): context.resolve(str(folder)) if folder else None for name, folder in _arms(context).items()}
    rows = spread(load_rows(context.path_of(context.job.data, "held_out")), int(params.get("prompts", 0)))
    scorer = scorer_of(context)
    context.started(steps=len(rows) * len(arms))
    loaded = choose(context)[0].load(context, train=False, adapter="")
    model = _with_adapters(loaded.model, arms)
    cap = completion_cap(loaded.tokenizer, rows, int(params.get("max_completion", 0)))
    draw = sampling(params, cap)
    samples = int(params.get("samples", 4))
    best_of = {str(name): int(n) for name, n in (context.job.data.get("best_of") or {}).items()}
    probes = Probes(context, model, loaded.tokenizer, rows, set(arms))
    at_once = max(ROWS[loaded.device], samples)
    for number, (arm, folder) in enumerate(arms.items()):
        with speaking(model, arm if folder else None):
            measures = _run_arm(
                context, arm, rows, scorer, best_of.get(arm, 1),
                probes.listen(sample_groups(
                    model, loaded.tokenizer, [row.messages(context.persona) for row in rows],
                    samples * best_of.get(arm, 1), draw, rows=at_once, check=context.check,
                )),
                number / len(arms), len(arms),
            )  # fmt: skip
        if arm not in best_of:
            probes.measure(arm, folder is not None)
        context.outcome(f"arm:{arm}", {"adapter": str(folder or ""), "cap": cap, **measures})


def spread(rows: list[PromptRow], wanted: int) -> list[PromptRow]:
    """`wanted` rows at even distances (0 = all): the file is ordered by topic, its head alone would be one-sided."""
    if wanted <= 0 or wanted >= len(rows):
        return rows
    return [rows[i * len(rows) // wanted] for i in range(wanted)]


def best(scorer: Scorer, asked: Asked, replies: list[Sampled], n: int) -> list[Sampled]:
    """Of every `n` replies the one with the highest total: what selection alone reaches, without training."""
    cards = scorer.score(asked, replies, id="", batch_id=0, source="", policy="")[1]
    chunks = [range(start, start + n) for start in range(0, len(replies), n)]
    return [replies[max(chunk, key=lambda i: cards[i].total)] for chunk in chunks]


def _arms(context: JobContext) -> dict[str, Any]:
    arms = context.job.data.get("arms")
    if not isinstance(arms, dict) or not arms:
        raise BadInput(f"{context.jobdir.path / 'job.json'}: no arms to compare; make the job with `ada-tui eval`")
    return arms


def _with_adapters(base: Any, arms: dict[str, Path | None]) -> Any:
    model = base
    for name, folder in arms.items():
        if folder is None:
            continue
        if isinstance(model, PeftModel):
            add_adapter(model, folder, name)
        else:
            model = load_adapter(base, folder, train=False, name=name)
    return model.eval()


def _run_arm(
    context: JobContext, arm: str, rows: list[PromptRow], scorer: Scorer, best_of: int,
    groups: Iterator[tuple[int, Any]], before: float, arms: int,
) -> dict[str, Any]:  # fmt: skip
    """Score and store the groups of one arm; its measures."""
    totals: dict[str, float] = {}
    parts: dict[str, list[float]] = defaultdict(list)
    tokens: list[int] = []
    words: list[int] = []
    truncated: list[bool] = []
    context.phase("evaluate", f"{arm}: 0 of {len(rows)} prompts", before)
    for done, (index, replies) in enumerate(groups, 1):
        row = rows[index]
        asked = Asked(row.prompt, row.history, row.row)
        if best_of > 1:
            replies = best(scorer, asked, replies, best_of)
        group, cards = scorer.score(
            asked, replies, id=f"{arm}-{row.id}", batch_id=index,
            source="eval", policy=arm,
        )  # fmt: skip
        context.group(group)
        totals[row.id] = fmean(card.total for card in cards)
        for card, reply in zip(cards, replies, strict=True):
            tokens.append(len(reply.ids))
            words.append(card.words)
            truncated.append(reply.truncated)
            for name, value in {**card.raw.rewards, "guard": card.raw.guard, "substance": card.raw.substance}.items():
                if value is not None:
                    parts[name].append(value)
        context.phase("evaluate", f"{arm}: {done} of {len(rows)} prompts", before + done / len(rows) / arms)
        context.check()
    return {
        "total": fmean(totals.values()), "rewards": {name: fmean(values) for name, values in parts.items()},
        "prompts": len(rows), "samples": len(tokens) // len(rows), "tokens": fmean(tokens), "words": fmean(words),
        "truncated": fmean(truncated), "per_prompt": totals,
    }  # fmt: skip
