"""The memory model: from a model's sizes and a GRPO step's numbers to the peak of each phase, part by part.

It counts; the numbers it cannot count are in `constants.py`. Not here: what to change (`search.py`), which GPU
(`machine.py`). No torch, no GPU, no weights. Anybody may import it. All sizes are bytes.

The parts of one step, for T tokens in one forward-backward pass, H hidden and I MLP width, n adapter parameters:

    always      weights, adapter, optimiser (2n in 8 bit, 8n in 32), the reference's copy of the adapter (beta > 0)
    generation  keys and values of every row that is generated, plus reading the prompts or sampling, whichever is more
    scoring     (beta > 0) one forward without gradients
    forward-    with checkpointing: one hidden state per layer and token, plus the backward of one layer or of the
    backward    output head, whichever is more; gradients of the adapter
    optimizer   gradients
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ada_tui.errors import BadInput
from ada_tui.planner.constants import ACTIVATIONS, OVERHEAD, Activations, Overhead
from ada_tui.planner.shapes import Shape

HEAD_ROWS, HEAD_COLUMNS = 4096, 32_768
"""TRL computes log-probabilities in tiles of so many tokens and vocabulary entries."""
UNSLOTH_PAGE = 512
"""Unsloth grows its key and value buffers by so many tokens."""
UNSLOTH_OFFLOADS_FROM = 512
"""Loaded for shorter sequences than this, Unsloth keeps checkpoints on the device, not in host memory."""
KEPT_WITHOUT_CHECKPOINTS = 0.65
"""Without checkpointing every layer keeps this share of what its backward needs (measured once, plain TRL)."""
PHASES = ("generation", "scoring", "forward_backward", "optimizer", "resume", "merge")
ESTIMATED = ("resume", "merge")
"""Phases that are counted, but whose peaks were not measured."""

MAX_GROUP = 512
MAX_TOKENS = 131_072
MAX_RANK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One GRPO step, as the person asks for it."""

    shape: Shape
    backend: str = "trl"
    bits: int = 16
    group: int = 8
    """Completions per prompt."""
    prompts: int = 1
    """Prompts per optimiser step."""
    prompt: int = 86
    """Tokens of the longest prompt, system turn included."""
    completion: int = 256
    """Cap of a completion in tokens: the peak is that of completions that reach it."""
    rank: int = 64
    targets: tuple[str, ...] = ()
    """Linears with an adapter; empty = all."""
    beta: float = 0.0
    at_once: int = 0
    """Completions in one forward-backward pass (TRL's per_device_train_batch_size); 0 = the group."""
    max_length: int = 0
    """The max_seq_length that Unsloth is loaded with; 0 = what the step needs, but at least 512, as the worker does."""
    checkpointing: bool = True
    optimizer_bits: int = 8
    vllm: float = 0.0
    """Share of the device that a colocated vLLM engine reserves (0 = generation by the trainer itself)."""

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("--group", self.group, 2, MAX_GROUP),
            ("--prompts-per-step", self.prompts, 1, 4096),
            ("--prompt", self.prompt, 1, MAX_TOKENS),
            ("--completion", self.completion, 1, MAX_TOKENS),
            ("--rank", self.rank, 1, MAX_RANK),
            ("--at-once", self.at_once, 0, MAX_GROUP * 4096),
            ("--max-length", self.max_length, 0, MAX_TOKENS * 2),
            ("--beta", self.beta, 0, 10),
            ("--vllm", self.vllm, 0, 0.95),
        ):
            if not low <= value <= high:  # also refuses NaN
                hint = (
                    "; GRPO compares completions of one prompt, so it needs 2"
                    if name == "--group" and value < 2
                    else ""
                )
                raise BadInput(f"{name} {value:g}: must be from {low} to {high}{hint}")
        if self.backend not in ("trl", "unsloth"):
            raise BadInput(f"--backend {self.backend!r}: must be trl or unsloth")
        if self.bits not in (4, 16):
            raise BadInput(f"--bits {self.bits}: must be 4 or 16")
        if self.optimizer_bits not in (8, 32):
            raise BadInput(f"--optimizer-bits {self.optimizer_bits}: must be 8 or 32")
        if unknown := [name for name in self.targets if name not in self.shape.linears()]:
            raise BadInput(f"--targets {unknown[0]!r}: not a linear; known: {', '.join(self.shape.linears())}")

    @property
    def rows(self) -> int:
        """Completions generated at the same time."""
        return self.group * self.prompts

    @property
    def pass_rows(self) -> int:
        """Completions in one forward-backward pass."""
        return min(self.at_once or self.group, self.rows)


