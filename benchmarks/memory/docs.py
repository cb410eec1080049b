"""The tables and the plot of docs/memory.md from benchmarks/results/memory.json. Needs no GPU."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ada_tui.planner import GIB, Plan, Request, card, estimate, make_plan, resolve
from ada_tui.planner.deploy import deployment
from benchmarks.memory.fit import device_peak, halves, measured_peak, request_of

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "memory.json"
PAGE = ROOT / "docs" / "memory.md"
PLOT = ROOT / "docs" / "memory.svg"

Cell = dict[str, Any]


def read() -> dict[str, Any]:
    """What was measured."""
    found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return found


def rewrite() -> None:
    """Replace what stands between the markers of docs/memory.md, and the plot."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PLOT.write_text(plot(read()["cells"]), encoding="utf-8")


def page(text: str) -> str:
    """`text` with every generated block made anew."""
    for name, make in BLOCKS.items():
        pattern = rf"(<!-- {name}: generated -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda m, make=make: m[1] + make() + "\n" + m[2], text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"docs/memory.md needs exactly one block {name}")
    return text


def error(cell: Cell) -> float:
    """(predicted - measured) / measured of torch's peak allocated."""
    guess = max(phase.torch for phase in estimate(request_of(cell)).phases if not phase.estimated)
    return guess / measured_peak(cell) - 1


def device_error(cell: Cell) -> float:
    """The same of what the process held on the device."""
    return estimate(request_of(cell)).peak.total / device_peak(cell) - 1


def _plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {"shape": resolve("qwen2.5-3b"), "group": 16, **changes}
    return make_plan(Request(**values), card(24))


def _table(header: str, rows: list[str]) -> str:
    columns = header.count("|") - 1
    return "\n".join([header, "|" + "---|" * columns, *rows])


def answer() -> str:
    rows = []
    for backend in ("trl", "unsloth"):
        for bits in (16, 4):
            for at_once in (0, 8):
                groups = []
                for length in (128, 256, 512, 1024):
                    plan = _plan(backend=backend, bits=bits, completion=length, at_once=at_once)
                    groups.append("512+" if plan.max_group == 512 else str(plan.max_group or "none"))
                what = "whole group" if not at_once else f"{at_once} at a time"
                rows.append(f"| {backend} | {bits} bit | {what} | " + " | ".join(groups) + " |")
    return _table("| backend | base | pass | 128 tokens | 256 | 512 | 1024 |", rows)


def ranks() -> str:
    rows = []
    for bits in (16, 4):
        peaks = [_plan(bits=bits, rank=rank, beta=0.04).estimate.peak.total / GIB for rank in (64, 32, 16)]
        rows.append(
            f"| {bits} bit | " + " | ".join(f"{peak:.1f}" for peak in peaks) + f" | {peaks[0] - peaks[2]:.1f} |"
        )
    return _table("| base | rank 64 | rank 32 | rank 16 | 64 to 16 saves |", rows)


def speeds() -> str:
    rows = []
    for backend in ("trl", "unsloth"):
        medians = []
        for bits in (16, 4):
            times = [
                1000 * cell["phases"]["generation"]["seconds"] / cell["completion"]
                for cell in read()["cells"]
                if (cell["backend"], cell["bits"], cell["role"]) == (backend, bits, "grid")
                and (backend == "unsloth" or cell["completion"] <= 256)
            ]
            medians.append((statistics.median(times), len(times)))
        (full, n16), (four, n4) = medians
        rows.append(f"| {backend} | {full:.0f} ({n16} cells) | {four:.0f} ({n4} cells) | {four / full:.2f} |")
    return _table("| backend | 16 bit, ms a token | 4 bit, ms a token | 4 bit : 16 bit |", rows)


def errors() -> str:
    cells = [cell for cell in read()["cells"] if not cell["oom"]]
    fitting, judging = ([cell for cell in half if not cell["oom"]] for half in halves(read()["cells"]))
    rows = []
    for name, chosen in (
        ("fitted on", fitting),
        ("**judging half**", judging),
        ("judging half, trl", [cell for cell in judging if cell["backend"] == "trl"]),
        ("judging half, unsloth", [cell for cell in judging if cell["backend"] == "unsloth"]),
        ("beside the grid", [cell for cell in cells if cell["role"] != "grid"]),
    ):
        for kind, measure in (("peak allocated", error), ("on the device", device_error)):
            off = [abs(measure(cell)) for cell in chosen]
            rows.append(
                f"| {name} | {len(chosen)} | {kind} | {100 * statistics.median(off):.1f} % | {100 * max(off):.1f} % |"
            )
    return _table("| cells | n | what | median error | worst |", rows)


