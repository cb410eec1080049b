"""The worker's small parts: complete folders, memory readings, failures in one line, the job's context."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest

from ada_tui import jobs
from ada_tui.errors import BadInput
from ada_tui.protocol import Control, ControlApplied, Job, Memory, Phase
from ada_tui.worker import gpu
from ada_tui.worker.context import JobContext, Stopped
from ada_tui.worker.failures import explain
from ada_tui.worker.folders import incomplete, write_folder


def fill(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"12345")


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "adapters" / "step-000001"
    write_folder(target, fill, {"step": 1})
    assert incomplete(target, hashes=True) is None
    (target / "a.bin").write_bytes(b"12346")
    assert incomplete(target) is None  # the size is as it was
    assert "was changed" in (incomplete(target, hashes=True) or "")
    (target / "a.bin").write_bytes(b"1")
    assert "has 1 bytes instead of 5" in (incomplete(target) or "")
    (target / "a.bin").unlink()
    assert "is missing" in (incomplete(target) or "")
    (target / "COMPLETE").write_text("[")
    assert "cannot be read" in (incomplete(target) or "")

    write_folder(target, fill)  # repaired
    assert incomplete(target, hashes=True) is None
    assert [path.name for path in target.parent.iterdir()] == ["step-000001"]


def test_a_failing_writer_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "x" / "target", fail)
    assert list((tmp_path / "x").iterdir()) == []


def test_a_marker_never_points_outside_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "t"
    write_folder(target, fill)
    (tmp_path / "secret").write_text("x")
    marker = (target / "COMPLETE").read_text().replace("a.bin", "../secret")
    (target / "COMPLETE").write_text(marker)
    assert "is missing" in (incomplete(target) or "")


@pytest.mark.parametrize(
    ("error", "start", "known"),
    [
        (BadInput("rows.jsonl:3: no prompt; add one"), "rows.jsonl:3: no prompt", True),
        (OSError(errno.ENOSPC, "No space left on device", "x"), "the disk is full", True),
        (
            RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
            "the disk is full",
            True,
        ),
        (MemoryError(), "out of memory: halve grpo.group", True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"), "out of memory", True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory.\nTried"), "out of memory", True),
        (PermissionError(13, "Permission denied", "/x"), "no permission", True),
        (KeyError("steps"), "KeyError: 'steps'", False),
        (ValueError("two\nlines"), "ValueError: two lines", False),
    ],
)
def test_failures_are_one_line(error: Exception, start: str, known: bool) -> None:
    line, is_known = explain(error)
    assert line.startswith(start)
    assert "\n" not in line
    assert is_known is known


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("1234, 24564, 57\n", (1234 << 20, 24564 << 20, 57.0)),
        ("[N/A], 24564, [Not Supported]\n", (None, 24564 << 20, None)),
        ("17592186044415, 24564, 3\n", (None, 24564 << 20, 3.0)),
        ("", None),
        ("no devices were found\n", None),
    ],
)
def test_nvidia_smi_answers(text: str, reading: object) -> None:
    assert gpu.parse_smi(text) == reading


def test_implausible_memory_is_not_shown() -> None:
    assert gpu.plausible(1 << 64) is None
    assert gpu.plausible(0) is None
    assert gpu.plausible(24 << 30) == 24 << 30


def test_a_reading_here_has_process_and_host() -> None:
    reading = gpu.read_memory(gpu.DeviceReader())
    assert isinstance(reading, Memory)
    assert reading.rss is not None
    assert reading.rss > 1 << 20
    assert reading.host_available


def test_the_heartbeat_beats_until_stopped() -> None:
    beats: list[Memory] = []
    heart = gpu.Heartbeat(beats.append, every=0.01)
    heart.start()
    deadline = time.monotonic() + 20
    while len(beats) < 3 and time.monotonic() < deadline:
        heart.join(0.01)
    heart.stop()
    assert len(beats) >= 3
    assert not heart.is_alive()


@pytest.fixture
def context(tmp_path: Path):
    job = jobs.create(tmp_path / "checkpoints", Job(kind="sample", workspace=str(tmp_path)))
    with JobContext(job) as made:
        yield made


def test_a_stop_is_noticed_at_the_next_check(context: JobContext) -> None:
    context.check()
    context.jobdir.write_control(Control(stop=True))
    with pytest.raises(Stopped):
        context.check()


def test_an_unreadable_control_is_answered_once_and_the_last_good_one_holds(context: JobContext) -> None:
    context.jobdir.write_control(Control(save=2))
    assert context.control().save == 2
    jobs.write_atomic(context.jobdir.path / "control.json", b'{"save": "many"}')
    assert context.control().save == context.control().save == 2
    answers = [event for event in context.jobdir.events() if isinstance(event, ControlApplied)]
    assert len(answers) == 1
    assert "Control.save cannot be 'many'" in (answers[0].error or "")


def test_a_pause_lasts_until_it_is_lifted(context: JobContext) -> None:
    assert context.wait_while_paused() == 0
    control = context.jobdir.write_control(Control(paused=True))
    looks: list[int] = []

    def idle() -> None:
        looks.append(1)
        if len(looks) == 3:
            context.jobdir.write_control(Control(version=control.version))

    assert context.wait_while_paused(idle) > 0
    assert len(looks) == 3
    phases = [event.name for event in context.jobdir.events() if isinstance(event, Phase)]
    assert phases == ["paused"]


def test_a_stop_ends_a_pause(context: JobContext) -> None:
    context.jobdir.write_control(Control(paused=True))
    context.wait_while_paused(context.signalled.set)
    with pytest.raises(Stopped):
        context.check()


def test_paths_of_the_job_are_relative_to_the_workspace(context: JobContext, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")
    assert context.path_of({"train": "rows.jsonl"}, "train") == tmp_path / "rows.jsonl"
    with pytest.raises(BadInput, match="'train' is missing"):
        context.path_of({}, "train")
    with pytest.raises(BadInput, match="not found"):
        context.path_of({"train": "gone.jsonl"}, "train")
