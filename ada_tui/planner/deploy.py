"""What fits on the small board: GGUF by quantisation, keys and values by context, and what the system takes.

Counted from the model's sizes, nothing is measured here; where the other numbers come from stands beside them.
Anybody may import it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ada_tui.errors import BadInput
from ada_tui.planner.constants import GIB
from ada_tui.planner.shapes import Shape

BOARD_GIB = 7.4
"""What an 8 GB Jetson shows as RAM: the rest is carved out before Linux starts (ollama#18396 shows 7.5 GB)."""
DESKTOP_GIB = 1.5
"""System with its desktop (reports range from 1.5 to 2 GB); about 0.7 without one."""
HEADLESS_GIB = 0.7
RUNTIME_GIB = 0.5
"""Ollama, its runner and the CUDA context in shared memory."""
UBATCH = 512
"""llama.cpp reserves logits for so many tokens: 300.75 MiB for Qwen2.5-3B (the log in SciSharp/LLamaSharp#1099)."""

SOURCES = (
    "board: ollama#18396 (killed at 7.5 of 7.6 GB on an 8 GB board), ollama#17787 (newer versions use more)",
    "system: reports of 1.5 to 2 GB before inference, 5.2 GB left for models (ericxliu.me, Jetson Orin Nano)",
    "quantisation: block sizes of llama.cpp's k-quants, and its rule which tensors get more bits",
    "compute buffer and cache: llama.cpp's log for this model (SciSharp/LLamaSharp#1099: 300.75 MiB, 144 MiB at 4096)",
)

BITS = {"f16": 16.0, "q8_0": 8.5, "q6_k": 6.5625, "q5_k": 5.5, "q4_k": 4.5, "q5_1": 6.0, "q5_0": 5.5}
"""Bits per weight of a block type, scales included."""
UNEVEN = {"q6_k": "q8_0", "q5_k": "q5_1", "q4_k": "q5_0"}
"""What llama.cpp takes where a row is no multiple of 256."""
BASE = {"f16": "f16", "q8_0": "q8_0", "q6_k": "q6_k", "q5_k_m": "q5_k", "q4_k_m": "q4_k"}
QUANTS = tuple(BASE)


def gguf_bytes(shape: Shape, quant: str) -> int:
    """Size of the GGUF. The _m kinds give half of attn_v and ffn_down, and the output matrix, more bits."""
    base = BASE[quant]
    mixed = quant.endswith("_m")
    bits = 0.0
    for name, (inputs, outputs) in shape.linears().items():
        more = sum(_more_bits(i, shape.layers) for i in range(shape.layers)) if mixed else 0
        upgraded = more if name in ("v_proj", "down_proj") else 0
        size = inputs * outputs
        bits += size * (upgraded * _bits("q6_k", inputs) + (shape.layers - upgraded) * _bits(base, inputs))
    output = "q6_k" if mixed else base
    matrices = [output] if shape.tied else [output, base]
    bits += sum(shape.vocab * shape.hidden * _bits(kind, shape.hidden) for kind in matrices)
    small = shape.other_parameters - shape.vocab * shape.hidden * len(matrices)  # norms and biases stay float32
    return int(bits / 8) + 4 * small + shape.vocab * 24  # and the tokenizer


def _more_bits(layer: int, layers: int) -> bool:
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _bits(kind: str, inputs: int) -> float:
    return BITS[UNEVEN.get(kind, kind) if inputs % 256 else kind]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One quantisation at one context on the board. Sizes in bytes."""

    quant: str
    context: int
    parts: dict[str, int]
    left: int
    """Bytes to spare; negative = missing."""

    @property
    def fits(self) -> bool:
        return self.left >= 0

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def deployment(
    shape: Shape, quant: str, context: int, *, board_gib: float = BOARD_GIB, headless: bool = False, parallel: int = 1
) -> Deployment:
    """What serving `shape` needs. Raises BadInput for an impossible context or quantisation."""
    if quant not in BASE:
        raise BadInput(f"--quant {quant!r}: must be one of {', '.join(QUANTS)}")
    if not 1 <= context <= 1_048_576:
        raise BadInput(f"--context {context}: must be from 1 to 1048576 tokens")
    if not (math.isfinite(board_gib) and 0.5 <= board_gib <= 1024):
        raise BadInput(f"--board-gb {board_gib:g}: must be from 0.5 to 1024")
    parts = {
        "model": gguf_bytes(shape, quant),
        "kv_cache": shape.kv_bytes_per_token * context * parallel,
        "compute": 4 * UBATCH * shape.vocab + 4 * UBATCH * shape.hidden,
        "runtime": int(RUNTIME_GIB * GIB),
        "system": int((HEADLESS_GIB if headless else DESKTOP_GIB) * GIB),
    }
    return Deployment(quant, context, parts, int(board_gib * GIB) - sum(parts.values()))


def table(shape: Shape, *, board_gib: float = BOARD_GIB, headless: bool = False) -> list[Deployment]:
    """Every quantisation at the contexts that matter for a small assistant."""
    return [
        deployment(shape, quant, context, board_gib=board_gib, headless=headless)
        for quant in QUANTS
        for context in (2048, 4096, 8192, 16384, 32768)
    ]
