"""GRPO as a real worker process on the tiny model: live weights, the KL reference, pause, stop, death."""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import subprocess
import sys
import time
from statistics import fmean
from typing import Any

import pytest

from ada_tui import launch
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.protocol import (
    Completion,
    Control,
    ControlApplied,
    Group,
    JobEnded,
    Memory,
    ModelLoaded,
    Outcome,
    Probe,
    Saved,
    Step,
)
from ada_tui.worker.context import JobContext
from ada_tui.worker.folders import incomplete
from rewards import RewardConfig
from rewards.combine import total
from rewards.types import RawScores


def totals(group: Group, config: RewardConfig) -> list[float]:
    return [total(RawScores.from_dict(completion.raw), config) for completion in group.completions]


def test_a_live_weight_trains_the_next_batch(bench: Any) -> None:
    """TRL's logged reward equals the total recomputed from groups.jsonl under the weights in force for that batch."""
    job = bench.job("grpo", steps=4)
    old = RewardConfig.from_dict(job.job().rewards)
    new = old.with_weight("guard", 0.0).with_weight("length", 5.0).with_weight("tone", 0.25)
    launch.start(job)
    bench.wait(lambda: bench.events(job, Step), job)

    paused = job.write_control(Control(paused=True, save=1, probes=[Probe(id="mine", prompt="Hey there", n=3)]))
    bench.wait(lambda: launch.status(job).name == "paused", job)
    bench.wait(lambda: [group for group in job.groups() if group.source == "probe"], job)
    bench.wait(lambda: bench.events(job, Saved), job)
    held = len(bench.events(job, Step))
    edited = job.write_control(dataclasses.replace(paused, paused=False, rewards=new.to_dict()))
    bench.wait(lambda: launch.status(job).name == "done", job)

    steps = bench.events(job, Step)
    assert [step.step for step in steps] == [1, 2, 3, 4]
    answers = {answer.version: answer for answer in bench.events(job, ControlApplied)}
    assert answers[edited.version].error is None
    assert answers[edited.version].step == held + 1
    assert answers[edited.version].changed == [
        "weights.guard 1 -> 0",
        "weights.length 1 -> 5",
        "weights.tone 0.5 -> 0.25",
    ]
    trained = [group for group in job.groups() if group.source == "train"]
    for step in steps:
        batch = [group for group in trained if group.batch_id == step.step]
        assert len(batch) == 2
        config = new if step.step > held else old
        assert {group.control_version >= edited.version for group in batch} == {step.step > held}
        assert step.reward == pytest.approx(fmean(x for group in batch for x in totals(group, config)), abs=1e-5)
        other = fmean(x for group in batch for x in totals(group, old if config is new else new))
        assert step.reward != pytest.approx(other, abs=1e-3), (
            "the two weightings must differ for this test to say anything"
        )
    probe = next(group for group in job.groups() if group.source == "probe")
    assert (probe.id, probe.prompt, len(probe.completions)) == ("mine", "Hey there", 3)
    assert [event.step for event in bench.events(job, Saved)] == [held, 4]
    _check_figures(steps, trained)


def _check_figures(steps: list[Step], groups: list[Group]) -> None:
    for step in steps:
        replies = [c for group in groups if group.batch_id == step.step for c in group.completions]
        assert step.length == pytest.approx(fmean(c.tokens for c in replies))
        assert step.truncated == pytest.approx(fmean(c.truncated for c in replies))
        assert step.rewards["length"] == pytest.approx(fmean(c.raw["rewards"]["length"] for c in replies), abs=1e-5)
        assert step.groups == 2
        assert step.dead_groups is not None
        assert set(step.zero_spread) >= {"length", "filler", "tone", "uncertainty", "unsolicited", "guard", "substance"}
        assert step.seconds == pytest.approx(sum(step.timings.values()), abs=1e-6)
        assert step.tokens > 0


def test_the_kl_reference_is_the_sft_policy(bench: Any) -> None:
    """KL is 0 before the first update although the adapter is far from the base, and grows after it."""
    from safetensors.torch import load_file

    sft = bench.run("sft", steps=3, learning_rate=1e-2)
    assert launch.status(sft).name == "done"
    adapter = sft.adapters()[-1][1]
    weights = load_file(adapter / "adapter_model.safetensors")
    assert max(float(w.abs().max()) for name, w in weights.items() if "lora_B" in name) > 1e-3

    job = bench.run("grpo", adapter=adapter, steps=3, beta=0.1, learning_rate=1e-2)
    assert launch.status(job) == launch.Status("done")
    kl = [step.kl for step in bench.events(job, Step)]
    assert kl[0] == pytest.approx(0.0, abs=1e-7)
    assert kl[1] > 1e-4
    assert kl[2] > 1e-4
    loaded = bench.events(job, ModelLoaded)[0]
    assert (loaded.rank, loaded.trainable) == (4, 8192)
    assert loaded.adapter_hash == _digest(adapter)[:16]
    arguments = next(event.data for event in bench.events(job, Outcome) if event.name == "effective_args")
    assert arguments["kl_reference"] == "the given adapter"
    assert arguments["trainable_parameters"] == 8192  # the frozen copy is not trained
    saved = job.adapters()[-1][1]
    assert sorted(load_file(saved / "adapter_model.safetensors")) == sorted(weights)  # and not saved
    assert _digest(saved) != _digest(adapter)

    evaluation = bench.run(
        "eval",
        data={"held_out": "rows.jsonl", "arms": {"base": "", "sft": str(adapter), "grpo": str(saved)}},
        prompts=3,
    )
    assert launch.status(evaluation) == launch.Status("done")
    _check_evaluation(bench, evaluation)


