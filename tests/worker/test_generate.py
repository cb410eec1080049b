"""The sampling loop against transformers' own, and what it does beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ada_tui.worker import generate as g  # noqa: E402
from ada_tui.worker import model as models  # noqa: E402
from ada_tui.worker.context import Stopped  # noqa: E402
from ada_tui.worker.failures import Diverged, explain  # noqa: E402
from ada_tui.worker.generate import Sampling, generate, prompt_ids, sample_groups  # noqa: E402

CHATS = [
    [{"role": "user", "content": text}] for text in ("Hi", "What is the capital of France, and why is it so?", "ok")
]


@pytest.fixture(scope="module")
def speaker(tiny_model: Path) -> tuple[Any, Any]:
    tokenizer = models.load_tokenizer(str(tiny_model), False)
    model = models.load_base(str(tiny_model), models.Device("cpu", torch.float32, "test"), False)
    models.settle_tokens(model, tokenizer, "tiny")
    return model, tokenizer


def test_greedy_replies_are_those_of_transformers(speaker: tuple[Any, Any]) -> None:
    """Prompts of different length in one batch: padding, positions, repeated cache and shrinking batch are right."""
    model, tokenizer = speaker
    mine = generate(model, prompt_ids(tokenizer, CHATS), 2, Sampling(0, 1, 24), pad=tokenizer.pad_token_id)
    for chat, group in zip(CHATS, mine, strict=True):
        ids = torch.tensor(prompt_ids(tokenizer, [chat]))
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=24)
        assert group == [theirs[0, ids.shape[1] :].tolist()] * 2


def test_replies_end_at_different_places_and_differ(speaker: tuple[Any, Any]) -> None:
    model, tokenizer = speaker
    groups = generate(
        model, prompt_ids(tokenizer, CHATS), 16, Sampling(1, 1, 20, 0), pad=tokenizer.pad_token_id, seed=1
    )
    replies = [reply for group in groups for reply in group]
    ended = [reply for reply in replies if reply[-1] == tokenizer.eos_token_id]
    assert 0 < len(ended) < len(replies)
    assert len({len(reply) for reply in ended}) > 3
    assert all(tokenizer.eos_token_id not in reply[:-1] for reply in replies)
    assert all(len(reply) == 20 for reply in replies if reply not in ended)
    assert len({tuple(reply) for reply in replies}) > 40


def test_a_seed_fixes_the_replies_and_leaves_torch_alone(speaker: tuple[Any, Any]) -> None:
    model, tokenizer = speaker
    before = torch.get_rng_state()
    first, second, other = (
        [group for _, group in sample_groups(model, tokenizer, CHATS, 3, Sampling(1, 0.9, 12, seed), rows=6)]
        for seed in (5, 5, 6)
    )
    assert first == second != other
    assert torch.equal(torch.get_rng_state(), before)


def test_groups_come_whatever_fits_at_once(speaker: tuple[Any, Any]) -> None:
    model, tokenizer = speaker
    found = dict(sample_groups(model, tokenizer, CHATS, 5, Sampling(1, 1, 8, 1), rows=1))
    assert sorted(found) == [0, 1, 2]
    assert all(len(group) == 5 for group in found.values())
    for reply in (reply for group in found.values() for reply in group):
        assert reply.truncated == (reply.ids[-1] != tokenizer.eos_token_id)
        assert "<|im_end|>" not in reply.text


def test_check_can_end_a_generation_and_the_mode_comes_back(speaker: tuple[Any, Any]) -> None:
    model, tokenizer = speaker
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Stopped

    model.train()
    with pytest.raises(Stopped):
        generate(model, prompt_ids(tokenizer, CHATS), 8, Sampling(1, 1, 400), pad=tokenizer.pad_token_id, check=check)
    assert model.training
    model.eval()


@pytest.mark.parametrize("width", [4, 1000])
def test_the_nucleus_is_exact_also_beyond_the_first_candidates(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(g, "NUCLEUS", width)
    torch.manual_seed(0)
    logits = torch.randn(1, 50)
    p = logits.softmax(-1)[0]
    order = p.argsort(descending=True)
    inside = set(order[: int((p[order].cumsum(0) < 0.8).sum()) + 1].tolist())
    drawn = {int(g._draw(logits, Sampling(1, 0.8, 1), None)) for _ in range(3000)}
    assert drawn <= inside
    assert len(drawn) > 0.8 * len(inside)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_gone_wrong_is_named_instead_of_sampled(tiny_model: Path, temperature: float) -> None:
    tokenizer = models.load_tokenizer(str(tiny_model), False)
    model = models.load_base(str(tiny_model), models.Device("cpu", torch.float32, "test"), False)
    models.settle_tokens(model, tokenizer, "tiny")
    model.model.norm.weight.data[0] = float("nan")
    with pytest.raises(Diverged) as caught:
        generate(model, prompt_ids(tokenizer, CHATS), 2, Sampling(temperature, 1, 4), pad=tokenizer.pad_token_id)
    line, known = explain(caught.value)
    assert known
    assert "lower learning_rate" in line


def test_tokens_are_drawn_in_proportion_to_their_weight() -> None:
    weights = torch.tensor([[0.0, 1.0, 0.0, 3.0, 0.0]]).repeat(20_000, 1)
    counts = g._pick(weights, torch.Generator().manual_seed(0)).bincount(minlength=5).tolist()
    assert counts[0] == counts[2] == counts[4] == 0
    assert abs(counts[3] / 20_000 - 0.75) < 0.015
