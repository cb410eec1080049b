"""From "so many prompts with so many replies a step" to TRL's batch arithmetic. Pure numbers; anybody may import it.

TRL's `per_device_train_batch_size` counts completions, and processes x batch x accumulation must hold whole groups.
Nobody should have to solve that by hand: what comes out of `plan` is valid for any number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One optimiser step, divided. `processes x per_device x accumulation == prompts x group`, always."""

    group: int
    """Completions per prompt."""
    prompts: int
    """Prompts per step: as asked, rounded up to a multiple of the processes, so that no group is split over two."""
    processes: int
    per_device: int
    """Completions per process in one forward and backward pass."""
    accumulation: int
    """Passes per step; the completions of a step are generated at once, before the first of them."""

    @property
    def completions(self) -> int:
        """Completions per step, over all processes."""
        return self.prompts * self.group

    def __str__(self) -> str:
        return (
            f"{self.prompts} prompts x {self.group} completions = {self.completions} = {self.processes} process"
            f"{'' if self.processes == 1 else 'es'} x {self.per_device} at a time x {self.accumulation} passes"
        )


def plan(group: int, prompts: int, *, processes: int = 1, at_once: int = 8) -> BatchPlan:
    """The batch of one step.

    Args:
        group: completions per prompt, at least 2.
        prompts: prompts per step, at least 1.
        processes: training processes.
        at_once: the most completions one device should compute at the same time.

    >>> str(plan(8, 4, at_once=16))
    '4 prompts x 8 completions = 32 = 1 process x 16 at a time x 2 passes'
    >>> plan(6, 5, processes=2).prompts
    6

    Raises:
        ValueError: a number is too small.
    """
    if group < 2 or prompts < 1 or processes < 1 or at_once < 1:
        raise ValueError(
            f"impossible batch: group {group}, prompts {prompts}, processes {processes}, at_once {at_once}"
        )
    prompts = -(-prompts // processes) * processes
    share = prompts // processes * group
    per_device = largest_divisor(share, at_once)
    return BatchPlan(group, prompts, processes, per_device, share // per_device)


def largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`.

    >>> largest_divisor(24, 16)
    12
    """
    return next(size for size in range(min(most, number), 0, -1) if number % size == 0)