def cells_table() -> str:
    rows = []
    fitting, _ = halves(read()["cells"])
    names = {cell["cell"] for cell in fitting}
    ordered = sorted(
        read()["cells"],
        key=lambda c: (
            c["role"] != "grid",
            c["model"],
            c["backend"],
            c["bits"],
            c["rank"],
            c["group"] * c["completion"],
        ),
    )
    for cell in ordered:
        guess = max(phase.torch for phase in estimate(request_of(cell)).phases if not phase.estimated) / GIB
        notes = [] if cell["role"] == "grid" else [cell["model"]]
        notes += [f"{cell['prompts']} prompts"] * (cell["prompts"] > 1) + [f"{cell['micro']} at a time"] * bool(
            cell["micro"]
        )
        notes += ["no checkpointing"] * (not cell["checkpointing"]) + ["default allocator"] * (not cell["expandable"])
        half = "fits" if cell["cell"] in names else "judges"
        head = f"| {cell['backend']} | {cell['bits']} | {cell['rank']} | {cell['group']} | {cell['completion']} | "
        head += f"{cell['beta']:g} | {', '.join(notes) or '-'} | {half} | "
        if cell["oom"]:
            total = estimate(request_of(cell)).peak.total / GIB
            rows.append(
                head
                + f"out of memory in {cell['oom'].replace('_', '-')} | {guess:.2f} | {total:.1f} of 24 on the device |"
            )
        else:
            rows.append(head + f"{measured_peak(cell) / GIB:.2f} | {guess:.2f} | {100 * error(cell):+.1f} % |")
    return _table("| backend | bits | rank | G | L | beta | | half | measured | predicted | error |", rows)


def source() -> str:
    found = read()
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    count = len(found["cells"])
    load = f"{found['processes_at_once']} processes at once"
    return f"{found['machine']}, {found['date']}, {count} cells, {load}: {versions}."


def board() -> str:
    rows = []
    for quant in ("q4_k_m", "q5_k_m", "q6_k", "q8_0", "f16"):
        cells = []
        for context in (4096, 16384, 32768):
            one = deployment(resolve("qwen2.5-3b"), quant, context)
            cells.append(f"{one.total / GIB:.1f} ({one.left / GIB:+.1f})")
        model = deployment(resolve("qwen2.5-3b"), quant, 4096).parts["model"] / GIB
        rows.append(f"| {quant} | {model:.2f} | " + " | ".join(cells) + " |")
    return _table("| quantisation | file, GiB | context 4096 | 16384 | 32768 |", rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "answer": answer, "ranks": ranks, "speeds": speeds, "errors": errors, "cells": cells_table, "source": source,
    "board": board,
}  # fmt: skip


def plot(cells: list[Cell]) -> str:
    """Predicted against measured as an SVG: circles judge, dots fit, triangles are other models and settings."""
    size, margin, top = 520, 56, 24.0
    names = {cell["cell"] for cell in halves(cells)[0]}

    def at(value: float) -> float:
        return margin + value / top * (size - 2 * margin)

    marks = []
    for cell in cells:
        if cell["oom"]:
            continue
        x = at(measured_peak(cell) / GIB)
        y = size - at(measured_peak(cell) / GIB * (1 + error(cell)))
        colour = "#0b6fa4" if cell["backend"] == "trl" else "#c8501e"
        if cell["role"] != "grid":
            marks.append(f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z" fill="none" stroke="{colour}"/>')
        elif cell["cell"] in names:
            marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>')
        else:
            marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" stroke="{colour}"/>')
    ticks = "".join(
        f'<text x="{at(v):.0f}" y="{size - margin + 18}" text-anchor="middle">{v}</text>'
        f'<text x="{margin - 8}" y="{size - at(v) + 4:.0f}" text-anchor="end">{v}</text>'
        for v in (0, 4, 8, 12, 16, 20, 24)
    )
    low, high = at(0), at(top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="12">'
        f'<rect width="{size}" height="{size}" fill="#fff"/>'
        f'<path d="M{low} {size - high}V{size - low}H{high}" fill="none" stroke="#444"/>'
        f'<path d="M{low} {size - low}L{high} {size - high}" stroke="#999" stroke-dasharray="4 4"/>'
        f"{ticks}{''.join(marks)}"
        f'<text x="{size / 2}" y="{size - 14}" text-anchor="middle">measured peak, GiB</text>'
        f'<text x="16" y="{size / 2}" text-anchor="middle" transform="rotate(-90 16 {size / 2})">predicted, GiB</text>'
        f'<text x="{margin + 12}" y="30"><tspan fill="#0b6fa4">plain TRL</tspan>  <tspan fill="#c8501e">Unsloth</tspan>'
        "  ● fits the constants  ○ judges  △ other models and settings</text></svg>\n"
    )
