"""One process that measures cells on the CUDA device: real trainer, real loss, synthetic completions, random weights.

Needs torch, transformers, trl, peft, bitsandbytes (and unsloth for its cells). Run by `python -m benchmarks.memory`.
Prints one line of JSON per cell on stdout; everything else goes to stderr.

A cell is two optimiser steps of TRL's or Unsloth's GRPOTrainer. The first, with 16-token completions, creates the
optimiser's state; the second has the cell's sizes and is the one that is measured, phase by phase, between
synchronised marks. Generation runs the real `generate`; beyond `FULL_GENERATION` tokens plain TRL starts from a cache
pre-filled with random keys and values, so that only the last tokens are decoded. What is trained on are random tokens
of full length. `set_per_process_memory_fraction` stands in for a smaller card, and `mem_get_info` is made to tell of
the same limit, because Unsloth sizes its chunks by it.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.memory.grid import Cell

GIB = 1 << 30
FULL_GENERATION = 256
WARM_UP_LENGTH = 16
DECODED = 4
"""Tokens that are really decoded after a pre-filled cache."""
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=Path, required=True, help="JSON list of cells that share a process")
    parser.add_argument("--model", type=Path, required=True, help="folder of the random-weight model")
    parser.add_argument("--limit-gib", type=float, default=24.0)
    args = parser.parse_args(argv)
    cells = [Cell(**fields) for fields in json.loads(args.cells.read_text())]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ["PYTORCH_ALLOC_CONF"] = f"expandable_segments:{cells[0].expandable}"
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", UNSLOTH_DISABLE_STATISTICS="1")
    if cells[0].backend == "unsloth":
        import unsloth  # noqa: F401  before trl: it patches it
    device = Device(args.limit_gib)
    started = time.perf_counter()
    longest = max(cell.completion + cell.prompt for cell in cells)
    model, tokenizer = load(cells[0], args.model, longest)
    loaded = device.reading()
    print(f"loaded in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    for cell in cells:
        started = time.perf_counter()
        result = {
            "cell": cell.id,
            "max_length": longest,
            "limit": device.limit,
            "loaded": loaded,
            **measure(cell, model, tokenizer, device),
        }
        out.write(json.dumps(result) + "\n")
        print(f"{cell.id}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
        if result["oom"]:
            return 75  # the traceback may still hold tensors: the rest goes to a fresh process
    return 0


class Device:
    """The CUDA device under a limit, and its readings in bytes."""

    def __init__(self, limit_gib: float) -> None:
        import torch

        self.torch = torch
        self.cuda = torch.cuda.is_available()
        self.limit = int(limit_gib * GIB)
        self.phases: dict[str, dict[str, float | int | None]] = {}
        self.since = time.perf_counter()
        if self.cuda:
            torch.zeros(1, device="cuda")
            total = torch.cuda.mem_get_info()[1]
            context = (self.used() or GIB // 2) - torch.cuda.memory_reserved()
            self.limit -= context
            torch.cuda.set_per_process_memory_fraction(self.limit / total)
            torch.cuda.mem_get_info = lambda device=None: (
                max(0, self.limit - torch.cuda.memory_reserved()),
                int(limit_gib * GIB),
            )
            torch.cuda.get_per_process_memory_fraction = lambda device=None: 1.0

    def used(self) -> int | None:
        """Bytes of the device that this process holds, context included; None where NVML does not tell."""
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
            if process.pid == os.getpid():
                return process.usedGpuMemory
        return None

    def reading(self) -> dict[str, float | int | None]:
        if not self.cuda:
            return {"allocated": 0, "reserved": 0, "device": None}
        self.torch.cuda.synchronize()
        return {
            "allocated": self.torch.cuda.max_memory_allocated(),
            "reserved": self.torch.cuda.max_memory_reserved(),
            "device": self.used(),
        }

    def reset(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()
            self.torch.cuda.reset_peak_memory_stats()
        self.since = time.perf_counter()

    def mark(self, phase: str) -> None:
        """The peak since the last mark belongs to `phase`."""
        peak = self.reading()
        seconds = time.perf_counter() - self.since
        self.phases[phase] = {**peak, "seconds": round(seconds, 3)}
        self.reset()


def load(cell: Cell, folder: Path, longest: int) -> tuple[Any, Any]:
    """The model with a trainable adapter, as a GRPO run that goes on from an SFT adapter has it, and its tokenizer."""
    import torch

    if cell.backend == "unsloth":
        from unsloth import FastLanguageModel

        model, tokenizer = FastLanguageModel.from_pretrained(
            str(folder), max_seq_length=longest, load_in_4bit=cell.bits == 4, dtype=torch.bfloat16
        )
        model = FastLanguageModel.get_peft_model(
            model, r=cell.rank, lora_alpha=2 * cell.rank, target_modules=TARGETS, lora_dropout=0,
            use_gradient_checkpointing="unsloth" if cell.checkpointing else False,
        )  # fmt: skip
        return model, tokenizer
    import transformers
    from peft import LoraConfig, get_peft_model

    quantization = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, device_map={"": 0 if torch.cuda.is_available() else "cpu"},
        **({"quantization_config": quantization} if cell.bits == 4 else {}),
    )  # fmt: skip
    lora = LoraConfig(r=cell.rank, lora_alpha=2 * cell.rank, target_modules=TARGETS, task_type="CAUSAL_LM")
    return get_peft_model(model, lora), transformers.AutoTokenizer.from_pretrained(folder)


def measure(cell: Cell, model: Any, tokenizer: Any, device: Device) -> dict[str, Any]:
    """Two optimiser steps; peaks of the second by phase. `oom` names the phase that ran out of memory."""
    import torch

    base = model.get_base_model()
    original_forward = base.__dict__.get("forward")
    device.phases = {}
    if device.cuda:
        torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated() if device.cuda else 0
    out_of_memory, trainer = None, None
    try:
        trainer = build(cell, model, tokenizer, device)
        trainer.train()
    except torch.OutOfMemoryError as error:
        print(f"{cell.id}: {str(error)[:200]}", file=sys.stderr)
        order = ("warm_up", "generation", "scoring", "forward_backward", "optimizer")
        out_of_memory = next((phase for phase in order if phase not in device.phases), "optimizer")
    result = {"oom": out_of_memory, "before": before, "phases": device.phases}
    if trainer is not None:
        result["trainable_bytes"] = sum(
            p.numel() * p.element_size() for p in trainer.model.parameters() if p.requires_grad
        )
        result["effective"] = {
            "optim": str(trainer.args.optim),
            "batch": trainer.args.per_device_train_batch_size,
            "accumulation": trainer.args.gradient_accumulation_steps,
        }
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        trainer.accelerator.free_memory()
        trainer.optimizer = trainer.lr_scheduler = None
    del trainer
    if original_forward is None:
        base.__dict__.pop("forward", None)
    else:
        base.forward = original_forward
    if "ref" in model.peft_config:
        model.delete_adapter("ref")
    model.zero_grad(set_to_none=True)
    gc.collect()
    if device.cuda:
        torch.cuda.empty_cache()
        result["after"] = torch.cuda.memory_allocated()
    return result


def build(cell: Cell, model: Any, tokenizer: Any, device: Device) -> Any:
    """The trainer of `cell`, with generation made quick and marks between its phases."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    micro = cell.micro or cell.group
    args = GRPOConfig(
        output_dir=os.environ["ADA_BENCHMARK_WORK"],
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=cell.group * cell.prompts // micro,
        num_generations=cell.group,
        max_completion_length=cell.completion,
        beta=cell.beta,
        bf16=device.cuda,
        use_cpu=not device.cuda,
        optim="adamw_8bit" if device.cuda else "adamw_torch",
        gradient_checkpointing=cell.checkpointing,
        max_steps=2,
        logging_steps=1,
        learning_rate=1e-6,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        temperature=1.0,
        loss_type="dapo",
    )
    # One byte is one token of the benchmark's tokenizer.
    rows = [{"prompt": "".join(chr(97 + (i + j) % 26) for j in range(cell.prompt))} for i in range(4 * cell.prompts)]
    trainer = GRPOTrainer(
        model=model,
        args=args,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=[spread_rewards],
    )

    class Marks(TrainerCallback):
        """Between the phases of the second step."""

        def on_pre_optimizer_step(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
            if state.global_step == 1:
                device.mark("forward_backward")

        def on_optimizer_step(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
            device.mark("optimizer" if state.global_step == 1 else "warm_up")

    trainer.add_callback(Marks())
    generate = trainer._generate_single_turn
    score = trainer._generate_and_score_completions

    def quick_generation(prompt_ids, images, multimodal_fields, num_generations, *rest, **more):  # type: ignore[no-untyped-def]
        first = trainer.state.global_step == 0
        config = trainer.generation_config
        wanted = cell.completion
        prefilled = not first and cell.backend == "trl" and wanted > FULL_GENERATION
        trainer.generation_config = copy.deepcopy(config)
        trainer.generation_config.max_new_tokens = WARM_UP_LENGTH if first else DECODED if prefilled else wanted
        try:
            generate(prompt_ids, images, multimodal_fields, num_generations, *rest, **more)
            if prefilled:
                decode_from_full_cache(trainer, len(prompt_ids), cell)
        finally:
            trainer.generation_config = config
        if not first:
            device.mark("generation")
        length = WARM_UP_LENGTH if first else wanted
        tokens = torch.randint(0, 256, (len(prompt_ids), length))
        tokens[:, -1] = tokenizer.eos_token_id  # Unsloth masks truncated completions and would skip their rows
        return tokens.tolist(), None

    def marked_scoring(inputs):  # type: ignore[no-untyped-def]
        if trainer.state.global_step == 1:
            device.reset()
        scored = score(inputs)
        if trainer.state.global_step == 1:
            device.mark("scoring")
        return scored

    trainer._generate_single_turn = quick_generation
    trainer._generate_and_score_completions = marked_scoring
    return trainer


def decode_from_full_cache(trainer: Any, rows: int, cell: Cell) -> None:
    """Decode the last tokens of `rows` sequences whose keys and values up to there are random numbers."""
    import torch
    from transformers import DynamicCache
    from trl.models.utils import unwrap_model_for_generation

    config = trainer.model.config
    length = cell.prompt + cell.completion - DECODED
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = (rows, config.num_key_value_heads, length, head_dim)
    where = trainer.accelerator.device
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model, torch.no_grad():
        cache = DynamicCache()
        for layer in range(config.num_hidden_layers):
            cache.update(
                torch.randn(shape, device=where, dtype=torch.bfloat16),
                torch.randn(shape, device=where, dtype=torch.bfloat16),
                layer,
            )
        ids = torch.randint(0, 256, (rows, length + 1), device=where)
        model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=cache,
            generation_config=trainer.generation_config,
        )


def spread_rewards(completions: list[str], **columns: object) -> list[float]:
    """Rewards that differ within every group."""
    return [float(i % 3) for i in range(len(completions))]


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch", "transformers", "trl", "peft", "accelerate", "bitsandbytes", "unsloth", "unsloth_zoo"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
