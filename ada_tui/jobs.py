"""A job directory: create it, append to it, replace control, read it, tell whether its worker lives.

The directory is the API between app and worker (layout: docs/architecture.md). Not here: starting a process
(`launch.py`), folding events (`store.py`). Anybody may import it. One writer per file, readers poll.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import orjson
import psutil

from ada_tui import protocol
from ada_tui.errors import BadInput
from ada_tui.protocol import Control, Event, Group, Job, NotARecord

STALE_AFTER = 5.0
"""Seconds without a heartbeat after which a running worker's figures are called stale."""


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data` as one step: temp file in the same folder, fsync, rename.

    Raises:
        OSError: as from the system; nothing is left behind under the final name.
    """
    fd, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temp).replace(path)
    except BaseException:
        Path(temp).unlink(missing_ok=True)
        raise


class Log:
    """Append-only writer of one record per line: one `os.write` of the whole line on an O_APPEND descriptor."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._end_torn_line(path)

    def append(self, record: Event | Group) -> int:
        """Write `record` (time filled in); returns the offset at which its line starts. Raises OSError (disk full)."""
        if not record.time:
            record = dataclasses.replace(record, time=time.time())
        line = protocol.encode(record)
        start = os.fstat(self._fd).st_size
        written = os.write(self._fd, line)
        if written != len(line):
            os.ftruncate(self._fd, start)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return start

    def close(self) -> None:
        os.close(self._fd)

    def _end_torn_line(self, path: Path) -> None:
        """A predecessor killed in mid-write left a line without its end: close it, so that ours starts fresh."""
        size = os.fstat(self._fd).st_size
        if size:
            with path.open("rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(self._fd, b"\n")


class Tail:
    """Reads whole lines that were appended to a file since the last call. A file that became shorter is read anew."""

    CHUNK = 4 << 20

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.restarted = False
        """True after a `lines()` call that found the file shorter than before: forget what was read."""

    def lines(self) -> list[tuple[int, bytes]]:
        """(offset, line) of every complete new line, at most `CHUNK` bytes per call; [] when there is none."""
        self.restarted = False
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self.offset:
                    self.offset, self.restarted = 0, True
                if size == self.offset:
                    return []
                file.seek(self.offset)
                data = file.read(self.CHUNK)
                while b"\n" not in data and (more := file.read(self.CHUNK)):
                    data += more
        except FileNotFoundError:
            return []
        end = data.rfind(b"\n") + 1
        found, position = [], 0
        for line in data[:end].splitlines(keepends=True) if b"\r" not in data[:end] else _split(data[:end]):
            found.append((self.offset + position, line))
            position += len(line)
        self.offset += end
        return found


def _split(data: bytes) -> list[bytes]:
    """Split at newlines only: bytes.splitlines would also split at a bare carriage return."""
    return [part + b"\n" for part in data.split(b"\n")[:-1]]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds the worker lock."""

    pid: int
    started: float
    """Process start time (seconds since the epoch, as psutil gives it): a reused pid differs in it."""


class WorkerLock:
    """The lock a worker holds for its whole life, with its pid and start time inside.

    Raises (on enter):
        BadInput: another live worker holds it.
    """

    def __init__(self, job: JobDir) -> None:
        self._path = job.path / "worker.lock"
        self._fd = -1

    def __enter__(self) -> WorkerLock:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise BadInput(f"{self._path.parent}: another worker is on this job; `ada-tui attach` follows it") from None
        me = psutil.Process()
        os.ftruncate(fd, 0)
        os.pwrite(fd, orjson.dumps({"pid": me.pid, "started": me.create_time()}), 0)
        self._fd = fd
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class JobDir:
    """One job directory. Cheap to make: it holds only the path."""

    path: Path

    @property
    def id(self) -> str:
        """The run id, e.g. "grpo-3" or "grpo-3/evals/1": the path below checkpoints/."""
        parts = self.path.parts
        below = parts[len(parts) - 1 - parts[::-1].index("checkpoints") + 1 :] if "checkpoints" in parts else parts[-1:]
        return "/".join(below)

    # -- writing

    def control(self) -> Control:
        """What is wanted now; the empty record when nobody asked for anything. Raises NotARecord."""
        try:
            return protocol.decode_control((self.path / "control.json").read_bytes())
        except FileNotFoundError:
            return Control()

    def write_control(self, control: Control) -> Control:
        """Replace the control record by `control` with the next version number; returns what was written."""
        try:
            version = self.control().version
        except NotARecord:
            version = 0
        control = dataclasses.replace(control, version=max(version, control.version) + 1)
        write_atomic(self.path / "control.json", protocol.encode(control))
        return control

    # -- reading

    def job(self) -> Job:
        """What was asked.

        Raises:
            BadInput: there is no job here, or its record cannot be read.
        """
        path = self.path / "job.json"
        try:
            return protocol.decode_job(path.read_bytes())
        except OSError as error:
            raise BadInput(f"{path}: no job here ({error.strerror}); `ada-tui runs` lists the jobs") from None
        except NotARecord as error:
            raise BadInput(f"{path}: {error}") from None

    def events(self) -> Iterator[Event]:
        """Every event so far; torn, foreign and unknown lines are passed over."""
        for _, line in read_lines(self.path / "events.jsonl"):
            try:
                event = protocol.decode_event(line)
            except NotARecord:
                continue
            if event is not None:
                yield event

    def groups(self) -> Iterator[Group]:
        """Every stored group; unreadable lines are passed over."""
        for _, line in read_lines(self.path / "groups.jsonl"):
            try:
                yield protocol.decode_group(line)
            except NotARecord:
                continue

    # -- life

    def owner(self) -> Owner | None:
        """The live worker of this job, or None. A stale lock (dead pid, or a reused one) counts as None."""
        try:
            data = orjson.loads((self.path / "worker.lock").read_bytes())
            owner = Owner(pid=int(data["pid"]), started=float(data["started"]))
            process = psutil.Process(owner.pid)
            alive = abs(process.create_time() - owner.started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError, psutil.Error):
            return None
        return owner if alive else None

    def tail_of_log(self, lines: int = 20) -> list[str]:
        """The last lines of worker.log, control characters made visible; [] when there is none."""
        try:
            with (self.path / "worker.log").open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - 64_000))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        kept = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]
        return [_ANSI.sub("", line) for line in kept if line.strip()][-lines:]

    def adapters(self) -> list[tuple[int, Path]]:
        """(step, folder) of every complete adapter, oldest first."""
        found = []
        for marker in self.path.glob("adapters/step-*/COMPLETE"):
            if match := re.fullmatch(r"step-(\d+)", marker.parent.name):
                found.append((int(match[1]), marker.parent))
        return sorted(found)


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x08\x0b-\x1f\x7f]")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of every complete line of a file, in chunks; nothing when the file is missing."""
    tail = Tail(path)
    while batch := tail.lines():
        yield from batch


def create(parent: Path, job: Job) -> JobDir:
    """Make a new job directory `<parent>/<kind>-<n>` with `job` in it; the id is filled in.

    The directory appears under its final name only when job.json is complete.

    Raises:
        BadInput: the folder cannot be written (no permission, disk full).
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temp = Path(tempfile.mkdtemp(dir=parent, prefix=".new-"))
        temp.chmod(0o755)
        try:
            while True:
                target = parent / _next_name(parent, job.kind)
                job = dataclasses.replace(job, id=JobDir(target).id, created=job.created or time.time())
                write_atomic(temp / "job.json", protocol.encode(job))
                try:
                    temp.rename(target)
                    return JobDir(target)
                except OSError as error:
                    if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                        raise
        except BaseException:
            for leftover in temp.glob("*"):
                leftover.unlink()
            temp.rmdir()
            raise
    except OSError as error:
        raise BadInput(
            f"{parent}: cannot make a job directory ({error.strerror}); free space or choose another folder"
        ) from None


def _next_name(parent: Path, kind: str) -> str:
    taken = [int(m[1]) for p in parent.iterdir() if (m := re.fullmatch(rf"{kind}-(\d+)", p.name))]
    return f"{kind}-{max(taken, default=0) + 1}"


def find(checkpoints: Path, run: str) -> JobDir:
    """The job with id `run` ("grpo-3", "grpo-3/evals/eval-1"), or at the path `run`.

    Raises:
        BadInput: there is none; the message lists what there is.
    """
    for candidate in (checkpoints / run, Path(run)):
        if (candidate / "job.json").is_file():
            return JobDir(candidate.resolve())
    known = ", ".join(job.id for job in all_jobs(checkpoints)) or "none yet"
    raise BadInput(f"no run {run!r} in {checkpoints}; known: {known}")


def all_jobs(checkpoints: Path) -> list[JobDir]:
    """Every job directory of the workspace, newest first; evals and exports of a run included."""
    found = [
        *checkpoints.glob("*/job.json"),
        *checkpoints.glob("*/evals/*/job.json"),
        *checkpoints.glob("*/exports/*/job.json"),
    ]
    return [JobDir(path.parent) for path in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]
