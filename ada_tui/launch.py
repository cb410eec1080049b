"""Start a worker, tell how it is, stop it. The worker is a process of its own and survives whoever started it.

Not here: what a worker does (`ada_tui.worker`, never imported from here), what its events mean (`store.py`). No torch.
Anybody may import it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from ada_tui import protocol
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, Owner
from ada_tui.protocol import Event, JobEnded, JobStarted, Memory, NotARecord, Phase

START_TIMEOUT = 30.0
"""Seconds within which a worker must have taken its lock (a cold disk imports slowly)."""

POLL = 0.05
REAP = 1.0
"""Seconds to wait for the exit code of a worker that is already dead."""

RUNGS = ("stop", "interrupt", "terminate", "kill")
"""The stop ladder: ask in control.json, SIGINT, SIGTERM, SIGKILL of the worker's own process group."""

_children: dict[Path, subprocess.Popen[bytes]] = {}
"""Workers that this process started: reaped, and their exit codes known."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a job is. `name` is one of `protocol.STATUSES`; `reason` is one line, "" when there is nothing to say."""

    name: str
    reason: str = ""


def start(job: JobDir, python: str = "") -> Owner:
    """Start the worker of `job`, detached, and wait until it has taken its lock.

    Args:
        python: interpreter of the worker (`worker.python` of ada.toml); "" = the one that runs this.

    Raises:
        BadInput: the job runs or ran already, the interpreter is no good, or the worker gave up at once.
    """
    if (owner := job.owner()) is not None:
        raise BadInput(f"{job.path}: already running (pid {owner.pid}); `ada-tui attach {job.id}` follows it")
    if any(isinstance(event, JobStarted) for event in job.events()):
        raise BadInput(f"{job.path}: this job has run already; start a new one with `ada-tui train`")
    interpreter = str(Path(python).expanduser()) if python else sys.executable
    command = [interpreter, "-P", "-m", "ada_tui.worker", str(job.path)]  # -P: the folder we stand in runs no code
    try:
        with (job.path / "worker.log").open("ab") as log:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                cwd=job.path, env=_environment(),
            )  # fmt: skip
    except OSError as error:
        raise BadInput(f"{interpreter}: cannot start the worker ({error.strerror}); set worker.python") from None
    _children[job.path] = child
    return _wait_for_lock(job, child, interpreter)


def status(job: JobDir) -> Status:
    """How `job` is right now: from its lock, the end of its events and, for a dead one, whatever hints there are."""
    child = _children.get(job.path)
    if child is not None:
        child.poll()  # reap it: a zombie is not alive
    alive = job.owner() is not None  # before the events: a worker that ends in between has written its last word
    last = _last(job)
    if isinstance(last, JobEnded) and last.status in protocol.STATUSES:
        return Status(last.status, last.error or "")
    if not alive:
        return Status("dead", _why_dead(job, child))
    if isinstance(last, Phase):
        return Status(
            "paused" if last.name == "paused" else "running", " ".join(filter(None, (last.name, last.detail)))
        )
    return Status("running", "starting")


def stop(
    job: JobDir,
    patience: tuple[float, float, float] = (60.0, 20.0, 20.0),
    told: Callable[[str], None] = lambda rung: None,
) -> str:
    """Climb the stop ladder until the worker is gone; blocks. Returns the last rung taken ("" = it was gone already).

    Args:
        patience: seconds to wait after the first, second and third rung.
        told: called with the name of each rung as it is taken.
    """
    taken = ""
    for rung, seconds in zip(RUNGS, (*patience, START_TIMEOUT), strict=True):
        if job.owner() is None:
            break
        taken = rung
        told(rung)
        take_rung(job, rung)
        if wait_until_gone(job, seconds):
            break
    return taken


def take_rung(job: JobDir, rung: str) -> None:
    """One step of the stop ladder, at once. A worker that is gone already is fine.

    Raises:
        ValueError: no such rung.
    """
    if rung not in RUNGS:
        raise ValueError(f"unknown rung {rung!r}; known are {', '.join(RUNGS)}")
    owner = job.owner()
    if owner is None:
        return
    if rung == "stop":
        job.write_control(dataclasses.replace(job.control(), stop=True))
        return
    with contextlib.suppress(ProcessLookupError):
        if rung == "kill":
            _kill_group(owner)
        else:
            os.kill(owner.pid, signal.SIGINT if rung == "interrupt" else signal.SIGTERM)


