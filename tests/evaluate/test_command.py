"""`ada-tui eval` as a person meets it, on stored jobs: nothing is generated here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ada_tui.cli import app
from ada_tui.jobs import JobDir
from tests.evaluate import stored

TRAIN = stored.rows(40, first=100, split="train")


def ada(workspace: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--workspace", str(workspace), *arguments], standalone_mode=False)


@pytest.fixture
def compared(tmp_path: Path) -> JobDir:
    sft = stored.trained(tmp_path, "sft", TRAIN)
    grpo = stored.trained(tmp_path, "grpo", TRAIN, sft, rewards=stored.CONFIG.to_dict())
    return stored.evaluation(tmp_path, {"base": ("", 0.2), "sft": (str(sft), 0.5), "grpo": (str(grpo), 0.9)})


def test_a_stored_comparison_is_read_again(tmp_path: Path, compared: JobDir) -> None:
    done = ada(tmp_path, "eval", compared.id, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["arms"]) == ["base", "sft", "grpo"]
    assert {(d["a"], d["b"]) for d in found["differences"]} == {("base", "sft"), ("sft", "grpo"), ("base", "grpo")}
    assert all(d["ci95"][0] <= d["mean"] <= d["ci95"][1] and d["n"] == 40 for d in found["differences"])
    assert {gate["state"] for gate in found["gates"].values()} <= {"pass", "fail", "undecided"}
    assert (compared.path / "report.html").stat().st_size > 5000


def test_the_terminal_says_the_answer_in_words(tmp_path: Path, compared: JobDir) -> None:
    done = ada(tmp_path, "eval", str(compared.path), "--report", str(tmp_path / "page.md"))
    assert done.exit_code == 0, done.output
    assert "grpo beats sft by" in done.stdout
    assert "[?] shuffled flat: undecided" in done.stdout
    assert "needs about" in done.stdout
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Was it worth it?")


def test_a_cheating_arm_is_exit_code_1(tmp_path: Path) -> None:
    cheat = stored.trained(tmp_path, "grpo", stored.rows(40), rewards=stored.CONFIG.to_dict())
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": (str(cheat), 0.9)})
    done = ada(tmp_path, "eval", job.id)
    assert done.return_value == 1 or done.exit_code == 1
    assert "INVALID: grpo: grpo-1 was trained on 40 of the held-out rows" in done.stdout
    assert "proves nothing" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sft-1", "--arms", "sft,magic"), "unknown arm 'magic'"),
        (("sft-1", "--arms", "sft,grpo"), "'grpo' is not to be had from sft-1"),
        (("sft-1", "--arms", "sft"), "two or more"),
        (("grpo-2", "--arms", "grpo,rft"), "did not start from an SFT adapter"),
        (("grpo-1/evals/eval-1", "--report", "page.pdf"), "ends in .md, .html or .json"),
    ],
)
def test_what_cannot_be_had_is_said(tmp_path: Path, compared: JobDir, arguments: tuple[str, ...], says: str) -> None:
    stored.trained(tmp_path, "grpo", TRAIN)
    done = ada(tmp_path, "eval", *arguments)
    assert says in str(done.exception)


def test_an_arm_trained_on_the_held_out_rows_is_refused_before_anything_runs(tmp_path: Path) -> None:
    held_out = tmp_path / "held_out.jsonl"
    stored.write_rows(held_out, stored.rows(10))
    sft = stored.trained(tmp_path, "sft", [*TRAIN, *stored.rows(1)])
    data = {"train": str(tmp_path / "rows-0.jsonl"), "held_out": str(held_out)}
    record = stored.Job(
        kind="grpo", workspace=str(tmp_path), data=data, model={"base": "embedded", "adapter": str(sft)},
        rewards=stored.CONFIG.to_dict(),
    )  # fmt: skip
    run = stored.job(tmp_path / "checkpoints", record)
    stored.adapter(run)
    done = ada(tmp_path, "eval", run.id)
    assert "trained on 1 of the held-out rows (row-0)" in str(done.exception)
    assert not list(run.path.glob("evals/*"))