@dataclass(frozen=True, slots=True)
class Phase:
    """What is in memory at the peak of one phase, by part. The parts add up."""

    name: str
    parts: Mapping[str, int]
    estimated: bool = False
    """True: counted, never measured."""

    @property
    def torch(self) -> int:
        """What torch reports as peak allocated."""
        return sum(size for part, size in self.parts.items() if part not in MACHINE_PARTS)

    @property
    def total(self) -> int:
        """What is taken on the device."""
        return sum(self.parts.values())


MACHINE_PARTS = ("allocator", "context", "vllm")
"""Parts that torch does not count as allocated."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """All phases of a request."""

    request: Request
    phases: tuple[Phase, ...] = field(default=())

    @property
    def peak(self) -> Phase:
        """The training phase that needs most."""
        return max((phase for phase in self.phases if phase.name not in ESTIMATED), key=lambda phase: phase.total)

    def phase(self, name: str) -> Phase:
        return next(phase for phase in self.phases if phase.name == name)


def weight_bytes(shape: Shape, bits: int) -> int:
    """Base weights: all in 16 bit, or the layers' linears in NF4 with double quantisation and the rest in 16 bit."""
    if bits == 16:
        return 2 * shape.parameters
    per_parameter = 0.5 + 1 / 64 + 4 / (64 * 256)  # 4 bits, an 8-bit scale per 64, a float32 scale per 256 scales
    return int(shape.linear_parameters * per_parameter) + 2 * shape.other_parameters


def estimate(
    request: Request,
    *,
    device: int = 0,
    activations: Activations | None = None,
    overhead: Overhead | None = None,
) -> Estimate:
    """Peaks of every phase.

    Args:
        request: the step.
        device: bytes of the device; only vLLM's share needs it.
        activations, overhead: other constants than the measured ones.
    """
    use = activations or ACTIVATIONS[request.backend, request.bits]
    machine = overhead or OVERHEAD[request.backend, request.bits]
    shape, unsloth = request.shape, request.backend == "unsloth"
    n = shape.lora_parameters(request.rank, request.targets)
    # TRL casts a quantised model's adapter to bf16; PEFT keeps it in float32 otherwise, and Unsloth always.
    adapter = 2 * n if request.bits == 4 and not unsloth else 4 * n
    # TRL copies the adapter as the reference; Unsloth's reference is the base model.
    reference = 4 * n if request.beta > 0 and not unsloth else 0
    standing = {
        "weights": weight_bytes(shape, request.bits),
        "adapter": adapter,
        "optimizer": int((2 + 8 / 256) * n) if request.optimizer_bits == 8 else 8 * n,
        "reference": reference,
        "workspace": int(use.workspace),
    }
    gradients = adapter
    mlp, hidden = 2 * shape.intermediate, 2 * shape.hidden
    cast_adapter = 0 if request.bits == 4 and not unsloth else 2 * n  # autocast keeps a bf16 copy of a float32 adapter
    tokens = request.pass_rows * (request.prompt + request.completion)

    def phase(name: str, parts: dict[str, int], base: dict[str, int] = standing) -> Phase:
        held = {part: size for part, size in {**base, **parts}.items() if size}
        moving = sum(parts.values())
        held["allocator"] = int(machine.slack_base + machine.slack_share * moving)
        held["context"] = int(machine.context)
        if request.vllm:
            held["vllm"] = int(request.vllm * device)
        return Phase(name, held, estimated=name in ESTIMATED)

    phases = []
    if not request.vllm:
        phases.append(phase("generation", _generation(request, use, cast_adapter)))
    if request.beta > 0:
        forward = int(tokens * (use.forward_mlp * mlp + use.forward_hidden * hidden))
        phases.append(
            phase("scoring", {"activations": max(forward, _head(request, forward_only=True)), "casts": 2 * n})
        )
    phases.append(phase("forward_backward", _backward(request, use, gradients)))
    phases.append(phase("optimizer", {"gradients": gradients}))
    phases.append(phase("resume", {"optimizer_copy": standing["optimizer"], "adapter_copy": adapter}))
    widest = max(inputs * outputs for inputs, outputs in shape.linears().values())
    merging = {"weights": weight_bytes(shape, 16), "adapter": 4 * n}
    phases.append(phase("merge", {"delta": 2 * 4 * widest}, base=merging))
    return Estimate(request, tuple(phases))


