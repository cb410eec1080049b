"""What an evaluation measures on the model itself: perplexity, distance from the SFT policy, the capability items.

Prompts are padded on the left, so that the replies of a batch end together and logits are computed for them alone.
Only ada_tui.worker may import it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ada_tui.dataset import PromptRow
from ada_tui.persona import Persona
from ada_tui.worker.adapters import speaking
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampled, Sampling, Tokens, ending_ids, prompt_ids, sample_groups

AT_ONCE = {"cpu": 8, "cuda": 64}
"""Sequences computed at the same time."""

ITEM_TOKENS = 48
"""Cap of the reply to a capability item."""

Speaking = Callable[[], AbstractContextManager[None]]
"""Makes one policy of the model answer for the time being."""


KL_REPLIES = {"cpu": 1, "cuda": 4}
"""Replies to each prompt over which the distance from SFT is measured."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and a reply to it (with its end token), as tokens."""

    prompt: Tokens
    reply: Tokens


def reference_turns(model: Any, tokenizer: Any, rows: Sequence[PromptRow], persona: Persona) -> list[Turn]:
    """The curated reply of every row that has one."""
    with_reply = [row for row in rows if row.row.reference]
    prompts = prompt_ids(tokenizer, [row.messages(persona) for row in with_reply])
    end = min(ending_ids(model)) if tokenizer.eos_token_id is None else tokenizer.eos_token_id
    return [
        Turn(prompt, [*tokenizer(row.row.reference, add_special_tokens=False)["input_ids"], end])
        for prompt, row in zip(prompts, with_reply, strict=True)
    ]


def neutral_turn(tokenizer: Any, text: str) -> Turn:
    """A text without a chat around it: its first token is given, the rest is predicted."""
    ids = tokenizer(text.strip(), add_special_tokens=False)["input_ids"]
    return Turn(ids[:1], ids[1:])


