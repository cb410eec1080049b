"""Rewards of the person's own: Python files in a folder, one function each, weighted and trained like the built-in
ones.

Nothing is looked for unless the caller names the folder: a foreign folder must never run code. A file that cannot be
used is reported with its name, the others go on. `rewards` and the worker import it.

    # my_rewards/no_exclamation.py
    from rewards import Result

    WEIGHT = 0.5


    def reward(prompt, completion, row, config, *, truncated=False):
        marks = completion.count("!")
        return Result(max(0.0, 1 - 0.5 * marks), why=(f"{marks} exclamation marks",) if marks else ())
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rewards.card import Fault
from rewards.config import RewardConfig
from rewards.types import REWARD_NAMES, Result, Row

LIMIT_S = 1.0
"""Seconds that one call may take before the reward is dropped for the group."""

STRIKES = 3
"""Calls in a row that may be too slow before the reward is given up for the run."""

RESERVED = frozenset({*REWARD_NAMES, "guard", "substance", "total"})


class TooSlow(Exception):
    """A reward took longer than it may."""


class FileReward:
    """The function of one file. Loaded on first use, so that it can be pickled by its path."""

    def __init__(self, path: Path, limit_s: float = LIMIT_S) -> None:
        self.path = path
        self.__name__ = path.stem
        self.limit_s = limit_s
        self.strikes = 0
        self._function: Callable[..., Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def __call__(
        self, prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False
    ) -> Result:
        if self.strikes >= STRIKES:
            raise TooSlow(f"was given up after {STRIKES} calls of more than {self.limit_s:g} s")
        if self._function is None:
            self._function, _ = load(self.path)
        function = self._function
        try:
            value = _within(self.limit_s, lambda: function(prompt, completion, row, config, truncated=truncated))
        except TooSlow:
            self.strikes += 1
            raise
        self.strikes = 0
        return value if isinstance(value, Result) else Result(value)


@dataclass(frozen=True, slots=True)
class Found:
    """The rewards of a folder, their weights, and the files that cannot be used."""

    rewards: Mapping[str, FileReward] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def configure(self, config: RewardConfig) -> RewardConfig:
        """The configuration with the weights of rewards that it does not know yet."""
        new = {name: weight for name, weight in self.weights.items() if name not in config.weights}
        return replace(config, weights={**config.weights, **new}) if new else config


def find(folder: Path | str, limit_s: float = LIMIT_S) -> Found:
    """Every `*.py` of a folder whose name does not begin with an underscore. Loading runs the files' code."""
    rewards: dict[str, FileReward] = {}
    weights: dict[str, float] = {}
    faults: list[Fault] = []
    for path in sorted(Path(folder).glob("*.py")):
        name = path.stem
        if name.startswith("_"):
            continue
        try:
            if name in RESERVED:
                raise ValueError(f"{name!r} is the name of a built-in reward; rename the file")
            _, module = load(path)
            weight = float(getattr(module, "WEIGHT", 1.0))
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"WEIGHT is {weight!r}; it must be a number from 0 up")
            rewards[name], weights[name] = FileReward(path, limit_s), weight
        except Exception as error:  # whatever a file does on import, the others are still found
            faults.append(
                Fault(name, f"{path.name}: {type(error).__name__}: {error}", trace=traceback.format_exc(limit=8))
            )
    return Found(rewards, weights, tuple(faults))


def load(path: Path) -> tuple[Callable[..., Any], ModuleType]:
    """The reward function of a file: the one called `reward`, else the only public one it defines.

    Raises:
        ValueError: there is none, or more than one.
    """
    name = f"my_rewards_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = {
        n: f for n, f in vars(module).items()
        if callable(f) and not n.startswith("_") and getattr(f, "__module__", None) == name and not isinstance(f, type)
    }  # fmt: skip
    function = own.get("reward") or (next(iter(own.values())) if len(own) == 1 else None)
    if function is None:
        raise ValueError("has no function `reward(prompt, completion, row, config, *, truncated=False)`")
    return function, module


def _within(limit_s: float, call: Callable[[], Any]) -> Any:
    """The value of a call, in a thread that is told to stop when it takes too long."""
    box: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            box.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        # Ends a loop in Python code; a call that hangs in C keeps its (daemon) thread.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TooSlow))
        thread.join(0.05)
        raise TooSlow(f"took more than {limit_s:g} s for one completion")
    if raised:
        if isinstance(raised[0], Exception):
            raise raised[0]
        raise RuntimeError(f"ended with {type(raised[0]).__name__}")
    return box[0]