def _generation(request: Request, use: Activations, cast_adapter: int) -> dict[str, int]:
    """Keys and values of all rows, and what reading the prompts or drawing the next token needs on top."""
    shape, rows = request.shape, request.rows
    token = shape.kv_bytes_per_token
    dequantised = 2 * shape.hidden * shape.intermediate if request.bits == 4 else 0
    logits = int(use.decode_logits * rows * shape.vocab)
    length = request.prompt + request.completion
    if request.backend == "unsloth":
        pages = request.prompt + 1 + UNSLOTH_PAGE * math.ceil(request.completion / UNSLOTH_PAGE)
        return {"kv_cache": rows * (pages + request.prompt) * token, "sampling": logits, "casts": cast_adapter}
    reading = rows * request.prompt * token
    prefill = int(rows * request.prompt * use.prefill_mlp * 2 * shape.intermediate) + dequantised
    cache = rows * length * token
    one_layer = cache // shape.layers + dequantised  # a layer's cache is copied when a token is added to it
    decode = max(logits, one_layer)
    if reading + prefill > cache + decode:
        return {"kv_cache": reading, "activations": prefill}
    return {"kv_cache": cache, "sampling": decode}


def _head(request: Request, *, forward_only: bool) -> int:
    """The tile of logits, and the hidden states (and their gradient) it is computed from."""
    scored = request.pass_rows * request.completion
    columns = min(request.shape.vocab, HEAD_COLUMNS)
    states = 2 if forward_only else 10
    return 2 * min(scored, HEAD_ROWS) * columns + states * scored * request.shape.hidden


def _backward(request: Request, use: Activations, gradients: int) -> dict[str, int]:
    """Forward and backward of one pass. The last layer's backward comes first, when no gradient exists yet, unless
    earlier passes of the step left them; the first layer's comes last, when all gradients do, but no checkpoints."""
    shape, rows = request.shape, request.pass_rows
    several = rows < request.rows
    mlp, hidden = 2 * shape.intermediate, 2 * shape.hidden
    one_layer = use.layer_mlp * mlp + use.layer_hidden * hidden
    if request.backend == "unsloth":
        # Prompts shared by a group are computed once; checkpoints are moved to host memory.
        tokens = rows * request.completion + math.ceil(rows / request.group) * request.prompt
        if not request.checkpointing:
            kept_layers = shape.layers * KEPT_WITHOUT_CHECKPOINTS
            return {"gradients": gradients, "activations": int(use.backward_base + tokens * one_layer * kept_layers)}
        longest = request.max_length or max(UNSLOTH_OFFLOADS_FROM, request.prompt + request.completion)
        kept = shape.layers * tokens * hidden if longest < UNSLOTH_OFFLOADS_FROM else 0
        return {
            "gradients": gradients,
            "checkpoints": kept,
            "activations": int(use.backward_base + tokens * one_layer),
        }
    tokens = rows * (request.prompt + request.completion)
    layer = int(tokens * (one_layer + use.layer_rank * 2 * request.rank))
    if not request.checkpointing:
        return {"gradients": gradients, "activations": int(layer * shape.layers * KEPT_WITHOUT_CHECKPOINTS)}
    checkpoints = shape.layers * tokens * hidden
    first = checkpoints + max(layer, _head(request, forward_only=False))
    if several or first < gradients + layer:
        kept = checkpoints if several else 0
        return {"gradients": gradients, "checkpoints": kept, "activations": layer}
    return {"checkpoints": checkpoints, "activations": first - checkpoints}
