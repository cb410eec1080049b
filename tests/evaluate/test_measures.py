"""The measures on chosen replies, and that no reply can break them."""

from __future__ import annotations

import dataclasses
import doctest
from pathlib import Path

import pytest

from ada_tui.evaluate import arms_of, diversity, measures, regression
from ada_tui.evaluate.measures import FALSE_ABSTENTION, KNOWN_ANSWER
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job, Outcome
from tests.evaluate import stored

ROWS = {row.row.kind: row for row in stored.rows(5)}


def measured(tmp_path: Path, kind: str, texts: list[str]) -> measures.Arm:
    groups = [stored.group(ROWS[kind], texts, "sft")]
    made = stored.job(tmp_path / "checkpoints", Job(kind="eval"), groups=groups)
    return arms_of(made, stored.CONFIG)["sft"]


@pytest.mark.parametrize("module", [measures, diversity, regression], ids=lambda module: module.__name__)
def test_docstring_examples(module) -> None:
    assert doctest.testmod(module).failed == 0


def test_known_answer_is_containment_of_gold(tmp_path: Path) -> None:
    arm = measured(tmp_path, "factual", ["It's Paris.", "paris", "Lyon.", "Not sure."])
    assert arm.shares[KNOWN_ANSWER] == {ROWS["factual"].id: 0.5}
    assert arm.shares[FALSE_ABSTENTION] == {ROWS["factual"].id: 0.25}


def test_abstaining_is_false_only_where_there_is_an_answer(tmp_path: Path) -> None:
    arm = measured(tmp_path, "realtime", ["No idea, I can't check live weather."])
    assert arm.shares == {}


def test_diversity_sees_a_stock_phrase() -> None:
    varied = [f"Well number {n} is as good as any other {n} to me" for n in range(20)]
    stock = ["I always say exactly this same thing to you"] * 20
    good, bad = diversity.diversity(varied), diversity.diversity(stock)
    assert bad.distinct_3 < 0.1 < good.distinct_3
    assert bad.entropy < good.entropy
    assert bad.common_share == 1.0
    assert diversity.diversity(["", "hi"]).common == ""


def test_figures_of_seeds_are_averaged(tmp_path: Path) -> None:
    probes = [Outcome(name="probe:grpo", data={"kl": 1.0}), Outcome(name="probe:grpo#8", data={"kl": 2.0, "note": "x"})]
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": ("", 0.5), "grpo#8": ("", 0.9)}, events=probes)
    assert arms_of(job, stored.CONFIG, pooled=True)["grpo"].probes == {"kl": 1.5, "note": "x"}


def test_re_weighting_needs_no_new_samples(tmp_path: Path) -> None:
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": ("", 0.9)})
    plain = arms_of(job, stored.CONFIG)["sft"]
    muted = arms_of(job, dataclasses.replace(stored.CONFIG.with_weight("filler", 0)))["sft"]
    assert muted.total > plain.total
    assert muted.rewards == plain.rewards


def test_a_torn_job_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": ("", 0.9)})
    groups = job.path / "groups.jsonl"
    data = groups.read_bytes()
    groups.write_bytes(b"\xff\xfe\n" + data[: len(data) - 40])
    arms = arms_of(JobDir(job.path), stored.CONFIG)
    assert len(arms["sft"].totals) == 40
    assert len(arms["grpo"].totals) == 39
