"""A whole comparison as real workers on the tiny model: every arm trained, measured, read, and not done twice."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from ada_tui import launch
from ada_tui.dataset import PromptRow, write_rows
from ada_tui.errors import BadInput, JobFailed
from ada_tui.evaluate.arms import ARMS, plan, train
from ada_tui.evaluate.evaluation import read
from ada_tui.follow import follow
from ada_tui.jobs import JobDir
from ada_tui.protocol import Alarm
from ada_tui.settings import Settings
from ada_tui.workspace import Workspace, init
from rewards import Row


@pytest.fixture
def workspace(bench: Any) -> Workspace:
    held_out = [
        PromptRow(
            id=f"h{i}", prompt=prompt, row=Row(id=f"h{i}", kind="factual", gold=(gold,), reference=f"{gold}, easy.")
        )
        for i, (prompt, gold) in enumerate((("What do cows drink?", "water"), ("What's up above us?", "sky")))
    ]
    write_rows(bench.root / "held_out.jsonl", held_out)
    (bench.root / "items.jsonl").write_text('{"id": "legs", "prompt": "How many legs has a spider?", "any": ["8"]}\n')
    (bench.root / "neutral.txt").write_text("A lock lifts a boat from one level of a canal to the next.\n")
    return init(bench.root)


@pytest.fixture
def settings(workspace: Workspace, bench: Any) -> Settings:
    return workspace.settings(
        {
            "model": {"base": str(bench.model)},
            "lora": {"rank": 4, "alpha": 8},
            "sft": {"steps": 2, "rows_per_step": 4, "max_length": 256},
            "grpo": {"max_completion": 12},
            "dpo": {"steps": 3, "pairs_per_step": 2, "max_length": 256, "learning_rate": 1e-3},
            "evaluate": {
                "samples": 2,
                "max_completion": 12,
                "regression": "items.jsonl",
                "neutral": "neutral.txt",
            },
        }
    )


def ended(job: JobDir) -> JobDir:
    list(follow(job))
    return job


def run(job: JobDir) -> JobDir:
    launch.start(job)
    return ended(job)


@pytest.mark.model
@pytest.mark.timeout(1800)
def test_every_arm_is_trained_measured_and_found_again(bench: Any, workspace: Workspace, settings: Settings) -> None:
    data = {"train": "rows.jsonl", "held_out": "held_out.jsonl"}
    sft = run(bench.job("sft", data=data))
    asked = bench.job(
        "grpo", adapter=sft.adapters()[-1][1], steps=2, save_every=1, data=data, withheld=["flattery/great-question"],
        prompts_per_step=2,
    )  # fmt: skip
    grpo = run(asked)
    comparison = plan(workspace, settings, grpo, ARMS, seeds=2, checkpoints=True)
    assert [task.name for task in comparison.tasks] == [
        "sft_long", "sft_long#1", "candidates", "rft", "rft#1", "dpo", "dpo#1", "grpo#1", "shuffled", "shuffled#1",
    ]  # fmt: skip
    comparison.tasks = [task for task in comparison.tasks if "#" not in task.name or task.name == "grpo#1"]
    comparison.names = [name for name in comparison.names if "#" not in name or name == "grpo#1"]
    train(comparison, ended, side_by_side=2)

    control = comparison.policies["shuffled"].run
    shuffled = JobDir(workspace.checkpoints / control)
    assert any(isinstance(event, Alarm) and event.kind == "control_run" for event in shuffled.events())
    assert {**shuffled.job().params, "arm": 0, "shuffle_rewards": 0, "worker": 0, "own_rewards": 0} == {
        **grpo.job().params, "arm": 0, "shuffle_rewards": 0, "worker": 0, "own_rewards": 0,
    }  # fmt: skip
    assert shuffled.job().rewards == grpo.job().rewards

    evaluation = ended(comparison.start_eval())
    found = read(evaluation)
    assert list(found.arms) == list(ARMS)
    assert set(found.arms["grpo"].seeds) == {"grpo", "grpo#1"}
    assert [point.name for point in found.ceiling] == ["sft", "bon4", "bon8", "bon16"]
    assert {point.name for point in found.path} >= {"base", "sft", "rft", "dpo", "grpo", "grpo@1", "shuffled"}
    assert next(point.kl for point in found.path if point.name == "sft") == pytest.approx(0, abs=1e-6)
    assert all(point.kl > 0 for point in found.path if point.name in ("dpo", "grpo", "rft"))
    for arm in ("base", "sft", "grpo"):
        assert found.arms[arm].probes["reference_perplexity"] > 1
        assert found.arms[arm].probes["neutral_perplexity"] > 1
        assert list(found.regression[arm]) == ["legs"]
    assert found.arms["bon16"].total >= found.arms["sft"].total
    assert not [finding for finding in found.findings if finding.fatal]

    again = plan(workspace, settings, grpo, ["sft", "rft", "dpo", "shuffled"])
    assert again.tasks == []


@pytest.mark.model
def test_a_failed_arm_is_named_and_trained_anew(bench: Any, workspace: Workspace, settings: Settings) -> None:
    data = {"train": "rows.jsonl", "held_out": "held_out.jsonl"}
    sft = run(bench.job("sft", data=data))
    comparison = plan(workspace, settings, sft, ["base", "sft", "rft"])
    started: list[JobDir] = []
    killed = threading.Event()

    def told(name: str, job: JobDir) -> None:
        started.append(job)
        launch.take_rung(job, "kill")
        launch.wait_until_gone(job, 10)
        killed.set()

    with pytest.raises(JobFailed):
        train(comparison, lambda job: None, side_by_side=2, told=told)
    assert killed.is_set()
    assert launch.status(started[0]).name == "dead"
    anew = plan(workspace, settings, sft, ["base", "sft", "rft"])
    assert [task.name for task in anew.tasks] == ["candidates", "rft"]


def test_the_pairs_are_refused_line_by_line(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="the train extra is not installed")
    from ada_tui.persona import Persona
    from ada_tui.worker.dpo import read_pairs

    path = tmp_path / "pairs.jsonl"
    good = {"id": "a", "prompt": "Hi", "chosen": "Hey.", "rejected": "Great question!"}
    path.write_bytes(orjson.dumps(good) + b"\n\n")
    pair = read_pairs(path, Persona(system="You are Ada."))[0]
    assert [turn["role"] for turn in pair["prompt"]] == ["system", "user"]
    assert pair["rejected"] == [{"role": "assistant", "content": "Great question!"}]
    path.write_bytes(orjson.dumps(good) + b"\n" + orjson.dumps({"id": "b", "prompt": "Hi", "chosen": "x"}) + b"\n")
    with pytest.raises(BadInput, match=r"pairs\.jsonl:2: not a pair"):
        read_pairs(path, Persona())
    path.write_bytes(b"\n")
    with pytest.raises(BadInput, match="no pairs"):
        read_pairs(path, Persona())


def test_shuffling_moves_totals_within_their_group_only() -> None:
    pytest.importorskip("trl", reason="the train extra is not installed")
    from ada_tui.worker.shuffled import shuffle
    from rewards import RewardConfig, trl_reward_functions

    config = RewardConfig.default()
    functions = trl_reward_functions(config)
    dealt = shuffle(trl_reward_functions(config), seed=3)
    prompts = ["Morning"] * 6 + ["Thanks"] * 6
    replies = [
        "Morning! Sleep ok?",
        "",
        "Great question! As an AI I can help.",
        "Hey",
        "I don't know.",
        "x x x x x",
    ] * 2
    columns = {"id": ["a"] * 6 + ["b"] * 6, "kind": ["greeting"] * 6 + ["thanks_bye"] * 6}
    true, mixed = functions[0](prompts, replies, **columns), dealt[0](prompts, replies, **columns)
    assert mixed != true
    assert sorted(mixed[:6]) == sorted(true[:6])
    assert sorted(mixed[6:]) == sorted(true[6:])
    assert [f.__name__ for f in dealt] == [f.__name__ for f in functions]
    for ours, theirs in zip(dealt[1:], functions[1:], strict=True):
        assert ours(prompts, replies, **columns) == theirs(prompts, replies, **columns)
    gdpo = dataclasses.replace(config, aggregation="normalize_then_sum")
    with pytest.raises(BadInput, match="sum_then_normalize"):
        shuffle(trl_reward_functions(gdpo), seed=3)
