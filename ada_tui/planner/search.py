"""What to do with an estimate: does it fit, what is the most that fits, what to change first. Anybody may import it.

Memory grows with group and length, so the largest that fits is found by halving. Advice comes in order of harm: first
what changes nothing that is learned, last what does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ada_tui.planner.calibration import Calibration
from ada_tui.planner.constants import GIB
from ada_tui.planner.machine import Machine
from ada_tui.planner.memory import MAX_GROUP, MAX_TOKENS, Estimate, Request, estimate

TIGHT = 0.05
"""Less than this share left is called tight: it is about the model's error."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One change and what comes of it."""

    text: str
    request: Request
    peak: int
    """Bytes on the device after the change."""
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to a request on a machine."""

    request: Request
    machine: Machine
    estimate: Estimate
    fits: bool
    tight: bool
    """It fits, with less than 5 % of the device to spare."""
    left: int
    """Bytes to spare beside the desktop's reserve; negative = so much is missing."""
    max_group: int | None
    """Largest group that fits at this length; None = not even 2."""
    max_completion: int | None
    """Largest length that fits at this group; None = not even one token."""
    advice: tuple[Advice, ...]


def make_plan(request: Request, machine: Machine, calibration: Calibration | None = None) -> Plan:
    """Everything there is to say about `request` on `machine`."""

    def look(changed: Request) -> Estimate:
        return estimate_on(changed, machine, calibration)

    def fits(changed: Request) -> bool:
        return look(changed).peak.total <= machine.usable

    found = look(request)
    left = machine.usable - found.peak.total
    return Plan(
        request=request,
        machine=machine,
        estimate=found,
        fits=left >= 0,
        tight=0 <= left < TIGHT * machine.total,
        left=left,
        max_group=largest(2, MAX_GROUP, lambda value: fits(dataclasses.replace(request, group=value))),
        max_completion=largest(1, MAX_TOKENS, lambda value: fits(dataclasses.replace(request, completion=value))),
        advice=tuple(_advice(request, machine, look)),
    )


def estimate_on(request: Request, machine: Machine, calibration: Calibration | None = None) -> Estimate:
    """The estimate on `machine`, with the person's own overhead when it was calibrated there."""
    if calibration is None or not machine.here:
        return estimate(request, device=machine.total)
    return estimate(
        request, device=machine.total, activations=calibration.activations(request),
        overhead=calibration.overhead(request),
    )  # fmt: skip


def largest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """The largest value in low..high that fits, given that smaller ones fit when a larger one does; None = none.

    >>> largest(2, 512, lambda value: value <= 37)
    37
    """
    if not fits(low):
        return None
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _advice(request: Request, machine: Machine, look: Callable[[Request], Estimate]) -> list[Advice]:
    """Changes in order of harm. When it fits already: what is worth knowing about rank, bits and room left."""
    out: list[Advice] = []
    peak = look(request).peak.total

    def offer(text: str, **changes: Any) -> bool:
        """Add the change if it saves at least 50 MiB; True when it alone makes the run fit."""
        changed = dataclasses.replace(request, **changes)
        after = look(changed).peak.total
        if peak - after < GIB // 20:
            return False
        fitting = after <= machine.usable
        out.append(Advice(f"{text}: {after / GIB:.1f} GiB, {(peak - after) / GIB:.1f} less", changed, after, fitting))
        return fitting

    if peak <= machine.usable:
        out += _when_it_fits(request, machine, look, peak)
        return out
    if not request.checkpointing:
        offer("switch gradient checkpointing on (same result, about a third more time to learn)", checkpointing=True)
    if request.optimizer_bits == 32:
        offer("use 8-bit Adam (same result in practice)", optimizer_bits=8)
    if request.pass_rows > 1:
        at_once = _passes(request, lambda changed: look(changed).peak.total <= machine.usable)
        few = f"{at_once} completion{'s' if at_once > 1 else ''} at a time"
        offer(f"compute {few} (same gradients, more passes)", at_once=at_once)
    if request.vllm:
        offer("generate without vLLM (slower)", vllm=0.0)
    if request.backend == "trl":
        catch = "; but its KL reference is the base model" if request.beta else ""
        offer(f"use Unsloth (checkpoints go to host memory{catch})", backend="unsloth")
    shorter = largest(
        1, request.completion, lambda v: look(dataclasses.replace(request, completion=v)).peak.total <= machine.usable
    )
    if shorter is not None and shorter >= 16:
        offer(f"cap completions at {shorter} tokens (only if replies are shorter than that)", completion=shorter)
    if request.bits == 16:
        offer("load the base in 4 bit (slower to generate, a little less exact)", bits=4)
    smaller = largest(
        2, request.group, lambda v: look(dataclasses.replace(request, group=v)).peak.total <= machine.usable
    )
    if smaller is not None:
        offer(f"sample {smaller} completions per prompt (noisier comparison)", group=smaller)
    for rank in (32, 16):
        if rank < request.rank:
            offer(f"make the adapter rank {rank} (needs a new SFT; saves little)", rank=rank)
    if not any(one.fits for one in out):
        out.append(_together(request, machine, look))
    return out


