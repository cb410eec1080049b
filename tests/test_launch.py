"""Starting, watching and stopping a worker, with real processes that need no model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ada_tui import jobs, launch
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, Log
from ada_tui.protocol import Job, JobEnded, JobStarted, Memory, Phase

HOLDER = """
import sys, signal, time
from ada_tui.jobs import JobDir, WorkerLock
from pathlib import Path
if "deaf" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
with WorkerLock(JobDir(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    return jobs.create(tmp_path / "checkpoints", Job(kind="sample", workspace=str(tmp_path)))


@pytest.fixture
def holder(job: JobDir):
    """Start a process that holds the job's lock and does nothing else."""
    started = []

    def start(*words: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(job.path), *words], stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def write(job: JobDir, *events) -> None:
    log = Log(job.path / "events.jsonl")
    for event in events:
        log.append(event)
    log.close()


def test_a_job_that_was_never_started_is_dead_and_says_so(job: JobDir) -> None:
    assert launch.status(job) == launch.Status("dead", "the worker never started")


def test_status_follows_the_events_of_a_living_worker(job: JobDir, holder) -> None:
    holder()
    write(job, JobStarted(kind="sample"))
    assert launch.status(job).name == "running"
    write(job, Phase(name="paused"))
    assert launch.status(job).name == "paused"
    write(job, *[Memory(rss=1)] * 2000)  # far more than one block of the file
    assert launch.status(job).name == "paused"
    write(job, Phase(name="grpo", detail="step 1 of 2"))
    assert launch.status(job) == launch.Status("running", "grpo step 1 of 2")


def test_the_last_word_counts_even_before_the_process_is_gone(job: JobDir, holder) -> None:
    holder()
    write(job, JobStarted(kind="sample"), JobEnded(status="failed", error="no such file"))
    assert launch.status(job) == launch.Status("failed", "no such file")


def test_a_torn_last_line_is_passed_over(job: JobDir, holder) -> None:
    holder()
    write(job, JobStarted(kind="sample"), Phase(name="paused"))
    with (job.path / "events.jsonl").open("ab") as file:
        file.write(b'{"type": "job_ended", "stat')
    assert launch.status(job).name == "paused"


def test_killed_worker_is_dead_with_hints(job: JobDir, holder) -> None:
    process = holder()
    write(job, JobStarted(kind="sample"), Memory(host_available=1 << 20))
    (job.path / "worker.log").write_text("loading\nabout to \x1b[31mallocate\n")
    process.kill()
    process.wait()
    status = launch.status(job)
    assert status.name == "dead"
    assert "vanished without a word" in status.reason
    assert "memory was nearly used up (1 MB left)" in status.reason
    assert "last output: about to allocate" in status.reason


def test_start_refuses_a_running_job(job: JobDir, holder) -> None:
    process = holder()
    with pytest.raises(BadInput, match=rf"already running \(pid {process.pid}\)"):
        launch.start(job)


def test_start_refuses_a_job_that_ran(job: JobDir) -> None:
    write(job, JobStarted(kind="sample"), JobEnded(status="done"))
    with pytest.raises(BadInput, match="has run already"):
        launch.start(job)


def test_start_says_what_is_wrong_with_the_interpreter(job: JobDir, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"set worker\.python"):
        launch.start(job, python=str(tmp_path / "no-python"))
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho \"No module named 'orjson'\" >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(BadInput, match="install ada-tui there"):
        launch.start(job, python=str(broken))


def test_a_module_in_the_workspace_is_never_imported(job: JobDir, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    for folder in (tmp_path, job.path):
        (folder / "orjson.py").write_text(f"open({str(trap)!r}, 'w')\nraise SystemExit(9)\n")
    launch.start(job)  # fails for want of prompts, later
    assert launch.wait_until_gone(job, 60)
    assert launch.status(job).name == "failed"
    assert not trap.exists()


def test_the_ladder_ends_a_deaf_worker_at_its_last_rung(job: JobDir, holder) -> None:
    process = holder("deaf")
    rungs: list[str] = []
    assert launch.stop(job, (0.1, 0.1, 0.1), told=rungs.append) == "kill"
    assert rungs == list(launch.RUNGS)
    assert job.control().stop
    assert process.wait(10) == -signal.SIGKILL


def test_the_ladder_stops_climbing_when_the_worker_goes(job: JobDir, holder) -> None:
    process = holder()
    assert launch.stop(job, (0.1, 60, 10)) == "interrupt"
    process.wait(10)
    assert launch.stop(job) == ""


def test_kill_spares_the_group_of_whoever_started_the_worker(job: JobDir) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(job.path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    assert os.getpgid(process.pid) == os.getpgid(0)
    launch.take_rung(job, "kill")  # would end this test run if it killed the group
    assert process.wait(10) == -signal.SIGKILL


def test_unknown_rung(job: JobDir) -> None:
    with pytest.raises(ValueError, match="unknown rung"):
        launch.take_rung(job, "plead")


def test_a_reused_pid_is_not_our_worker(job: JobDir) -> None:
    me = psutil.Process()
    (job.path / "worker.lock").write_text(f'{{"pid": {me.pid}, "started": {me.create_time() - 100}}}')
    write(job, JobStarted(kind="sample"))
    assert launch.status(job).name == "dead"
