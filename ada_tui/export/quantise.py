"""A 16-bit GGUF -> a quantised one, by llama.cpp in a process of its own (an abort in C++ must not end the job).

Uses `llama_model_quantize` of llama-cpp-python, or `llama-quantize` of a llama.cpp checkout; both report alike.
`python -m ada_tui.export.quantise SOURCE OUT TYPE THREADS` is the child.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import util
from pathlib import Path

from ada_tui.errors import BadInput
from ada_tui.export import gguf, tool
from ada_tui.export.tool import Report, silent
from ada_tui.extras import install_line

BITS_PER_WEIGHT: dict[str, float] = {"q4_k_m": 4.9, "q5_k_m": 5.7, "q6_k": 6.6, "q8_0": 8.5, "f16": 16.0}
"""Quantisation -> size to expect; small models land higher (rows that are no multiple of 256 fall back)."""

_TENSOR = re.compile(r"^\[\s*(\d+)/\s*(\d+)\]")


def quantiser(llama_cpp: str = "", *, tool_name: str = "llama-quantize") -> Path | None:
    """`llama-quantize` of the checkout, or None = the package is used.

    Raises:
        BadInput: neither is there; the message says how to get it.
    """
    if llama_cpp:
        root = Path(llama_cpp).expanduser()
        for folder in ("build/bin", "bin", "."):
            if os.access(root / folder / tool_name, os.X_OK) and (root / folder / tool_name).is_file():
                return root / folder / tool_name
    if util.find_spec("llama_cpp") is None:
        raise BadInput(f"{install_line('llama_cpp')}, or build {tool_name} in the checkout of export.llama_cpp")
    return None


def quantise(
    source: Path, out: Path, quant: str, *, llama_cpp: str = "", threads: int = 0, report: Report = silent
) -> None:
    """Write `source` (f16) as `out` in `quant`.

    Args:
        threads: 0 = all cores.

    Raises:
        BadInput: no quantiser, an unknown `quant`, or the quantiser failed.
    """
    if quant not in BITS_PER_WEIGHT or quant == "f16":
        raise BadInput(f"quantisation {quant!r}: known are {', '.join(q for q in BITS_PER_WEIGHT if q != 'f16')}")
    gguf.check(source)
    threads = threads or os.cpu_count() or 1
    binary = quantiser(llama_cpp)
    command = (
        [str(binary), str(source), str(out), quant.upper(), str(threads)]
        if binary
        else [sys.executable, "-P", "-m", "ada_tui.export.quantise", str(source), str(out), quant, str(threads)]
    )

    def on_line(line: str) -> None:
        if match := _TENSOR.match(line):
            report(f"tensor {match[1]} of {match[2]}", int(match[1]) / int(match[2]))

    report(f"to {quant}", 0.0)
    tool.run(command, what=f"quantising to {quant}", on_line=on_line)
    gguf.check(out)


def _child(source: str, out: str, quant: str, threads: str) -> int:
    import ctypes

    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{quant.upper()}")
    params.nthread = int(threads)
    return int(llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(out), ctypes.byref(params)))


if __name__ == "__main__":
    sys.exit(_child(*sys.argv[1:]))
