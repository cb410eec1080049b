"""Which cells are measured: a fractional design over backend, bits, rank, group, length and beta. No torch here.

One `Cell` is one GRPO step. Cells of one `Batch` share a process, because they share the loaded model. Every third
of the 20 pairs (group, length) is taken per batch, shifted from batch to batch, so that each pair occurs in at least
two batches and each level of each factor about equally often.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

GROUPS = (4, 8, 16, 32, 64)
LENGTHS = (128, 256, 512, 1024)
PROMPT = 86


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One GRPO step: `group` completions of `completion` tokens each for `prompts` prompts of `prompt` tokens."""

    model: str = "qwen2.5-3b"
    backend: str = "trl"
    bits: int = 16
    rank: int = 64
    group: int = 16
    completion: int = 256
    beta: float = 0.0
    prompt: int = PROMPT
    prompts: int = 1
    micro: int = 0
    """Completions per forward-backward (per_device_train_batch_size); 0 = the group."""
    checkpointing: bool = True
    expandable: bool = True
    """PYTORCH_ALLOC_CONF=expandable_segments:True."""
    exclusive: bool = False
    """Nothing else ran on the device: the seconds mean something."""
    role: str = "grid"
    """grid = fits or judges the planner's constants; extra and timed = judge only."""

    @property
    def id(self) -> str:
        """Short and unique, e.g. "trl-4bit-r64-g16-l256-b0.04"."""
        name = f"{self.backend}-{self.bits}bit-r{self.rank}-g{self.group}-l{self.completion}-b{self.beta:g}"
        if self.role != "grid":
            name += f"-{self.model}-p{self.prompts}-m{self.micro}-c{self.checkpointing:d}-e{self.expandable:d}"
        return name + "-alone" * self.exclusive

    @property
    def process(self) -> tuple[str, str, int, int, bool, bool]:
        """Cells with the same value can share a process."""
        return (self.model, self.backend, self.bits, self.rank, self.expandable, self.checkpointing)


def main_grid() -> list[Cell]:
    """The design: 8 batches (backend x bits x rank) with 6 or 7 of the 20 pairs (group, length) each."""
    cells = []
    combos = [(backend, bits, rank) for backend in ("trl", "unsloth") for bits in (4, 16) for rank in (16, 64)]
    for number, (backend, bits, rank) in enumerate(combos):
        pairs = [(group, length) for group in GROUPS for length in LENGTHS]
        for index, (group, length) in enumerate(pairs):
            if (index + number) % 3 == 0:
                beta = 0.04 if (index // 3 + number) % 2 else 0.0
                cells.append(Cell(backend=backend, bits=bits, rank=rank, group=group, completion=length, beta=beta))
    return cells


def extra_cells() -> list[Cell]:
    """What the design leaves out: micro-batches, more prompts, no checkpointing, default allocator, other models."""
    base = Cell(role="extra")
    change = dataclasses.replace
    cells = []
    for backend in ("trl", "unsloth"):
        one = change(base, backend=backend)
        cells += [
            change(one, group=64, completion=512, micro=8),
            change(one, group=8, prompts=4, completion=256),
            change(one, group=4, completion=256, checkpointing=False),
        ]
        others = (("llama-3.2-1b", 16), ("qwen2.5-0.5b", 16), ("qwen2.5-7b", 4))
        for model, bits in others if backend == "trl" else others[:1]:
            cells += [change(one, model=model, bits=bits, group=group, completion=256) for group in (8, 32)]
    cells += [
        change(base, group=64, completion=1024, beta=0.04),
        change(base, bits=4, group=64, completion=1024),
        change(base, group=16, completion=512, checkpointing=False),
        change(base, expandable=False, group=16, completion=256),
        change(base, expandable=False, group=32, completion=512, beta=0.04),
    ]
    return cells


def timed_cells() -> list[Cell]:
    """Run one after the other with nothing beside them: their seconds are the step times."""
    return [
        Cell(backend=backend, bits=bits, group=group, completion=256, exclusive=True, role="timed")
        for backend in ("trl", "unsloth")
        for bits in (4, 16)
        for group in (16, 64)
    ]


def all_cells() -> list[Cell]:
    return main_grid() + extra_cells() + timed_cells()
