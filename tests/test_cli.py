"""The command line as a person meets it: exit codes, one line per error, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ada_tui import jobs
from ada_tui.cli import COMMANDS
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job


def ada(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ada_tui", *arguments],
        cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    done = ada(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage:")


def test_init_then_runs(tmp_path: Path) -> None:
    done = ada("init", "here", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"workspace": str(tmp_path / "here")}
    assert ada("runs", "--json", cwd=tmp_path / "here").stdout.strip() == "[]"
    assert "No runs" in ada("runs", cwd=tmp_path / "here").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "needs a terminal"),
        (("fly",), 2, "No such command 'fly'"),
        (("attach", "grpo-7"), 2, "no run 'grpo-7'"),
        (("control", "grpo-7", "--stop"), 2, "no run 'grpo-7'"),
        (("eval", "grpo-7"), 2, "no run 'grpo-7'"),
        (("export", "grpo-7"), 2, "no run 'grpo-7'"),
        (("sample", "--prompt", "Hi", "--policy", "nobody"), 2, "no run 'nobody'"),
        (("sample", "--prompt", "Hi", "-n", "1"), 2, "range"),
        (("train", "--group", "1"), 2, "range"),
        (("train", "--kind", "sft", "--group", "8"), 2, "--group is for --kind grpo"),
        (("train", "--kind", "sft", "--from", "base"), 2, "--from is for --kind grpo"),
        (("train", "--kind", "dpo", "--group", "8"), 2, "--group is for --kind grpo"),
        (("train", "--kind", "dpo", "--from", "nobody"), 2, "no run 'nobody'"),
        (("score", "missing.jsonl"), 2, "missing.jsonl"),
        (("data", "check", "missing.jsonl"), 2, "missing.jsonl"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], code: int, says: str, tmp_path: Path) -> None:
    done = ada(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    assert "Traceback" in ada("--debug", "attach", "grpo-7", cwd=tmp_path).stderr


def test_a_bad_setting_names_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "ada.toml").write_text("[grpo]\nstepps = 3\n")
    done = ada("train", cwd=tmp_path)
    assert done.returncode == 2
    assert "ada.toml: grpo.stepps: unknown setting" in done.stderr


@pytest.fixture
def ended(tmp_path: Path) -> JobDir:
    job = jobs.create(tmp_path / "checkpoints", Job(kind="grpo"))
    golden = Path(__file__).parent / "golden" / "events-1.jsonl"
    (job.path / "events.jsonl").write_bytes(golden.read_bytes())
    return job


def test_runs_lists_a_failed_run_with_its_reason(ended: JobDir, tmp_path: Path) -> None:
    (entry,) = json.loads(ada("runs", "--json", cwd=tmp_path).stdout)
    assert (entry["run"], entry["kind"], entry["status"], entry["step"]) == ("grpo-1", "grpo", "failed", 1)
    assert "out of memory" in entry["reason"]


def test_attach_to_a_failed_run_exits_3(ended: JobDir, tmp_path: Path) -> None:
    done = ada("attach", "grpo-1", cwd=tmp_path)
    assert done.returncode == 3
    assert "grpo-1 failed: out of memory" in done.stderr


def test_a_run_that_ended_cannot_be_steered(ended: JobDir, tmp_path: Path) -> None:
    done = ada("control", "grpo-1", "--weight", "length=2", cwd=tmp_path)
    assert done.returncode == 2
    assert "not running" in done.stderr


def test_a_foreign_job_file_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints" / "grpo-1"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text("{broken")
    assert "job.json" in json.loads(ada("runs", "--json", cwd=tmp_path).stdout)[0]["reason"]
    done = ada("eval", "grpo-1", cwd=tmp_path)
    assert done.returncode == 2
    assert "job.json: not JSON" in done.stderr
