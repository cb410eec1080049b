"""The grpo job: TRL's GRPOTrainer with the rules as rewards, from an SFT adapter or a new one.

    job.model  = {"adapter": folder of the SFT adapter to go on with, or ""}
    job.data   = {"train": path} of prompt rows
    job.params = `settings.GrpoSettings` + {"lora": `settings.LoraSettings`} for a run without an adapter

The KL reference (beta > 0) is where the run starts: the trainer keeps a frozen copy of the given adapter; for a new one
it is the base. Only `__main__` imports it.
"""

from __future__ import annotations

import os
from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from ada_tui.batching import BatchPlan, plan
from ada_tui.dataset import PromptRow, load_rows
from ada_tui.errors import BadInput
from ada_tui.persona import Persona
from ada_tui.worker.backends import choose
from ada_tui.worker.bridge import train
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampling, ending_ids
from ada_tui.worker.lengths import completion_cap
from ada_tui.worker.live import GrpoBridge, Recorder, Rollouts, Snapshot
from ada_tui.worker.scoring import own_rewards, reward_config
from ada_tui.worker.sft import lora_config
from ada_tui.worker.shuffled import WARNING, shuffle
from ada_tui.worker.training import effective, prepare, quiet_trainer, report_to
from rewards import trl_reward_functions
from rewards.trl import TruncationDetector

AT_ONCE = 8
"""Completions one device computes at the same time while learning."""

WARM_UP = 0.03


def run(context: JobContext) -> None:
    params = context.job.params
    rows = load_rows(context.path_of(context.job.data, "train"))
    batch = plan(
        int(params["group"]), int(params["prompts_per_step"]),
        processes=int(os.environ.get("WORLD_SIZE", "1")), at_once=AT_ONCE,
    )  # fmt: skip
    if len(rows) < batch.prompts:
        raise BadInput(f"only {len(rows)} training rows; set grpo.prompts_per_step to at most {len(rows)}")
    steps = int(params["steps"])
    own = own_rewards(context)
    config = reward_config(context, own)
    context.started(steps=steps)
    backend, _ = choose(context)
    loaded = backend.load(context, train=True)
    prepare(loaded)
    cap = completion_cap(loaded.tokenizer, rows, int(params["max_completion"]))

    rollouts = Rollouts(
        context, loaded.tokenizer, batch.group,
        Sampling(float(params["temperature"]), float(params["top_p"]), cap),
    )  # fmt: skip
    recorder = Recorder(
        context, policy=lambda: f"{context.job.id}:step-{bridge.step}", lengths=lambda: snapshot.lengths,
        histories={row.id: row.history for row in rows},
    )  # fmt: skip
    snapshot = Snapshot(
        config, own=own.rewards, truncated=TruncationDetector(cap, ending_ids(loaded.model)), observer=recorder
    )
    bridge = GrpoBridge(
        context, steps=steps, save_every=int(params["save_every"]), iterations=int(params["iterations"]),
        snapshot=snapshot, recorder=recorder, rollouts=rollouts, own=own,
    )  # fmt: skip
    rewards = trl_reward_functions(config, snapshot=snapshot)
    if params.get("shuffle_rewards"):
        rewards = shuffle(rewards, int(params["seed"]))
        context.emit(WARNING)
    trainer = GRPOTrainer(
        model=loaded.model,
        reward_funcs=rewards,
        args=_arguments(context, params, batch, cap, rewards.reward_weights, backend.trainer_args(loaded)),
        train_dataset=_prompts(rows, context.persona),
        processing_class=loaded.tokenizer,
        peft_config=None if context.job.model.get("adapter") else lora_config(params["lora"]),
        callbacks=[bridge],
        rollout_func=rollouts,
    )
    quiet_trainer(trainer)
    reference = "the given adapter" if context.job.model.get("adapter") else "the base model"
    context.outcome(
        "effective_args",
        effective(trainer, {
            "batch": str(batch), "cap": cap, "rows": len(rows),
            "kl_reference": reference if trainer.args.beta else "none (beta is 0)",
        }),
    )  # fmt: skip
    train(trainer, bridge, lambda: context.stopping)


def _arguments(
    context: JobContext, params: dict[str, Any], batch: BatchPlan, cap: int, weights: list[float], more: dict[str, Any]
) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(context.jobdir.path / "trainer"), max_steps=int(params["steps"]), seed=int(params["seed"]),
        num_generations=batch.group, per_device_train_batch_size=batch.per_device,
        gradient_accumulation_steps=batch.accumulation, num_iterations=int(params["iterations"]),
        max_completion_length=cap, temperature=float(params["temperature"]), top_p=float(params["top_p"]),
        learning_rate=float(params["learning_rate"]), lr_scheduler_type="constant_with_warmup",
        warmup_steps=int(WARM_UP * int(params["steps"])), beta=float(params["beta"]),
        loss_type=str(params["loss"]), scale_rewards=str(params["scale_rewards"]),
        multi_objective_aggregation=str(params["aggregation"]), mask_truncated_completions=False,
        reward_weights=weights, disable_dropout=True, logging_steps=1, save_strategy="no", disable_tqdm=True,
        report_to=report_to(context), log_completions=False, **more,
    )  # fmt: skip


def _prompts(rows: list[PromptRow], persona: Persona) -> Dataset:
    """The chat up to the reply, beside the columns that the rewards read."""
    return Dataset.from_list([{**row.row.to_columns(), "prompt": row.messages(persona)} for row in rows])
