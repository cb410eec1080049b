"""How long a step takes: only where it was measured. Anybody may import it.

A range over the measured cells, for the same backend and bits, and only for the device class and the model it was
measured with; no other card's time is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ada_tui.planner.memory import Request


@dataclass(frozen=True, slots=True)
class TokenTime:
    """Milliseconds per generated token (all rows of a step advance together), over the measured cells."""

    low: float
    high: float


MEASURED: dict[str, dict[tuple[str, int], TokenTime]] = {
    "H200": {
        ("trl", 16): TokenTime(122, 188),
        ("trl", 4): TokenTime(139, 212),
        ("unsloth", 16): TokenTime(55, 90),
        ("unsloth", 4): TokenTime(72, 108),
    },
}
"""By device class. Qwen2.5-3B, random weights, eight processes at once on the host: an upper bound for a run alone."""


def step_seconds(device: str, request: Request) -> tuple[float, float] | None:
    """(shortest, longest) generation seconds of a step on `device`, or None where that class was not measured."""
    for device_class, times in MEASURED.items():
        if device_class in device and request.shape.name == "qwen2.5-3b" and not request.vllm:
            time = times[request.backend, request.bits]
            return request.completion * time.low / 1000, request.completion * time.high / 1000
    return None
