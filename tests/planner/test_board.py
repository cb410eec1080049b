"""Sizes of GGUF files and what fits on the board."""

from __future__ import annotations

import pytest

from ada_tui.errors import BadInput
from ada_tui.planner import GIB, Shape, resolve
from ada_tui.planner.deploy import QUANTS, deployment, gguf_bytes, table

QWEN = resolve("qwen2.5-3b")

# A published listing (bartowski/Qwen_Qwen3-4B-GGUF, README), in GB: sizes this file was not written from.
QWEN3 = Shape(
    name="qwen3-4b", hidden=2560, intermediate=9728, layers=36, heads=32, kv_heads=8, head_dim=128, vocab=151_936
)
PUBLISHED = {"q4_k_m": 2.50, "q5_k_m": 2.89, "q6_k": 3.31, "q8_0": 4.28, "f16": 8.05}


@pytest.mark.parametrize(("quant", "gigabytes"), PUBLISHED.items())
def test_file_sizes(quant: str, gigabytes: float) -> None:
    assert gguf_bytes(QWEN3, quant) / 1e9 == pytest.approx(gigabytes, rel=0.005)


def test_rows_that_are_no_multiple_of_256_need_more_bits() -> None:
    """llama.cpp falls back to larger blocks there: SmolLM2-135M shrinks less than its bits promise."""
    small = resolve("smollm2-135m")
    assert gguf_bytes(small, "q4_k_m") / small.parameters > 1.2 * gguf_bytes(QWEN, "q4_k_m") / QWEN.parameters


def test_cache_and_compute_buffer_as_llama_cpp_logs_them() -> None:
    parts = deployment(QWEN, "q4_k_m", 4096).parts
    assert parts["kv_cache"] == 144 << 20
    assert parts["compute"] / (1 << 20) == pytest.approx(300.75, abs=0.01)


def test_what_fits_on_eight_gigabytes() -> None:
    assert deployment(QWEN, "q4_k_m", 32768).fits
    assert not deployment(QWEN, "f16", 2048).fits
    assert deployment(QWEN, "f16", 2048, headless=True).left - deployment(QWEN, "f16", 2048).left == int(
        1.5 * GIB
    ) - int(0.7 * GIB)
    assert {row.quant for row in table(QWEN)} == set(QUANTS)


@pytest.mark.parametrize(
    ("quant", "context", "board", "says"),
    [
        ("q3", 4096, 7.4, "--quant 'q3'"), ("q8_0", 0, 7.4, "--context 0"), ("q8_0", 4096, 0.0, "--board-gb 0"),
        ("q8_0", 4096, float("nan"), "--board-gb nan"),
    ],
)  # fmt: skip
def test_impossible_boards(quant: str, context: int, board: float, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        deployment(QWEN, quant, context, board_gib=board)
