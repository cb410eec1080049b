"""The few numbers of the memory model that were measured, not counted. Anybody may import it.

What can be counted from a config.json (weights, adapter, optimiser, keys and values) is counted in `memory.py`. What
cannot (how many activations a kernel keeps, the allocator's slack, the CUDA context) is here. `python -m
benchmarks.memory --fit` finds them from one half of the measured grid; docs/memory.md shows how they do on the other.
`ada-tui plan --calibrate RUN` replaces the machine's part, `Overhead`, by what the person's own runs showed.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Bytes a token needs in units of the model's sizes, in 16-bit numbers (2 bytes each)."""

    layer_mlp: float
    """Backward through one layer, tensors of the MLP's width per token."""
    layer_hidden: float
    """Backward through one layer, tensors of the hidden width per token."""
    layer_rank: float
    """Backward through one layer, numbers per token and LoRA rank."""
    forward_mlp: float
    """A forward without gradients (reference, prefill), tensors of the MLP's width per token."""
    forward_hidden: float
    """The same, hidden width."""
    prefill_mlp: float
    """Reading the prompt with `generate`, tensors of the MLP's width per token."""
    decode_logits: float
    """Sampling, bytes per row and vocabulary entry."""
    workspace: float
    """Bytes that stay once the first step ran: library workspaces, dequantisation buffers."""
    backward_base: float
    """Bytes of forward and backward that do not depend on the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What the machine adds to what torch's tensors need."""

    context: float
    """Bytes of the CUDA context with its loaded kernels."""
    slack_base: float
    """Bytes the caching allocator reserves beyond the peak, whatever the peak."""
    slack_share: float
    """The same, as a share of the peak beyond weights and optimiser."""


ACTIVATIONS: dict[tuple[str, int], Activations] = {
    ("trl", 16): Activations(
        layer_mlp=6.6, layer_hidden=19.5, layer_rank=10.2, forward_mlp=4.0, forward_hidden=6.0, prefill_mlp=7.14,
        decode_logits=14.0, workspace=0.065 * GIB, backward_base=0.0,
    ),
    ("trl", 4): Activations(
        layer_mlp=4.09, layer_hidden=19.5, layer_rank=8.0, forward_mlp=4.0, forward_hidden=4.0, prefill_mlp=4.0,
        decode_logits=14.4, workspace=0.067 * GIB, backward_base=0.0,
    ),
    ("unsloth", 16): Activations(
        layer_mlp=3.83, layer_hidden=10.0, layer_rank=0.0, forward_mlp=2.0, forward_hidden=9.0, prefill_mlp=0.0,
        decode_logits=32.5, workspace=0.104 * GIB, backward_base=0.011 * GIB,
    ),
    ("unsloth", 4): Activations(
        layer_mlp=3.67, layer_hidden=10.0, layer_rank=0.0, forward_mlp=2.0, forward_hidden=11.4, prefill_mlp=0.0,
        decode_logits=34.4, workspace=0.152 * GIB, backward_base=0.066 * GIB,
    ),
}  # fmt: skip
"""By backend and bits of the base weights."""

OVERHEAD: dict[tuple[str, int], Overhead] = {
    ("trl", 16): Overhead(context=0.80 * GIB, slack_base=0.19 * GIB, slack_share=0.015),
    ("trl", 4): Overhead(context=0.81 * GIB, slack_base=0.11 * GIB, slack_share=0.078),
    ("unsloth", 16): Overhead(context=0.82 * GIB, slack_base=0.10 * GIB, slack_share=0.016),
    ("unsloth", 4): Overhead(context=0.82 * GIB, slack_base=0.15 * GIB, slack_share=0.014),
}
"""By backend and bits, with expandable segments. The default allocator keeps more (docs/memory.md)."""
