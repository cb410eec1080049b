"""The callables as TRL calls them: columns in, lists out, one card for all, faults dropped for the whole group."""

from __future__ import annotations

import inspect
import math
import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewards import Result, RewardConfig, Row, trl_reward_functions
from rewards import card as card_module
from rewards.own import TooSlow, find
from rewards.trl import RewardSnapshot, ScoredBatch, TruncationDetector, completion_text, split_prompt

CONFIG = RewardConfig.default()
PROMPTS = [[{"role": "system", "content": "Be Ada."}, {"role": "user", "content": "Morning"}]] * 2 + [
    [{"role": "user", "content": "Capital of France?"}]
] * 2
COMPLETIONS = [[{"role": "assistant", "content": t}] for t in ("Morning! Sleep ok?", "", "Paris, easy.", "It's Rome.")]
COLUMNS: dict[str, Any] = {
    "kind": ["greeting", "greeting", "factual", "factual"], "gold": [None, None, ["Paris"], ["Paris"]],
    "completion_ids": [[1, 2], [3], [4, 5], [6, 7]], "trainer_state": object(), "unknown": [1, 2, 3, 4],
}  # fmt: skip


def call(functions: list[Any], **more: Any) -> dict[str, list[float | None]]:
    return {f.__name__: f(prompts=PROMPTS, completions=COMPLETIONS, **{**COLUMNS, **more}) for f in functions}


def test_total_first_parts_with_weight_zero() -> None:
    functions = trl_reward_functions(CONFIG)
    assert [f.__name__ for f in functions] == [
        "total",
        "length",
        "filler",
        "tone",
        "uncertainty",
        "unsolicited",
        "guard",
        "substance",
    ]
    assert functions.reward_weights == [1.0] + [0.0] * 7
    out = call(functions)
    assert out["total"][0] == 1.0
    assert out["total"][1] == -1.0
    assert out["guard"][1] == -1.0
    assert out["uncertainty"][2:] == [1.0, 0.0]
    assert all(isinstance(v, float) or v is None for column in out.values() for v in column)


def test_they_are_picklable_and_share_one_snapshot() -> None:
    functions = pickle.loads(pickle.dumps(trl_reward_functions(CONFIG)))
    assert next(f.__name__ for f in functions) == "total"
    assert len({id(f.snapshot) for f in functions}) == 1
    assert functions.snapshot is functions[0].snapshot
    assert call(functions)["total"][0] == 1.0


def test_one_card_per_completion_for_all_callables(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    original = card_module.BUILT_IN["length"]

    def counting(*args: Any, **kwargs: Any) -> Result:
        nonlocal calls
        calls += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(card_module, "BUILT_IN", {**card_module.BUILT_IN, "length": counting})
    call(trl_reward_functions(CONFIG))
    assert calls == 4


def test_a_swapped_configuration_counts_from_the_next_batch() -> None:
    functions = trl_reward_functions(CONFIG)
    before = call(functions)["total"][3]
    functions.snapshot.config = CONFIG.with_weight("uncertainty", 0)
    after = call(functions)["total"][3]
    assert before is not None
    assert after is not None
    assert after > before


def test_the_observer_sees_the_batch_once_with_groups() -> None:
    seen: list[ScoredBatch] = []
    functions = trl_reward_functions(CONFIG, observer=seen.append, truncated=TruncationDetector(2, {5}))
    out = call(functions)
    assert len(seen) == 1
    assert seen[0].groups == [0, 0, 1, 1]
    assert seen[0].totals == out["total"]
    assert seen[0].truncated == [True, False, False, True]
    assert seen[0].prompts[0] == "Morning"
    assert seen[0].rows[2] == Row(kind="factual", gold=("Paris",))


def reward_that(action: str) -> Any:
    def reward(prompt: str, completion: str, row: Row, config: RewardConfig, *, truncated: bool = False) -> Any:
        if prompt != "Morning":
            return 0.5
        if action == "raise":
            raise RuntimeError("no luck")
        if action == "nan":
            return math.nan
        if action == "sometimes none":
            return None if completion else 0.5
        return 7.0

    return reward


@pytest.mark.parametrize("action", ["raise", "nan", "sometimes none", "out of range"])
def test_a_faulty_reward_is_dropped_for_its_whole_group_and_reported(action: str) -> None:
    seen: list[ScoredBatch] = []
    config = CONFIG.with_weight("mine", 1.0)
    functions = trl_reward_functions(config, own={"mine": reward_that(action)}, observer=seen.append)
    out = call(functions)
    assert out["mine"] == [None, None, 0.5, 0.5]
    assert out["total"][:2] == call(trl_reward_functions(CONFIG))["total"][:2]
    assert [(group, fault.reward) for group, fault in seen[0].faults] == [(0, "mine")]


def test_a_fault_of_another_process_is_dropped_here_too() -> None:
    asked: list[Any] = []

    def agree(mine: frozenset[tuple[str, str]]) -> set[tuple[str, str]]:
        asked.append(mine)
        return {*mine, ("Capital of France?", "tone")}

    out = call(trl_reward_functions(CONFIG, agree=agree))
    assert out["tone"][2:] == [None, None]
    assert out["tone"][0] is not None
    assert len(asked) == 1


def test_gdpo_trains_the_parts() -> None:
    config = RewardConfig.from_dict({**CONFIG.to_dict(), "aggregation": "normalize_then_sum"})
    functions = trl_reward_functions(config)
    assert functions.reward_weights[0] == 0
    assert [f.__name__ for f in functions][-1] == "guard"
    out = call(functions)
    assert out["length"] == [2.0, 0.0, pytest.approx(0.5), pytest.approx((0.35 + 0.65 * 0.3) * 0.5)]


def test_prompts_and_completions_in_every_shape() -> None:
    assert split_prompt("Hi") == ("Hi", ())
    assert split_prompt([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user",
    "content": "c"}]) == (
        "c", ("a", "b"),
    )  # fmt: skip
    assert split_prompt([]) == ("", ())
    assert completion_text([{"role": "assistant", "content": [{"type": "text", "text": "Hey"}]}]) == "Hey"
    functions = trl_reward_functions(CONFIG)
    assert functions[0](prompts=["Morning"], completions=["Morning! Sleep ok?"], completion_ids=[[1]]) == [1.0]