def perplexity(model: Any, turns: Sequence[Turn], pad: int, check: Callable[[], None] = lambda: None) -> float | None:
    """exp of the mean negative log-likelihood per reply token; None without any."""
    total, tokens = 0.0, 0
    for batch in _batches(turns, model):
        check()
        logits, targets, mask = _forward(model, batch, pad)
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        total += float((losses * mask).sum())
        tokens += int(mask.sum())
    return math.exp(total / tokens) if tokens else None


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a policy is from another one, over its own replies."""

    kl: float
    """KL(policy || reference) in nats per reply: exact over the vocabulary at every token, summed over the reply."""
    entropy: float
    """Mean entropy of the policy in nats per token."""


def distance(
    model: Any, policy: Speaking, reference: Speaking, turns: Sequence[Turn], pad: int,
    check: Callable[[], None] = lambda: None,
) -> Distance:  # fmt: skip
    """Distance of `policy` from `reference` over `turns`, which `policy` sampled."""
    kl = entropy = 0.0
    tokens = 0
    for batch in _batches(turns, model):
        check()
        with policy():
            logits, _, mask = _forward(model, batch, pad)
            ours = logits.log_softmax(dim=-1)
        with reference():
            theirs = _forward(model, batch, pad)[0].log_softmax(dim=-1)
        chances = ours.exp()
        kl += float(((chances * (ours - theirs)).sum(dim=-1) * mask).sum())
        entropy -= float(((chances * ours).sum(dim=-1) * mask).sum())
        tokens += int(mask.sum())
    return Distance(kl / len(turns), entropy / tokens)


def answer_items(
    model: Any, tokenizer: Any, items: Sequence[dict[str, Any]], persona: Persona,
    check: Callable[[], None] = lambda: None,
) -> dict[str, str]:  # fmt: skip
    """Item id -> greedy reply, asked as the deployed assistant is asked: with its system prompt."""
    chats = [persona.messages([], str(item["prompt"])) for item in items]
    greedy = Sampling(temperature=0.0, top_p=1.0, max_tokens=ITEM_TOKENS)
    groups = sample_groups(model, tokenizer, chats, 1, greedy, rows=AT_ONCE[model.device.type], check=check)
    return {str(items[index]["id"]): replies[0].text for index, replies in groups}


class Probes:
    """Measures each arm on the model itself, when the job asks for it (`EvalSettings.probes`)."""

    def __init__(self, context: JobContext, model: Any, tokenizer: Any, rows: list[PromptRow], arms: set[str]) -> None:
        self.context, self.model, self.tokenizer = context, model, tokenizer
        self.items = context.job.data.get("regression") or []
        self.neutral = str(context.job.data.get("neutral") or "")
        self.wanted = bool(self.items or self.neutral)
        self.has_sft = "sft" in arms
        self.references = reference_turns(model, tokenizer, rows, context.persona) if self.wanted else []
        self.prompts = prompt_ids(tokenizer, [row.messages(context.persona) for row in rows]) if self.wanted else []
        self._turns: list[Turn] = []

    def listen(self, groups: Iterator[tuple[int, list[Sampled]]]) -> Iterator[tuple[int, list[Sampled]]]:
        """Passes the groups of an arm on and remembers a few replies to each prompt."""
        self._turns = []
        kept = KL_REPLIES[self.model.device.type]
        for index, replies in groups:
            if self.wanted:
                self._turns += [Turn(self.prompts[index], reply.ids) for reply in replies[:kept]]
            yield index, replies

    def measure(self, arm: str, adapted: bool) -> None:
        """Measure an arm; its outcomes are "probe:<arm>" and "regression:<arm>"."""
        if not self.wanted:
            return
        check, pad = self.context.check, self.tokenizer.pad_token_id
        self.context.phase("probe", f"{arm}: perplexity and distance from SFT")
        own, found = partial(speaking, self.model, arm if adapted else None), dict[str, Any]()
        with own():
            found["reference_perplexity"] = perplexity(self.model, self.references, pad, check)
            if self.neutral:
                turn = neutral_turn(self.tokenizer, self.neutral)
                found["neutral_perplexity"] = perplexity(self.model, [turn], pad, check)
        if self.has_sft:
            apart = distance(self.model, own, partial(speaking, self.model, "sft"), self._turns, pad, check)
            found |= {"kl": apart.kl, "token_entropy": apart.entropy}
        self.context.outcome(f"probe:{arm}", found)
        if self.items:
            self.context.phase("probe", f"{arm}: capability items")
            with own():
                replies = answer_items(self.model, self.tokenizer, self.items, self.context.persona, check)
            self.context.outcome(f"regression:{arm}", {"replies": replies})


def _batches(turns: Sequence[Turn], model: Any) -> Iterator[list[Turn]]:
    """Turns of like length together."""
    size = AT_ONCE[model.device.type]
    ordered = sorted(turns, key=lambda turn: len(turn.prompt) + len(turn.reply))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _forward(model: Any, turns: Sequence[Turn], pad: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits (B, R, V) in float32 that predict the replies, the reply tokens (B, R), and which of them are real."""
    width = max(len(turn.prompt) + len(turn.reply) for turn in turns)
    longest = max(len(turn.reply) for turn in turns)
    device = model.device
    ids = torch.tensor([[pad] * (width - len(t.prompt) - len(t.reply)) + t.prompt + t.reply for t in turns])
    seen = torch.tensor([[0] * (width - len(t.prompt) - len(t.reply)) + [1] * len(t.prompt + t.reply) for t in turns])
    mask = torch.tensor([[0.0] * (longest - len(t.reply)) + [1.0] * len(t.reply) for t in turns])
    positions = (seen.cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad():
        out = model(
            ids.to(device), attention_mask=seen.to(device), position_ids=positions.to(device),
            use_cache=False, logits_to_keep=longest + 1,
        )  # fmt: skip
    return out.logits[:, :-1].float(), ids[:, -longest:].to(device), mask.to(device)
