"""Who may import whom. Each room is imported in a fresh interpreter, and sys.modules says what it reached."""

from __future__ import annotations

import subprocess
import sys

import pytest

TORCH = {"torch", "transformers", "trl", "peft", "datasets", "bitsandbytes", "unsloth"}
HEAVY = TORCH | {"scipy", "sklearn", "pyarrow", "gguf", "llama_cpp", "numpy"}

ROOMS = [
    ("rewards", HEAVY | {"textual", "ada_tui", "pydantic", "orjson"}),
    ("ada_tui.protocol", HEAVY | {"textual"}),
    ("ada_tui.jobs", HEAVY | {"textual"}),
    ("ada_tui.launch", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.store", HEAVY | {"textual"}),
    ("ada_tui.settings", HEAVY | {"textual"}),
    ("ada_tui.dataset", HEAVY | {"textual"}),
    ("ada_tui.evaluate", HEAVY | {"textual"}),
    ("ada_tui.evaluate.arms", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.evaluate.report", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.evaluate.ship", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.export", TORCH | {"textual", "ada_tui.worker"}),
    ("ada_tui.planner", HEAVY | {"textual"}),
    ("ada_tui.runs", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.demo", HEAVY | {"textual", "ada_tui.worker"}),
    ("ada_tui.cli", HEAVY | {"textual", "ada_tui.worker", "pydantic"}),
    ("ada_tui.ui.app", (HEAVY - {"numpy"}) | {"ada_tui.worker"}),  # textual-plot computes with numpy
]


@pytest.mark.parametrize(("room", "forbidden"), ROOMS, ids=[room for room, _ in ROOMS])
def test_room_reaches_only_what_it_may(room: str, forbidden: set[str]) -> None:
    code = f"import {room}, sys; print('\\n'.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not forbidden & loaded


def test_the_worker_never_reaches_the_screen() -> None:
    pytest.importorskip("torch", reason="the train extra is not installed")
    code = "import ada_tui.worker.grpo, ada_tui.worker.sft, ada_tui.worker.sample, sys; print('\\n'.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not {"textual", "ada_tui.ui"} & loaded
