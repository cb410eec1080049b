"""Sampling replies: groups of n for a list of prompts, all in one batch. The one place where tokens are generated.

A prompt is read once and its cache repeated for the n replies; replies that have ended leave the batch, so a long one
does not keep the others computing. Sampling, evaluation, probes and GRPO's rollouts all come through `generate`.
Only ada_tui.worker may import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ada_tui.worker.failures import Diverged

CHECK_EVERY = 4
"""Tokens between two calls of `check`."""

NUCLEUS = 512
"""Candidates looked at first for top_p: sorting a whole vocabulary costs more than a small model's forward pass."""

SHRINK_AT = 0.75
"""Ended replies are dropped from the batch once at most this share is still running."""

Tokens = list[int]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw. `seed` None = torch's global state (training: a checkpoint restores it)."""

    temperature: float
    top_p: float
    max_tokens: int
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """One reply. `ids` has its end token, `text` has not."""

    text: str
    ids: Tokens
    truncated: bool


def ending_ids(model: Any) -> frozenset[int]:
    """Every token that ends a reply."""
    ids = model.generation_config.eos_token_id
    return frozenset([ids] if isinstance(ids, int) else ids)


def prompt_ids(tokenizer: Any, chats: Sequence[list[dict[str, str]]]) -> list[Tokens]:
    """The chats as the model reads them, up to where its reply starts."""
    rendered = tokenizer.apply_chat_template(list(chats), add_generation_prompt=True, tokenize=True, return_dict=True)
    return [list(ids) for ids in rendered["input_ids"]]


def sample_groups(
    model: Any,
    tokenizer: Any,
    chats: Sequence[list[dict[str, str]]],
    n: int,
    sampling: Sampling,
    *,
    rows: int,
    check: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, list[Sampled]]]:
    """(index of the chat, its n replies), batch by batch, chats of like length together.

    Args:
        rows: replies to generate at once; at least one whole group always is.
        check: called every few tokens; what it raises ends the generation.
    """
    prompts = prompt_ids(tokenizer, chats)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    per_batch = max(1, rows // n)
    ends = ending_ids(model)
    for number, start in enumerate(range(0, len(order), per_batch)):
        chosen = order[start : start + per_batch]
        seed = None if sampling.seed is None else sampling.seed * 10_007 + number
        replies = generate(
            model, [prompts[i] for i in chosen], n, sampling, pad=tokenizer.pad_token_id, seed=seed, check=check
        )
        for index, group in zip(chosen, replies, strict=True):
            yield index, [as_sampled(tokenizer, ids, ends, sampling.max_tokens) for ids in group]


def as_sampled(tokenizer: Any, ids: Tokens, ends: frozenset[int], cap: int) -> Sampled:
    """The reply behind `ids`; truncated = it filled the cap without an end token."""
    ended = ids[-1] in ends
    text = tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=True)
    return Sampled(text=text, ids=ids, truncated=not ended and len(ids) >= cap)


def generate(
    model: Any,
    prompts: Sequence[Tokens],
    n: int,
    sampling: Sampling,
    *,
    pad: int,
    seed: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[list[Tokens]]:
    """`n` replies to each of `prompts`, as token ids with the end token when there was one.

    Temperature 0 is greedy. The model is put into evaluation mode for the time being.
    """
    device = model.device
    generator = None if seed is None else torch.Generator(device=device).manual_seed(seed)
    ends = torch.tensor(sorted(ending_ids(model)), device=device)
    width = max(map(len, prompts))
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=device)  # (P, T), left-padded
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    replies: list[Tokens] = [[] for _ in range(len(prompts) * n)]
    with evaluating(model), torch.no_grad():
        # The prompt's own pass: P rows, each then repeated n times.
        out = model(ids, attention_mask=mask, position_ids=_positions(mask), use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        cache.batch_repeat_interleave(n)
        logits = out.logits[:, -1].repeat_interleave(n, dim=0)  # (P*n, V)
        mask = mask.repeat_interleave(n, dim=0)
        position = mask.sum(dim=1, keepdim=True)
        slots = torch.arange(len(replies), device=device)  # which reply each row of the batch is
        running = torch.ones(len(replies), dtype=torch.bool, device=device)
        for step in range(sampling.max_tokens):
            token = _draw(logits, sampling, generator)  # (B,)
            for slot, alive, value in zip(slots.tolist(), running.tolist(), token.tolist(), strict=True):
                if alive:
                    replies[slot].append(value)
            running = running & ~torch.isin(token, ends)
            left = int(running.sum())
            if left == 0 or step + 1 == sampling.max_tokens:
                break
            if left <= SHRINK_AT * len(running):
                keep = running.nonzero().squeeze(1)
                cache.batch_select_indices(keep)
                token, mask, position, slots, running = (
                    tensor[keep] for tensor in (token, mask, position, slots, running)
                )
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            out = model(
                token.unsqueeze(1), attention_mask=mask, position_ids=position, past_key_values=cache, use_cache=True
            )
            logits, position = out.logits[:, -1], position + 1
            if step % CHECK_EVERY == 0:
                check()
    return [replies[i * n : (i + 1) * n] for i in range(len(prompts))]


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode (no dropout; gradient checkpointing would switch the cache off), then back."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _positions(mask: torch.Tensor) -> torch.Tensor:
    """Position of every token, counted without the padding in front. (P, T) -> (P, T)"""
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def _draw(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator | None) -> torch.Tensor:
    """One token per row of `logits` (B, V). Raises Diverged: sampling from NaN would end a CUDA process."""
    if not bool(torch.isfinite(logits.amax(dim=-1)).all()):
        raise Diverged("while sampling")
    if sampling.temperature == 0:
        return logits.argmax(dim=-1)
    probabilities = torch.softmax(logits.float() / sampling.temperature, dim=-1)
    if sampling.top_p >= 1:
        return _pick(probabilities, generator)
    top, tokens = probabilities.topk(min(NUCLEUS, probabilities.shape[1]), dim=-1)
    wide = (top.sum(dim=-1) < sampling.top_p).nonzero().squeeze(1)  # rows whose nucleus is larger than that
    chosen = tokens.gather(1, _pick(_nucleus(top, sampling.top_p), generator).unsqueeze(1)).squeeze(1)
    if len(wide):
        top, tokens = probabilities[wide].sort(dim=-1, descending=True)
        picked = _pick(_nucleus(top, sampling.top_p), generator)
        chosen[wide] = tokens.gather(1, picked.unsqueeze(1)).squeeze(1)
    return chosen


def _nucleus(descending: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest head that holds `top_p`, the rest set to 0; never empty. (B, K) -> (B, K)"""
    return descending.masked_fill(descending.cumsum(dim=-1) - descending >= top_p, 0.0)


def _pick(weights: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """One index per row with probability proportional to `weights` (B, K).

    By the cumulative sum: `torch.multinomial` draws a random number for every token of the vocabulary, which on a CPU
    takes as long as the forward pass of a small model.
    """
    total = weights.cumsum(dim=-1)
    draw = torch.rand(len(weights), 1, generator=generator, device=weights.device, dtype=weights.dtype)
    place = draw * total[:, -1:] * (1 - 1e-6)  # strictly below the total: an index of weight 0 is never drawn
    return torch.searchsorted(total, place, right=True).squeeze(1)