OWN = """
from rewards import Result

WEIGHT = 0.5


def reward(prompt, completion, row, config, *, truncated=False):
    marks = completion.count("!")
    return Result(max(0.0, 1 - 0.5 * marks))
"""


def test_own_rewards_are_found_weighted_and_pickled(tmp_path: Path) -> None:
    (tmp_path / "no_shouting.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("import nothing_of_the_kind")
    (tmp_path / "empty.py").write_text("X = 1\n")
    (tmp_path / "length.py").write_text(OWN)
    (tmp_path / "_helper.py").write_text("raise SystemExit")
    found = find(tmp_path)
    assert list(found.rewards) == ["no_shouting"]
    assert {fault.reward for fault in found.faults} == {"broken", "empty", "length"}
    config = found.configure(CONFIG)
    assert config.weights["no_shouting"] == 0.5
    functions = pickle.loads(pickle.dumps(trl_reward_functions(config, own=found.rewards)))
    out = call(functions)
    assert out["no_shouting"] == [0.5, 1.0, 1.0, 1.0]


def test_a_reward_that_hangs_is_stopped_and_given_up(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "def reward(prompt, completion, row, config, *, truncated=False):\n    while True:\n        pass\n"
    )
    found = find(tmp_path, limit_s=0.05)
    start = time.perf_counter()
    for _ in range(5):
        with pytest.raises(TooSlow):
            found.rewards["slow"]("Hi", "Hey", Row(), CONFIG)
    assert time.perf_counter() - start < 3
    out = call(trl_reward_functions(found.configure(CONFIG), own=found.rewards))
    assert out["slow"] == [None] * 4
    assert out["total"][0] == 1.0


def test_snapshot_without_batches_pickles_small() -> None:
    snapshot = RewardSnapshot(CONFIG, observer=print)
    assert pickle.loads(pickle.dumps(snapshot)).observer is None


def test_the_trainer_itself_can_call_them() -> None:
    """GRPOTrainer's own `_calculate_rewards`, on a stand-in for the trainer."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = pytest.importorskip("trl.trainer.grpo_trainer", reason="trl is not installed")
    functions = trl_reward_functions(CONFIG)
    stand_in = SimpleNamespace(
        accelerator=SimpleNamespace(device="cpu", is_main_process=True), reward_funcs=list(functions),
        environments=None, state=SimpleNamespace(global_step=0),
        reward_func_names=[module.get_callable_name(f) for f in functions],
        reward_processing_classes=[None] * len(functions),
        _log_completion_extra=None, _log_metric=None, args=SimpleNamespace(report_to=[]),
    )  # fmt: skip
    inputs = [
        {"prompt": p, "kind": k, "gold": g}
        for p, k, g in zip(PROMPTS, COLUMNS["kind"], COLUMNS["gold"], strict=True)
    ]  # fmt: skip
    calculate = inspect.unwrap(module.GRPOTrainer._calculate_rewards)
    matrix = calculate(stand_in, inputs, PROMPTS, COMPLETIONS, COLUMNS["completion_ids"])
    assert stand_in.reward_func_names == [f.__name__ for f in functions]
    assert matrix.shape == (4, len(functions))
    ours = torch.tensor([[math.nan if v is None else v for v in column] for column in call(functions).values()]).T
    assert torch.allclose(matrix, ours, equal_nan=True)