def _check_evaluation(bench: Any, job: JobDir) -> None:
    arms = {e.name: e.data for e in bench.events(job, Outcome) if e.name.startswith("arm:")}
    assert list(arms) == ["arm:base", "arm:sft", "arm:grpo"]
    config = RewardConfig.from_dict(job.job().rewards)
    texts = {}
    for name, data in arms.items():
        groups = [group for group in job.groups() if group.policy == name.removeprefix("arm:")]
        assert len(groups) == data["prompts"] == 3
        assert {len(group.completions) for group in groups} == {data["samples"]} == {2}
        for group in groups:
            assert data["per_prompt"][group.row["id"]] == pytest.approx(fmean(totals(group, config)), abs=1e-5)
        assert data["total"] == pytest.approx(fmean(data["per_prompt"].values()))
        texts[name] = [completion.text for group in groups for completion in group.completions]
    assert texts["arm:base"] != texts["arm:sft"] != texts["arm:grpo"]  # each arm spoke with its own voice


def _digest(adapter: Any) -> str:
    import hashlib

    return hashlib.sha256((adapter / "adapter_model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize("how", ["control", "signal"])
def test_stop_keeps_the_last_finished_step(bench: Any, how: str) -> None:
    job = bench.job("grpo", steps=500)
    owner = launch.start(job)
    bench.wait(lambda: len(bench.events(job, Step)) >= 2, job)
    if how == "control":
        job.write_control(Control(stop=True))
    else:
        os.kill(owner.pid, signal.SIGTERM)
    bench.wait(lambda: job.owner() is None, job, 60)
    assert launch.status(job) == launch.Status("stopped")
    last = bench.events(job, Step)[-1].step
    assert [step for step, _ in job.adapters()] == [last]
    assert incomplete(job.adapters()[0][1], hashes=True) is None
    with pytest.raises(Exception, match="has run already"):
        launch.start(job)


def test_a_killed_worker_is_dead_within_seconds_and_leaves_nothing_half_done(bench: Any) -> None:
    job = bench.job("grpo", steps=500, save_every=1)
    owner = launch.start(job)
    bench.wait(lambda: len(bench.events(job, Saved)) >= 1, job)

    second = subprocess.run(
        [sys.executable, "-m", "ada_tui.worker", str(job.path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert second.returncode == 2
    assert "another worker is on this job" in second.stderr
    assert second.stderr.count("\n") == 1

    os.kill(owner.pid, signal.SIGKILL)
    killed = time.monotonic()
    bench.wait(lambda: launch.status(job).name == "dead", job, 5)
    assert time.monotonic() - killed < 5
    assert launch.status(job).reason.startswith("killed by SIGKILL")
    assert not bench.events(job, JobEnded)
    assert len(bench.events(job, Memory)) >= 1
    for _, folder in job.adapters():
        assert incomplete(folder, hashes=True) is None
    for group in job.groups():
        assert all(isinstance(completion, Completion) for completion in group.completions)


def test_a_full_disk_is_one_line_and_no_half_adapter(bench: Any) -> None:
    job = bench.job("grpo", steps=1)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, 24_000))  # the adapter has 33 kB, every log less

    ended = subprocess.run(
        [sys.executable, "-m", "ada_tui.worker", str(job.path)],
        preexec_fn=small_files, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    last = bench.events(job, JobEnded)[0]
    assert last.status == "failed"
    assert last.error.startswith("the disk is full")
    assert last.traceback is None
    assert not list((job.path / "adapters").glob("*"))


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"prompts_per_step": 9}, "only 8 training rows; set grpo.prompts_per_step to at most 8"),
        ({"data": {"train": "missing.jsonl"}}, "missing.jsonl: not found"),
        ({"data": {}}, "'train' is missing"),
        ({"rewards": {"weights": {"length": "much"}}}, "the reward configuration cannot be used"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_loaded(bench: Any, params: dict[str, Any], line: str) -> None:
    from ada_tui.worker import grpo

    job = bench.job("grpo", **params)
    with JobContext(job) as context, pytest.raises(BadInput) as refused:
        grpo.run(context)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not bench.events(job, ModelLoaded)
