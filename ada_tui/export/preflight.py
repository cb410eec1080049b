"""What an export needs, looked at before anything heavy starts: converter, quantiser, disk. Also for `doctor`."""

from __future__ import annotations

import shutil
from pathlib import Path

from ada_tui.errors import BadInput
from ada_tui.export import gguf, tool
from ada_tui.export.quantise import BITS_PER_WEIGHT, quantiser

SLACK = 256 << 20
"""Bytes kept free beside the products."""


def check_tools(llama_cpp: str = "", *, start_them: bool = False) -> list[str]:
    """The tools that would be used, one line each.

    Args:
        start_them: also run each with --help (the converter imports torch: seconds), as doctor does.

    Raises:
        BadInput: one is missing, or does not start.
    """
    converter, binary = gguf.converter(llama_cpp), quantiser(llama_cpp)
    if start_them:
        tool.run([*converter, "--help"], what="the converter", on_line=lambda line: None)
    if binary:
        tool.run([binary, "--help"], what=str(binary), on_line=lambda line: None)
    return [f"converter: {converter[-1]}", f"quantiser: {binary or 'llama-cpp-python'}"]


def check_disk(folder: Path, model_bytes: int, quant: str) -> int:
    """Bytes that the products of a 16-bit model of `model_bytes` take while they are made: merged, f16, quantised.

    Raises:
        BadInput: `folder` has less free.
    """
    wanted = int(model_bytes * (2 + BITS_PER_WEIGHT[quant] / 16)) + SLACK
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise BadInput(
            f"{folder}: the export needs {wanted / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; free some space"
        )
    return wanted
