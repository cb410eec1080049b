"""The planner's measured constants from one half of the grid. The other half judges them (docs/memory.md).

Of every four cells of the design, in the order in which `grid.main_grid` lists them, the first and the last fit. A
constant that the half cannot tell from another (both widths grow with the model, and the grid has one model) keeps its
value: `layer_hidden` is what also makes the other models right.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ada_tui.planner.constants import ACTIVATIONS, GIB, Activations
from ada_tui.planner.memory import Request, estimate
from ada_tui.planner.shapes import PRESETS

FREE = {
    "trl": ("layer_mlp", "layer_rank", "forward_mlp", "prefill_mlp", "decode_logits", "workspace"),
    "unsloth": ("layer_mlp", "forward_hidden", "decode_logits", "workspace", "backward_base"),
}
SCALE = {"workspace": GIB, "backward_base": GIB}


def request_of(cell: dict[str, Any]) -> Request:
    """The planner's request for a measured cell."""
    names = ("backend", "bits", "group", "prompts", "prompt", "completion", "rank", "beta", "checkpointing")
    return Request(
        shape=PRESETS[cell["model"]], at_once=cell["micro"], max_length=cell["max_length"],
        **{name: cell[name] for name in names},
    )  # fmt: skip


def halves(cells: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(fitting half, judging half) of the grid."""
    from benchmarks.memory.grid import main_grid

    order = {cell.id: index for index, cell in enumerate(main_grid())}
    grid = sorted((cell for cell in cells if cell["role"] == "grid"), key=lambda cell: order[cell["cell"]])
    fitting = [cell for index, cell in enumerate(grid) if index % 4 in (0, 3)]
    return fitting, [cell for cell in grid if cell not in fitting]


def measured_peak(cell: dict[str, Any]) -> int:
    """Bytes that torch reported as peak allocated over all phases of the step."""
    return max(phase["allocated"] for phase in cell["phases"].values())


def device_peak(cell: dict[str, Any]) -> int:
    """Bytes that the process held on the device at the end of the step: reserved and context."""
    return max(phase["device"] for phase in cell["phases"].values())


def fit(cells: list[dict[str, Any]]) -> None:
    """Print the constants that fit the first half best."""
    import numpy as np
    from scipy.optimize import least_squares

    chosen = [cell for cell in halves(cells)[0] if not cell["oom"]]
    for (backend, bits), start in ACTIVATIONS.items():
        mine = [cell for cell in chosen if (cell["backend"], cell["bits"]) == (backend, bits)]
        names = FREE[backend]

        def constants(values: Any, names: tuple[str, ...] = names, start: Activations = start) -> Activations:
            return dataclasses.replace(
                start, **{n: float(v) * SCALE.get(n, 1) for n, v in zip(names, values, strict=True)}
            )

        def residuals(values: Any, mine: list[dict[str, Any]] = mine, constants: Any = constants) -> Any:
            out = []
            for cell in mine:
                guess = estimate(request_of(cell), activations=constants(values))
                for phase in guess.phases:
                    if phase.name in cell["phases"]:
                        out.append(np.log(phase.torch / cell["phases"][phase.name]["allocated"]))
            return out

        first = [getattr(start, name) / SCALE.get(name, 1) for name in names]
        found = least_squares(residuals, first, bounds=(0, np.inf), loss="soft_l1", f_scale=0.01)
        best = constants(found.x)
        moving, slack, context = [], [], []
        for cell in mine:
            last = cell["phases"]["optimizer"]
            static = cell["phases"]["optimizer"]["allocated"]
            moving.append(measured_peak(cell) - static)
            slack.append(last["reserved"] - measured_peak(cell))
            context.append(last["device"] - last["reserved"])
        share, base = np.polyfit(moving, slack, 1)
        print(f"({backend!r}, {bits}):", {n: round(getattr(best, n) / SCALE.get(n, 1), 4) for n in names})
        print("    context", round(max(context) / GIB, 3), "slack", round(base / GIB, 3), round(float(share), 4))
