"""A plan in plain data and plain words: JSON document, stacked bars, the refusal of a start. Anybody may import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ada_tui.planner.constants import GIB
from ada_tui.planner.memory import Estimate, Phase, Request
from ada_tui.planner.search import Plan

LABELS = {
    "weights": "base weights",
    "adapter": "adapter",
    "optimizer": "optimiser",
    "reference": "reference adapter",
    "workspace": "workspace",
    "kv_cache": "keys and values",
    "sampling": "sampling",
    "casts": "16-bit copies",
    "checkpoints": "checkpoints",
    "activations": "activations",
    "gradients": "gradients",
    "optimizer_copy": "optimiser, read",
    "adapter_copy": "adapter, read",
    "delta": "merged layer",
    "allocator": "allocator slack",
    "context": "CUDA context",
    "vllm": "vLLM",
}
"""Parts in the order in which a bar stacks them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar."""

    part: str
    label: str
    gib: float
    start: float
    """Where it begins, as a share of the device."""
    share: float
    """How long it is, as a share of the device."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One phase, stacked against the device. Longer than 1 = does not fit."""

    phase: str
    gib: float
    estimated: bool
    segments: tuple[Segment, ...]


def bars(plan: Plan) -> list[Bar]:
    """A bar per phase; the desktop's reserve is not in it (`Plan.machine.reserve`)."""
    return [_bar(phase, plan.machine.total) for phase in plan.estimate.phases]


def _bar(phase: Phase, total: int) -> Bar:
    segments, start = [], 0.0
    for part, label in LABELS.items():
        if size := phase.parts.get(part, 0):
            segments.append(Segment(part, label, size / GIB, start, size / total))
            start += size / total
    return Bar(phase.name, phase.total / GIB, phase.estimated, tuple(segments))


def document(plan: Plan) -> dict[str, Any]:
    """The JSON document of `ada-tui plan`. Sizes in GiB."""
    peak, request = plan.estimate.peak, plan.request
    return {
        "fits": plan.fits,
        "tight": plan.tight,
        "peak_gib": _gib(peak.total),
        "torch_peak_gib": _gib(max(p.torch for p in plan.estimate.phases if not p.estimated)),
        "left_gib": _gib(plan.left),
        "phase": peak.name,
        "parts": {part: _gib(size) for part, size in peak.parts.items()},
        "phases": {
            phase.name: {
                "peak_gib": _gib(phase.total),
                "torch_peak_gib": _gib(phase.torch),
                "estimated": phase.estimated,
                "parts": {part: _gib(size) for part, size in phase.parts.items()},
            }
            for phase in plan.estimate.phases
        },
        "max_group": plan.max_group or 0,
        "max_completion": plan.max_completion or 0,
        "advice": [advice.text for advice in plan.advice],
        "device": {
            "name": plan.machine.name,
            "total_gib": _gib(plan.machine.total),
            "reserve_gib": _gib(plan.machine.reserve),
        },
        "request": {
            "model": request.shape.name, "backend": request.backend, "bits": request.bits, "group": request.group,
            "prompts_per_step": request.prompts, "prompt": request.prompt, "completion": request.completion,
            "rank": request.rank, "beta": request.beta, "at_once": request.pass_rows,
            "checkpointing": request.checkpointing, "optimizer_bits": request.optimizer_bits, "vllm": request.vllm,
        },
        "estimated_parts": ["vllm"] if request.vllm else [],
    }  # fmt: skip


def _gib(size: int) -> float:
    return round(size / GIB, 3)


def describe(request: Request) -> str:
    """The request in one line."""
    return (
        f"{request.shape.name}, {request.bits} bit, {request.backend}: {request.prompts} x {request.group} completions "
        f"of {request.completion} tokens after {request.prompt}, {request.pass_rows} at a time, rank {request.rank}, "
        f"beta {request.beta:g}"
    )


def refusal(plan: Plan) -> str | None:
    """Why a start is refused, in one line with what to do; None when the run fits."""
    if plan.fits:
        return None
    helping = next((advice.text for advice in plan.advice if advice.fits), None) or "take a smaller model"
    return (
        f"does not fit: {plan.estimate.peak.name.replace('_', '-')} needs {plan.estimate.peak.total / GIB:.1f} GiB of "
        f"{plan.machine.usable / GIB:.1f} on {plan.machine.name}; {helping}; --force starts anyway"
    )


def summary(request: Request, found: Estimate) -> dict[str, Any]:
    """What a run logs at its start, to stand beside its measured peak."""
    peak = found.peak
    return {
        "torch_peak_gib": _gib(max(phase.torch for phase in found.phases if not phase.estimated)),
        "peak_gib": _gib(peak.total),
        "phase": peak.name,
        "request": describe(request),
    }
