"""What fits in the memory of a GPU, and why: counted from a model's config.json, judged by measurements.

Not here: loading anything, torch, the screen. Anybody may import it.
"""

from __future__ import annotations

from ada_tui.planner.calibration import Calibration, request_of
from ada_tui.planner.constants import GIB
from ada_tui.planner.machine import Machine, card, this_machine
from ada_tui.planner.memory import PHASES, Estimate, Phase, Request, estimate
from ada_tui.planner.report import bars, document, refusal, summary
from ada_tui.planner.search import Advice, Plan, after_out_of_memory, make_plan, most_at_once
from ada_tui.planner.shapes import PRESETS, Shape, resolve

__all__ = [
    "GIB", "PHASES", "PRESETS", "Advice", "Calibration", "Estimate", "Machine", "Phase", "Plan", "Request", "Shape",
    "after_out_of_memory", "bars", "card", "document", "estimate", "make_plan", "most_at_once", "refusal", "request_of",
    "resolve", "summary", "this_machine",
]  # fmt: skip
