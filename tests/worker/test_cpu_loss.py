"""The CPU stand-in for TRL's kernel against the textbook formulas."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from ada_tui.worker import cpu_loss  # noqa: E402
from ada_tui.worker.cpu_loss import TorchLogProbFunction  # noqa: E402

ALL = ("log_probs", "entropy", "log_sum_sq_probs", "mean_logits", "is_top1")


@pytest.mark.parametrize(("softcap", "scale"), [(None, 1.0), (5.0, 0.5)])
def test_values_and_gradients_are_those_of_log_softmax(softcap: float | None, scale: float, monkeypatch) -> None:
    monkeypatch.setattr(cpu_loss, "CHUNK", 4)  # several chunks, the last one short
    torch.manual_seed(0)
    inputs = [torch.randn(*shape, requires_grad=True) for shape in ((10, 6), (17, 6), (17,))]
    targets = torch.randint(0, 17, (10,))
    mine = TorchLogProbFunction.apply(*inputs, targets, 0.7, 99, softcap, scale, ALL)
    weights = torch.randn(2, 10)
    (mine[0] * weights[0] + mine[1] * weights[1]).sum().backward()
    gradients = [tensor.grad for tensor in inputs]

    plain = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    logits = (plain[0] @ plain[1].t() + plain[2]) * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    logits = logits / 0.7
    log_p = logits.log_softmax(-1)
    chosen = log_p.gather(1, targets[:, None]).squeeze(1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    (chosen * weights[0] + entropy * weights[1]).sum().backward()

    expected = (chosen, entropy, (2 * log_p).exp().sum(-1).log(), logits.mean(-1), logits.argmax(-1) == targets)
    for got, want in zip(mine, expected, strict=True):
        torch.testing.assert_close(got, want)
    for got, tensor in zip(gradients, plain, strict=True):
        torch.testing.assert_close(got, tensor.grad)


def test_no_token_to_score_gives_a_differentiable_nothing() -> None:
    hidden = torch.zeros(0, 6, requires_grad=True)
    log_probs, entropy, *_ = TorchLogProbFunction.apply(
        hidden, torch.randn(17, 6), None, torch.zeros(0, dtype=torch.long), 1.0, 99, None, 1.0, ("entropy",)
    )
    assert log_probs.shape == entropy.shape == (0,)
    log_probs.sum().backward()
    assert hidden.grad.shape == (0, 6)