def wait_until_gone(job: JobDir, seconds: float) -> bool:
    """Wait for the worker's end; False when it still lives after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        if (child := _children.get(job.path)) is not None:
            child.poll()
        if job.owner() is None:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)


def _kill_group(owner: Owner) -> None:
    """Only a group of the worker's own is killed: one started by hand shares the shell's."""
    if os.getpgid(owner.pid) == owner.pid:
        os.killpg(owner.pid, signal.SIGKILL)
    else:
        os.kill(owner.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Ours; from a checkout, the worker's interpreter finds `ada_tui` and `rewards` there."""
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    root = Path(__file__).resolve().parent.parent
    if root.name not in ("site-packages", "dist-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    return environment


def _wait_for_lock(job: JobDir, child: subprocess.Popen[bytes], interpreter: str) -> Owner:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        owner = job.owner()
        if owner is not None and owner.pid == child.pid:
            return owner
        if (code := child.poll()) is not None:
            if isinstance(_last(job), JobEnded):
                return Owner(pid=child.pid, started=0.0)  # a job so short that it is over
            said = " ".join(job.tail_of_log(1)) or f"exit code {code}"
            if "No module named" in said:
                said = f"{said}; install ada-tui there: {interpreter} -m pip install 'ada-tui[train]'"
            raise BadInput(said.removeprefix("ada-tui worker: "))
        time.sleep(POLL)
    raise BadInput(f"{job.path}: the worker did not take its lock within {START_TIMEOUT:.0f} s; see worker.log there")


def _last(job: JobDir) -> Event | None:
    """The last event that tells how the job is: JobEnded, else the newest Phase or JobStarted; None = nothing yet."""
    for event in _backwards(job.path / "events.jsonl"):
        if isinstance(event, JobEnded | Phase | JobStarted):
            return event
    return None


def _backwards(path: Path, block: int = 1 << 16) -> Iterator[Event]:
    """Events from the newest to the oldest, read in blocks from the end; unreadable lines are passed over."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        position, rest = file.seek(0, os.SEEK_END), b""
        while position > 0:
            size = min(block, position)
            position -= size
            file.seek(position)
            head, *lines = (file.read(size) + rest).split(b"\n")
            rest = head
            for line in reversed([*([head] if position == 0 else []), *lines]):
                with contextlib.suppress(NotARecord):
                    event = protocol.decode_event(line)
                    if event is not None:
                        yield event


def _exit_code(child: subprocess.Popen[bytes] | None) -> int | None:
    """How a worker that we started ended; None when somebody else started it.

    A killed process is a zombie before its last threads are gone, and cannot be reaped until then: hence the wait.
    """
    if child is None:
        return None
    try:
        return child.wait(REAP)
    except subprocess.TimeoutExpired:
        return None


def _why_dead(job: JobDir, child: subprocess.Popen[bytes] | None) -> str:
    """One line from the exit code (when we started it), the last memory reading, the disk and the log's last line."""
    hints = []
    code = _exit_code(child)
    if code is not None and code < 0:
        hints.append(f"killed by {signal.Signals(-code).name}")
    elif not (job.path / "events.jsonl").exists():
        hints.append("the worker never started")
    else:
        hints.append("the worker vanished without a word: killed, or the machine went down")
    reading = next((event for event in _backwards(job.path / "events.jsonl") if isinstance(event, Memory)), None)
    if reading is not None and reading.host_available is not None:
        share = reading.host_available / psutil.virtual_memory().total
        if share < 0.05:
            hints.append(f"memory was nearly used up ({reading.host_available >> 20} MB left)")
    if job.path.exists() and shutil.disk_usage(job.path).free < 1 << 20:
        hints.append("the disk is full")
    if tail := job.tail_of_log(1):
        hints.append(f"last output: {tail[0][:200]}")
    return "; ".join(hints)
