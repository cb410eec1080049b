"""The sample job: one scored group for each prompt, written down as soon as it is there.

    job.data   = {"prompts": [{"prompt", "history", "row"}, ...], "n": 8}
    job.params = temperature, top_p, max_completion, seed (`settings.EvalSettings`), "policy" (the name to show)

Only `__main__` imports it.
"""

from __future__ import annotations

from typing import Any

from ada_tui.errors import BadInput
from ada_tui.worker.backends import choose
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampling, sample_groups
from ada_tui.worker.scoring import Asked, row_of, scorer_of

ROWS = {"cpu": 32, "cuda": 512}
"""Replies generated at once, by device."""

DEFAULT_CAP = 128
"""Tokens when the job names no cap."""


def run(context: JobContext) -> None:
    asked = [_asked(item, context) for item in context.job.data.get("prompts", [])]
    n = int(context.job.data.get("n", 8))
    if not asked or n < 1:
        raise BadInput(f"{context.jobdir.path}: nothing to sample; give at least one prompt and one completion")
    scorer = scorer_of(context)
    context.started(steps=len(asked))
    loaded = choose(context)[0].load(context, train=False)
    policy = str(context.job.params.get("policy") or ("adapter" if context.job.model.get("adapter") else "base"))
    chats = [context.persona.messages(item.history, item.prompt) for item in asked]
    context.phase("sample", f"0 of {len(asked)} groups", 0.0)
    groups = sample_groups(
        loaded.model, loaded.tokenizer, chats, n, sampling(context.job.params), rows=ROWS[loaded.device],
        check=context.check,
    )  # fmt: skip
    for done, (index, replies) in enumerate(groups, 1):
        group, _ = scorer.score(
            asked[index], replies, id=f"sample-{index}", batch_id=index, source="sample", policy=policy
        )
        context.group(group)
        context.phase("sample", f"{done} of {len(asked)} groups", done / len(asked))
        context.check()


def sampling(params: dict[str, Any], cap: int = DEFAULT_CAP) -> Sampling:
    """How to draw, from a settings section."""
    return Sampling(
        temperature=float(params.get("temperature", 0.7)), top_p=float(params.get("top_p", 0.95)),
        max_tokens=int(params.get("max_completion") or cap), seed=int(params.get("seed", 1234)),
    )  # fmt: skip


def _asked(item: Any, context: JobContext) -> Asked:
    if not isinstance(item, dict) or not isinstance(item.get("prompt"), str) or not item["prompt"].strip():
        raise BadInput(f"{context.jobdir.path / 'job.json'}: every prompt must be text; found {item!r:.60}")
    return Asked(item["prompt"], list(item.get("history") or []), row_of(item.get("row") or {}))
