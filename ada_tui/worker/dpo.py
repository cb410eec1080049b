"""The dpo job: TRL's DPOTrainer on (best, worst) replies that the rules ranked.

    job.model  = {"adapter": folder of the SFT adapter to go on with, or ""}
    job.data   = {"pairs": path} of prompt rows with "chosen" and "rejected" (`evaluate.candidates.write_pairs`)
    job.params = `settings.DpoSettings` + {"lora": `settings.LoraSettings`} for a run without an adapter

The reference policy is where the run starts: the trainer keeps a frozen copy of the given adapter; for a new one it is
the base. Only `__main__` imports it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import orjson
from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from ada_tui.batching import largest_divisor
from ada_tui.dataset import PromptRow
from ada_tui.errors import BadInput
from ada_tui.persona import Persona
from ada_tui.worker.backends import choose
from ada_tui.worker.bridge import Bridge, train
from ada_tui.worker.context import JobContext
from ada_tui.worker.sft import lora_config
from ada_tui.worker.training import effective, prepare, quiet_trainer, report_to

AT_ONCE = 4
"""Pairs one device computes at the same time."""

WARM_UP = 0.05


def run(context: JobContext) -> None:
    params = context.job.params
    pairs = read_pairs(context.path_of(context.job.data, "pairs"), context.persona)
    per_step = min(int(params["pairs_per_step"]), len(pairs))
    steps = int(params.get("steps") or 0) or math.ceil(float(params["epochs"]) * len(pairs) / per_step)
    context.started(steps=steps)
    backend, _ = choose(context)
    loaded = backend.load(context, train=True)
    prepare(loaded)
    bridge = Bridge(context, steps=steps, save_every=int(params["save_every"]), verb="dpo")
    per_device = largest_divisor(per_step, AT_ONCE)
    args = DPOConfig(
        output_dir=str(context.jobdir.path / "trainer"), max_steps=steps, seed=int(params["seed"]),
        per_device_train_batch_size=per_device, gradient_accumulation_steps=per_step // per_device,
        learning_rate=float(params["learning_rate"]), lr_scheduler_type="cosine",
        warmup_steps=math.ceil(WARM_UP * steps), beta=float(params["beta"]), max_length=int(params["max_length"]),
        logging_steps=1, save_strategy="no", disable_tqdm=True, report_to=report_to(context),
        **backend.trainer_args(loaded),
    )  # fmt: skip
    context.phase("dpo", "preparing the pairs")
    adapter_given = bool(context.job.model.get("adapter"))
    trainer = DPOTrainer(
        model=loaded.model, args=args, train_dataset=Dataset.from_list(pairs), processing_class=loaded.tokenizer,
        peft_config=None if adapter_given else lora_config(params["lora"]), callbacks=[bridge],
    )  # fmt: skip
    quiet_trainer(trainer)
    reference = "the given adapter" if adapter_given else "the base model"
    context.outcome(
        "effective_args", effective(trainer, {"pairs": len(pairs), "pairs_per_step": per_step, "reference": reference})
    )
    train(trainer, bridge, lambda: context.stopping)


def read_pairs(path: Path, persona: Persona) -> list[dict[str, Any]]:
    """Prompt, chosen and rejected turns of every pair.

    Raises:
        BadInput: a line is no pair (file and line are named), or there is none.
    """
    pairs = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            data = orjson.loads(line)
            row = PromptRow.from_json(data)
            replies = {side: [{"role": "assistant", "content": str(data[side])}] for side in ("chosen", "rejected")}
        except (ValueError, KeyError, AttributeError) as error:
            raise BadInput(f"{path}:{number}: not a pair of replies ({error}); make them with `ada-tui eval`") from None
        pairs.append({"prompt": row.messages(persona), **replies})
    if not pairs:
        raise BadInput(f"{path}: no pairs in it; make them with `ada-tui eval`")
    return pairs
