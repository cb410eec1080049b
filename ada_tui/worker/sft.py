"""The sft job: supervised fine-tuning of a new LoRA adapter on the curated replies, with TRL's SFTTrainer.

    job.data   = {"train": path} of prompt rows
    job.params = `settings.SftSettings` + {"lora": `settings.LoraSettings`}

The loss is on the reply alone; the persona's system prompt is part of every prompt. Only `__main__` imports it.
"""

from __future__ import annotations

import math
from typing import Any

from datasets import Dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

from ada_tui.batching import largest_divisor
from ada_tui.dataset import PromptRow, load_rows
from ada_tui.errors import BadInput
from ada_tui.persona import Persona
from ada_tui.worker.backends import choose
from ada_tui.worker.bridge import Bridge, train
from ada_tui.worker.context import JobContext
from ada_tui.worker.training import effective, prepare, quiet_trainer, report_to

AT_ONCE = 4
"""Chats one device computes at the same time."""

WARM_UP = 0.05


def run(context: JobContext) -> None:
    params = context.job.params
    rows = load_rows(context.path_of(context.job.data, "train"))
    dataset = _chats(rows, context.persona)
    per_step = min(int(params["rows_per_step"]), len(dataset))
    steps = int(params.get("steps") or 0) or math.ceil(float(params["epochs"]) * len(dataset) / per_step)
    context.started(steps=steps)
    backend, _ = choose(context)
    loaded = backend.load(context, train=True)
    prepare(loaded)
    bridge = Bridge(context, steps=steps, save_every=0, verb="sft")
    per_device = largest_divisor(per_step, AT_ONCE)
    args = SFTConfig(
        output_dir=str(context.jobdir.path / "trainer"), max_steps=steps, seed=int(params["seed"]),
        per_device_train_batch_size=per_device, gradient_accumulation_steps=per_step // per_device,
        learning_rate=float(params["learning_rate"]), lr_scheduler_type="cosine",
        warmup_steps=math.ceil(WARM_UP * steps), max_length=int(params["max_length"]), completion_only_loss=True,
        train_sampling_strategy="group_by_length",  # chats differ tenfold in length; padding is a quarter of the work
        logging_steps=1, save_strategy="no", disable_tqdm=True, report_to=report_to(context),
        **backend.trainer_args(loaded),
    )  # fmt: skip
    context.phase("sft", "preparing the chats")
    adapter_given = bool(context.job.model.get("adapter"))
    trainer = SFTTrainer(
        model=loaded.model, args=args, train_dataset=dataset, processing_class=loaded.tokenizer,
        peft_config=None if adapter_given else lora_config(params["lora"]), callbacks=[bridge],
    )  # fmt: skip
    quiet_trainer(trainer)
    context.outcome("effective_args", effective(trainer, {"rows": len(dataset), "rows_per_step": per_step}))
    train(trainer, bridge, lambda: context.stopping)


def lora_config(settings: dict[str, Any]) -> LoraConfig:
    """A new adapter. Tied embeddings and the output layer are never targets ("all-linear" leaves them out)."""
    return LoraConfig(
        r=int(settings["rank"]), lora_alpha=int(settings["alpha"]), lora_dropout=float(settings["dropout"]),
        target_modules=settings["targets"], bias="none", task_type="CAUSAL_LM",
    )  # fmt: skip


def _chats(rows: list[PromptRow], persona: Persona) -> Dataset:
    """Prompt and completion turns of every row that has a reference."""
    chats = [
        {"prompt": row.messages(persona), "completion": [{"role": "assistant", "content": row.row.reference}]}
        for row in rows
        if row.row.reference
    ]
    if not chats:
        raise BadInput(
            "no training row has a reference reply, so there is nothing to imitate; add replies to the chats"
        )
    return Dataset.from_list(chats)
