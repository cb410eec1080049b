"""Log-probabilities of the trained tokens on a CPU, where TRL 1.15 has none: its own function is a Triton kernel.

Same contract as `trl.kernels.ChunkedLogProbFunction`, in plain torch, chunk by chunk so that the logits of a whole
batch are never in memory. `install` puts it where TRL looks the function up, for CPU runs only; TRL is pinned to one
release, so a change there fails at once and loudly. Only ada_tui.worker may import it.
"""

from __future__ import annotations

from typing import Any

import torch
import trl.trainer.utils as trl_utils
from torch import Tensor

CHUNK = 512
"""Tokens whose logits are in memory at the same time: 100 MB at 50,000 words."""

SUPPORTED = {"log_probs", "entropy", "log_sum_sq_probs", "mean_logits", "is_top1"}


def install() -> None:
    """Let TRL's trainers compute on a CPU. Raises AttributeError when TRL looks elsewhere than it did in 1.15."""
    if "_ChunkedLogProbFunction" not in vars(trl_utils):
        raise AttributeError("trl.trainer.utils has no _ChunkedLogProbFunction: this release of TRL is not supported")
    trl_utils._ChunkedLogProbFunction = TorchLogProbFunction


class TorchLogProbFunction(torch.autograd.Function):
    """log p(target) and its statistics for N tokens, from hidden states (N, H) and the output layer (V, H)."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, temperature: float,
        chunk_size: int, final_logit_softcapping: float | None = None, logit_scale: float = 1.0,
        outputs: tuple[str, ...] = ("entropy",),
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        """(log_probs, entropy, log_sum_sq_probs, mean_logits, is_top1), each (N,) float32; None where not asked for.

        `chunk_size` is the width of TRL's vocabulary tiles and has no meaning here.
        """
        ctx.set_materialize_grads(False)
        ctx.shape_of_logits = (temperature, final_logit_softcapping, logit_scale)
        ctx.compute_dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else hidden.dtype
        found: dict[str, list[Tensor]] = {name: [] for name in SUPPORTED}
        normalisers = []
        for start in range(0, len(hidden), CHUNK):
            logits, _ = _logits(ctx, hidden[start : start + CHUNK], weight, bias)  # (n, V)
            target = targets[start : start + CHUNK, None]
            log_z = logits.logsumexp(dim=-1)
            normalisers.append(log_z)
            found["log_probs"].append(logits.gather(1, target).squeeze(1) - log_z)
            if "entropy" in outputs:
                found["entropy"].append(log_z - (torch.exp(logits - log_z[:, None]) * logits).sum(dim=-1))
            if "log_sum_sq_probs" in outputs:
                found["log_sum_sq_probs"].append((2 * logits).logsumexp(dim=-1) - 2 * log_z)
            if "mean_logits" in outputs:
                found["mean_logits"].append(logits.mean(dim=-1))
            if "is_top1" in outputs:
                found["is_top1"].append(logits.argmax(dim=-1, keepdim=True).eq(target).squeeze(1))
        results = {name: _joined(parts, hidden, name == "is_top1") for name, parts in found.items()}
        wanted = [results[name] if name in outputs or name == "log_probs" else None for name in _ORDER]
        entropy = results["entropy"] if "entropy" in outputs else results["log_probs"]
        ctx.save_for_backward(hidden, weight, bias, targets, _joined(normalisers, hidden), entropy)
        ctx.mark_non_differentiable(*(tensor for tensor in wanted[2:] if tensor is not None))
        return tuple(wanted)

    @staticmethod
    def backward(ctx: Any, grad_log_probs: Tensor | None, grad_entropy: Tensor | None, *_: Any) -> tuple[Any, ...]:
        hidden, weight, bias, targets, log_z, entropy = ctx.saved_tensors
        wants_hidden, wants_weight, wants_bias = ctx.needs_input_grad[:3]
        grad_hidden = torch.zeros_like(hidden) if wants_hidden else None
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if wants_weight else None
        grad_bias = torch.zeros_like(bias, dtype=torch.float32) if wants_bias else None
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            logits, slope = _logits(ctx, hidden[part], weight, bias)
            log_p = logits - log_z[part, None]
            p = log_p.exp()
            grad = torch.zeros_like(logits)
            if grad_log_probs is not None:  # d log p_target / d z_j = [j is target] - p_j
                g = grad_log_probs[part, None].float()
                grad -= g * p
                grad.scatter_add_(1, targets[part, None], g)
            if grad_entropy is not None:  # d entropy / d z_j = -p_j (log p_j + entropy)
                grad -= grad_entropy[part, None].float() * p * (log_p + entropy[part, None])
            grad = (grad * slope).to(ctx.compute_dtype)
            if grad_hidden is not None:
                grad_hidden[part] = (grad @ weight.to(ctx.compute_dtype)).to(hidden.dtype)
            if grad_weight is not None:
                grad_weight += grad.float().t() @ hidden[part].float()
            if grad_bias is not None:
                grad_bias += grad.sum(dim=0, dtype=torch.float32)
        return (
            grad_hidden,
            None if grad_weight is None else grad_weight.to(weight.dtype),
            None if grad_bias is None else grad_bias.to(bias.dtype),
            *[None] * 6,
        )


_ORDER = ("log_probs", "entropy", "log_sum_sq_probs", "mean_logits", "is_top1")


def _logits(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | float]:
    """Logits (n, V) in float32 as they enter the softmax, and their slope with respect to the projection."""
    temperature, softcap, scale = ctx.shape_of_logits
    dtype = ctx.compute_dtype
    raw = torch.nn.functional.linear(hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    logits = raw.float() * scale
    if softcap is None:
        return logits / temperature, scale / temperature
    squashed = torch.tanh(logits / softcap)
    return softcap * squashed / temperature, (1 - squashed**2) * scale / temperature


def _joined(parts: list[Tensor], like: Tensor, flags: bool = False) -> Tensor:
    """One tensor of all chunks; an empty one when no token was to be scored."""
    return torch.cat(parts) if parts else like.new_zeros(0, dtype=torch.bool if flags else torch.float32)