def _passes(request: Request, fits: Callable[[Request], bool]) -> int:
    """The most completions at a time, halving from the group, with which it fits; 1 when none does."""
    at_once = request.pass_rows // 2
    while at_once > 1 and not fits(dataclasses.replace(request, at_once=at_once)):
        at_once //= 2
    return max(1, at_once)


def _together(request: Request, machine: Machine, look: Callable[[Request], Estimate]) -> Advice:
    """Changes heaped up in order of harm until it fits."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("gradient checkpointing", {"checkpointing": True}),
        ("8-bit Adam", {"optimizer_bits": 8}),
        ("one completion at a time", {"at_once": 1}),
        ("no vLLM", {"vllm": 0.0}),
        ("a 4-bit base", {"bits": 4}),
        ("half the completion length", {"completion": max(1, request.completion // 2)}),
        ("a group of 8", {"group": min(8, request.group)}),
        ("rank 16", {"rank": min(16, request.rank)}),
    ]
    changed, words = request, []
    for word, change in steps:
        if dataclasses.replace(changed, **change) == changed:
            continue
        changed = dataclasses.replace(changed, **change)
        words.append(word)
        if look(changed).peak.total <= machine.usable:
            break
    after = look(changed).peak.total
    fits = after <= machine.usable
    end = "" if fits else ", which is still too much: take a smaller model or a larger GPU"
    return Advice(f"together: {', '.join(words)}: {after / GIB:.1f} GiB{end}", changed, after, fits)


def _when_it_fits(request: Request, machine: Machine, look: Callable[[Request], Estimate], peak: int) -> list[Advice]:
    out = []
    smaller_ranks = [rank for rank in (32, 16) if rank < request.rank]
    if smaller_ranks:
        after = [(rank, look(dataclasses.replace(request, rank=rank)).peak.total) for rank in smaller_ranks]
        saved = ", ".join(f"rank {rank} would save {(peak - size) / GIB:.1f} GiB" for rank, size in after)
        changed = dataclasses.replace(request, rank=after[-1][0])
        out.append(Advice(f"rank {request.rank} need not go down: {saved}", changed, after[-1][1], True))
    other = dataclasses.replace(request, bits=16 if request.bits == 4 else 4)
    size = look(other).peak.total
    if request.bits == 4 and size <= machine.usable:
        text = f"16 bit fits too ({size / GIB:.1f} GiB): it generates faster and is what the export merges onto"
        out.append(Advice(text, other, size, True))
    elif request.bits == 16:
        text = f"4 bit would save {(peak - size) / GIB:.1f} GiB, but generates more slowly; 16 bit fits, so keep it"
        out.append(Advice(text, other, size, True))
    return out


def most_at_once(request: Request, machine: Machine, calibration: Calibration | None = None) -> int | None:
    """The most completions in one pass that fit, among the divisors of the step's completions; None = not even one."""
    for rows in range(request.rows, 0, -1):
        if request.rows % rows == 0:
            changed = dataclasses.replace(request, at_once=rows)
            if estimate_on(changed, machine, calibration).peak.total <= machine.usable:
                return rows
    return None


def after_out_of_memory(request: Request) -> Request:
    """What to try after a run ran out of memory, whatever the estimate said: half of what hurts least to halve.

    >>> from ada_tui.planner.shapes import resolve
    >>> first = after_out_of_memory(Request(shape=resolve("qwen2.5-3b"), group=16))
    >>> first.group, first.pass_rows
    (16, 8)
    """
    if request.pass_rows > 1:
        return dataclasses.replace(request, at_once=request.pass_rows // 2)
    if request.completion > 32:
        return dataclasses.replace(request, completion=request.completion // 2)
    return dataclasses.replace(request, group=max(2, request.group // 2))
