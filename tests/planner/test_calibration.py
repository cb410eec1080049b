"""Runs on disk against the estimate, and the overhead fitted to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ada_tui import jobs
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, Log
from ada_tui.planner import GIB, calibration, card, estimate, make_plan
from ada_tui.planner.machine import Machine
from ada_tui.protocol import Job, Memory, ModelLoaded, Outcome, Step

PARAMS: dict[str, Any] = {"group": 16, "prompts_per_step": 2, "max_completion": 0, "beta": 0.04}


def run(folder: Path, *, more: int = 0, cuda: bool = True, kind: str = "grpo", **params: Any) -> JobDir:
    """A job directory whose measured peak is `more` bytes above the estimate."""
    job = jobs.create(folder, Job(kind=kind, model={"base": "qwen2.5-3b", "bits": 16}, params={**PARAMS, **params}))
    log = Log(job.path / "events.jsonl")
    log.append(ModelLoaded(backend="trl", rank=64))
    log.append(Outcome(name="effective_args", data={"cap": 256}))
    peak = estimate(calibration.request_of(job.job(), cap=256, rank=64)).peak.torch + more if kind == "grpo" else 1
    for share in (0.5, 1.0, 0.9):
        size = int(peak * share)
        log.append(Memory(peak=size, reserved=size + GIB // 4, device_used=size + GIB) if cuda else Memory(rss=size))
    for step, seconds in enumerate((9.0, 4.0, 5.0), 1):
        log.append(Step(step=step, seconds=seconds))
    log.close()
    return job


def test_a_run_is_compared_with_what_was_estimated(tmp_path: Path) -> None:
    found = calibration.compare(run(tmp_path, more=GIB // 2))
    assert found.request.group == 16
    assert found.request.prompts == 2
    assert found.request.at_once == 8  # as the worker divides a step
    assert found.request.completion == 256
    assert found.request.rank == 64
    assert found.measured == found.predicted + GIB // 2
    assert found.error == pytest.approx(-GIB / 2 / found.measured)
    assert found.seconds == (4.0, 5.0)


def test_calibration_makes_the_runs_right(tmp_path: Path) -> None:
    compared = [calibration.compare(run(tmp_path, more=more)) for more in (GIB // 4, GIB // 2, 3 * GIB // 4)]
    fitted = calibration.fit(compared)
    assert fitted.workspace == GIB // 2
    assert fitted.context == GIB - GIB // 4
    assert fitted.slack == GIB // 4
    here = Machine(name="mine", total=24 * GIB, reserve=0, here=True)
    plain = make_plan(compared[1].request, card(24, 0))
    mine = make_plan(compared[1].request, here, fitted)
    assert mine.estimate.peak.torch == compared[1].measured
    assert mine.estimate.peak.total == (compared[1].device or 0)
    # A calibration of this machine says nothing about another card.
    assert make_plan(compared[1].request, card(24, 0), fitted).estimate.peak.total == plain.estimate.peak.total


def test_it_is_remembered(tmp_path: Path) -> None:
    fitted = calibration.fit([calibration.compare(run(tmp_path, more=GIB))])
    path = tmp_path / "cache" / "plan.json"
    assert calibration.load(path) is None
    calibration.save(fitted, path)
    assert calibration.load(path) == fitted


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"workspace": "x", "context": 1, "slack": 1, "runs": []}'])
def test_a_broken_calibration_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(BadInput, match="not a calibration; delete it"):
        calibration.load(path)


def test_a_run_without_cuda_measures_nothing(tmp_path: Path) -> None:
    found = calibration.compare(run(tmp_path, cuda=False))
    assert found.measured is None
    assert found.error is None
    with pytest.raises(BadInput, match="grpo-1: no peak was measured"):
        calibration.fit([found])


def test_other_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a sft job; the planner compares grpo jobs"):
        calibration.compare(run(tmp_path, kind="sft"))


@pytest.mark.parametrize("broken", [{"group": "many"}, {"beta": None}, {"prompts_per_step": 0}])
def test_a_foreign_job_with_impossible_numbers(broken: dict[str, Any], tmp_path: Path) -> None:
    job = jobs.create(tmp_path, Job(kind="grpo", model={"base": "qwen2.5-3b"}, params={**PARAMS, **broken}))
    with pytest.raises(BadInput):
        calibration.compare(job)
