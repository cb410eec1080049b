"""Between a TRL trainer and the job directory: what the trainer does becomes events, what the person wants happens.

A trainer callback and nothing more: it touches nothing private of the trainer, so it works with plain TRL and with a
patched one. `Bridge` serves every training job; `GrpoBridge` adds rollouts, rewards and live control.
Only ada_tui.worker may import it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from ada_tui.protocol import Control, ControlApplied, Step
from ada_tui.worker.adapters import save_adapter
from ada_tui.worker.context import JobContext, Stopped, StoppedNow

Figures = dict[str, Any]


class Bridge(TrainerCallback):
    """Events, checkpoints, pause and stop."""

    def __init__(self, context: JobContext, *, steps: int, save_every: int, verb: str) -> None:
        """`verb` names the phase ("sft", "grpo"); `save_every` 0 saves at the end only."""
        self.context = context
        self.steps, self.save_every, self.verb = steps, save_every, verb
        self.model: Any = None
        self.step = 0
        self.saved_at = -1
        self._began = self._seconds = 0.0
        self._tokens = 0
        self._answered = 0
        self._saves = 0

    # -- the trainer calls

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.model = model
        self.context.phase(self.verb, f"step 0 of {self.steps}", 0.0)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.context.check()
        self.listen()
        self.context.wait_while_paused(self.listen)
        self.context.check()
        self.listen()  # what ended the pause may have brought more than its end
        self._began = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.step = state.global_step
        self._seconds = time.monotonic() - self._began
        if self.context.stopping:
            control.should_training_stop = True
        if self.save_every and self.step % self.save_every == 0:
            self.save()

    def on_log(self, args: Any, state: Any, control: Any, logs: Figures | None = None, **_: Any) -> None:
        if not logs or "loss" not in logs:
            return  # the summary at the end of training
        self.context.emit(self.figures(state.global_step, logs))
        done = f"step {state.global_step} of {self.steps}"
        self.context.phase(self.verb, done, min(1.0, state.global_step / max(1, self.steps)))

    # -- ours

    def save(self) -> None:
        """Save the adapter of the last finished step, unless that stands already."""
        if self.step == self.saved_at or self.step == 0:
            return
        self.context.phase("save", f"step {self.step}")
        target = self.context.jobdir.path / "adapters" / f"step-{self.step:06d}"
        save_adapter(self.model, target, {"step": self.step, "job": self.context.job.id, **self.about()})
        self.saved_at = self.step
        self.context.saved(target, self.step)

    def about(self) -> Figures:
        """More for the marker of a checkpoint."""
        return {}

    def figures(self, step: int, logs: Figures) -> Step:
        """The event of one optimiser step."""
        tokens = logs.get("num_tokens")
        fresh = None if tokens is None else int(tokens) - self._tokens
        self._tokens = self._tokens if tokens is None else int(tokens)
        return Step(
            step=step, loss=logs.get("loss"), lr=logs.get("learning_rate"), grad_norm=logs.get("grad_norm"),
            entropy=logs.get("entropy"), tokens=fresh, seconds=self._seconds, control_version=self._answered,
        )  # fmt: skip

    def listen(self) -> None:
        """Look at control.json; answer a new version once. Called before every step and while paused."""
        wanted = self.context.control()
        if wanted.save > self._saves and self.step > 0:
            self._saves = wanted.save
            self.save()
        if wanted.version > self._answered:
            self._answered = wanted.version
            self.context.emit(ControlApplied(version=wanted.version, step=self.step + 1, changed=_switches(wanted)))


def _switches(control: Control) -> list[str]:
    return [name for name, on in (("paused", control.paused), ("stop", control.stop)) if on]


def train(trainer: Any, bridge: Bridge, stopped: Callable[[], bool]) -> None:
    """Train to the end, saving the last finished step whatever happens, short of an immediate stop or a failure."""
    try:
        trainer.train()
    except StoppedNow:
        raise
    except Stopped:
        bridge.save()
        raise
    bridge.save()
    if stopped():
        raise Stopped
