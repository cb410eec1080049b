"""Job directories: atomic creation, one line per record, torn lines, liveness, the log tail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ada_tui import jobs, protocol
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, Log, Tail, WorkerLock
from ada_tui.protocol import Control, Group, Job, Phase, Step


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    return jobs.create(tmp_path / "checkpoints", Job(kind="grpo"))


def test_ids_count_up_per_kind(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    made = [jobs.create(checkpoints, Job(kind=kind)).id for kind in ("sft", "grpo", "grpo")]
    assert made == ["sft-1", "grpo-1", "grpo-2"]
    inner = jobs.create(checkpoints / "grpo-2" / "evals", Job(kind="eval"))
    assert inner.id == "grpo-2/evals/eval-1"
    assert jobs.find(checkpoints, inner.id).job().id == inner.id
    assert {found.id for found in jobs.all_jobs(checkpoints)} == {*made, inner.id}


def test_a_job_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, "write_atomic", full)
    with pytest.raises(BadInput, match="No space left"):
        jobs.create(tmp_path / "checkpoints", Job(kind="sft"))
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_an_unknown_run_lists_the_known_ones(job: JobDir) -> None:
    with pytest.raises(BadInput, match="known: grpo-1"):
        jobs.find(job.path.parent, "grpo-9")


def test_the_log_closes_a_torn_line_of_its_predecessor(job: JobDir) -> None:
    path = job.path / "events.jsonl"
    path.write_bytes(protocol.encode(Step(step=1, time=1.0)) + b'{"type": "step", "st')
    log = Log(path)
    log.append(Step(step=2))
    assert [event.step for event in job.events() if isinstance(event, Step)] == [1, 2]


def test_the_tail_waits_for_the_end_of_a_line(job: JobDir) -> None:
    path, line = job.path / "events.jsonl", protocol.encode(Phase(name="load", time=1.0))
    tail = Tail(path)
    assert tail.lines() == []
    path.write_bytes(line + line[:10])
    assert [text for _, text in tail.lines()] == [line]
    assert tail.lines() == []
    with path.open("ab") as file:
        file.write(line[10:])
    assert tail.lines() == [(len(line), line)]


def test_the_tail_starts_over_when_the_file_became_shorter(job: JobDir) -> None:
    path = job.path / "events.jsonl"
    path.write_bytes(b"{}\n{}\n{}\n")
    tail = Tail(path)
    assert len(tail.lines()) == 3
    path.write_bytes(b"{}\n")
    assert tail.lines() == [(0, b"{}\n")]
    assert tail.restarted


@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")), max_size=20), st.integers(1, 7))
def test_the_tail_finds_every_line_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], step: int
) -> None:
    path = tmp_path_factory.mktemp("tail") / "x"
    data = b"".join(line + b"\n" for line in lines)
    tail, found = Tail(path), []
    for end in range(0, len(data) + step, step):
        path.write_bytes(data[:end])
        found += tail.lines()
    assert [text for _, text in found] == [line + b"\n" for line in lines]
    assert all(data[offset:].startswith(text) for offset, text in found)


def test_a_line_longer_than_the_chunk_comes_whole(job: JobDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tail, "CHUNK", 16)
    path = job.path / "groups.jsonl"
    log = Log(path)
    log.append(Group(id="g", prompt="x" * 500))
    log.append(Group(id="h"))
    assert [group.id for group in job.groups()] == ["g", "h"]


def test_control_counts_its_versions(job: JobDir) -> None:
    assert job.control() == Control()
    assert job.write_control(Control(paused=True)).version == 1
    assert job.write_control(Control(version=1)).version == 2
    assert job.control() == Control(version=2)


def test_a_broken_control_record_is_replaced_not_fatal(job: JobDir) -> None:
    (job.path / "control.json").write_bytes(b"{broken")
    with pytest.raises(protocol.NotARecord):
        job.control()
    assert job.write_control(Control(stop=True)).stop


def test_only_one_worker_per_job(job: JobDir) -> None:
    with WorkerLock(job):
        owner = job.owner()
        assert owner is not None
        assert owner.pid == os.getpid()
        take = "WorkerLock(JobDir(Path(sys.argv[1]))).__enter__()"
        code = f"import sys; from pathlib import Path; from ada_tui.jobs import JobDir, WorkerLock; {take}"
        command = [sys.executable, "-c", code, str(job.path)]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another worker is on this job" in second.stderr


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"pid": 1, "started": 5}', b'{"pid": -4, "started": 0}', b'{"pid": "x"}']
)
def test_a_stale_or_broken_lock_is_nobody(job: JobDir, content: bytes) -> None:
    (job.path / "worker.lock").write_bytes(content)
    assert job.owner() is None


def test_the_log_tail_shows_no_escape_codes(job: JobDir) -> None:
    (job.path / "worker.log").write_bytes(b"one\n\x1b[31mred\x1b[0m \x1b]0;title\x07two\n10%\r20%\r100%\n\n\xff\x00\n")
    assert job.tail_of_log() == ["one", "red two", "100%", "\ufffd"]


def test_only_complete_adapters_count(job: JobDir) -> None:
    for step, complete in ((20, True), (40, True), (60, False)):
        folder = job.path / "adapters" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        if complete:
            (folder / "COMPLETE").write_text("{}")
    assert [step for step, _ in job.adapters()] == [20, 40]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "control.json"
    jobs.write_atomic(path, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        jobs.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
