"""What the training scripts share: trackers, silence, and the arguments as the trainer really has them.

Only ada_tui.worker may import it.
"""

from __future__ import annotations

from typing import Any

from transformers.trainer_callback import PrinterCallback

from ada_tui.worker import cpu_loss
from ada_tui.worker.backends import Loaded
from ada_tui.worker.context import JobContext

SHOWN = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "max_steps", "per_device_train_batch_size",
    "gradient_accumulation_steps", "optim", "bf16", "fp16", "gradient_checkpointing", "weight_decay", "max_grad_norm",
    "seed", "max_length", "completion_only_loss", "num_generations", "generation_batch_size", "steps_per_generation",
    "num_iterations", "max_completion_length", "temperature", "top_p", "beta", "loss_type", "scale_rewards",
    "multi_objective_aggregation", "mask_truncated_completions", "reward_weights", "use_vllm",
)  # fmt: skip
"""Trainer arguments that decide how a run behaves."""


def effective(trainer: Any, more: dict[str, Any]) -> dict[str, Any]:
    """The arguments read back from a built trainer (a backend may have overridden some), plus `more`."""
    args = trainer.args.to_dict()
    trainable = [parameter for parameter in trainer.model.parameters() if parameter.requires_grad]
    return {
        **{name: args[name] for name in SHOWN if name in args},
        "world_size": trainer.args.world_size,
        "trainable_parameters": sum(parameter.numel() for parameter in trainable),
        **more,
    }


def report_to(context: JobContext) -> list[str]:
    """Trackers of the person's choice; none by default."""
    return [str(name) for name in context.job.params.get("worker", {}).get("report_to", [])]


def quiet_trainer(trainer: Any) -> None:
    """No dictionary printed per step: worker.log is for what went wrong."""
    trainer.remove_callback(PrinterCallback)


def prepare(loaded: Loaded) -> None:
    """What a trainer needs before it is built."""
    if loaded.device == "cpu":
        cpu_loss.install()
