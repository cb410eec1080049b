"""What a job script gets: the job record, a way to tell what happens, and what the person wants now.

    def run(context: JobContext) -> None: ...

is the whole interface of a job script (`sft.py`, `grpo.py`, `sample.py`, `evaluate.py`, `export.py`). A script raises
`BadInput` for what the person can mend, lets `Stopped` pass through, and returns when it is done; `__main__` writes the
first and the last event. Nothing here imports torch. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, Log
from ada_tui.persona import Persona
from ada_tui.protocol import Control, ControlApplied, Event, Group, JobStarted, NotARecord, Outcome, Phase, Saved

PAUSE_POLL = 0.2
"""Seconds between two looks at control.json while paused."""

REPEAT_PAUSED = 30.0
"""Seconds after which "paused" is said again, so that a reader of the log's tail always finds it."""

PACKAGES = ("ada-tui", "torch", "transformers", "trl", "peft", "unsloth", "bitsandbytes")
"""Packages whose versions decide how a run behaves."""


class Stopped(Exception):
    """The person (control.stop) or the system (a signal) asked the job to stop; it did so at a safe place."""


class StoppedNow(Stopped):
    """A second signal: stop where we are. The state may be half-way through a step, so it is not worth saving."""


class JobContext:
    """One running job. `emit` and everything built on it may be called from any thread."""

    def __init__(self, jobdir: JobDir) -> None:
        """Raises BadInput (no readable job here) or OSError (its files cannot be written)."""
        self.jobdir = jobdir
        self.job = jobdir.job()
        self.persona = Persona.from_dict(self.job.persona)
        self.signalled = threading.Event()
        """Set by SIGINT and SIGTERM."""
        self._events = Log(jobdir.path / "events.jsonl")
        self._groups = Log(jobdir.path / "groups.jsonl")
        self._writing = threading.Lock()
        self._versions = _versions()
        self._control = Control()
        self._control_stamp: tuple[int, int] | None = None

    def __enter__(self) -> JobContext:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with self._writing:
            self._events.close()
            self._groups.close()

    # -- telling

    def emit(self, event: Event) -> None:
        """Append one event. Raises OSError (disk full)."""
        with self._writing:
            self._events.append(event)

    def started(self, steps: int = 0) -> None:
        """Say that the job runs; a script calls it again once it knows its number of steps (`JobStarted.steps`)."""
        self.emit(
            JobStarted(
                kind=self.job.kind, pid=os.getpid(), host=socket.gethostname(), steps=steps, versions=self._versions
            )
        )

    def phase(self, name: str, detail: str = "", fraction: float | None = None) -> None:
        """Say what is going on; `fraction` (0..1) of the phase is done, None = not known."""
        self.emit(Phase(name=name, detail=detail, fraction=fraction))

    def outcome(self, name: str, data: dict[str, Any]) -> None:
        """Record a named result."""
        self.emit(Outcome(name=name, data=data))

    def saved(self, path: Path, step: int = 0) -> None:
        """Say that a product stands complete at `path` (inside the job directory)."""
        self.emit(Saved(path=str(path.relative_to(self.jobdir.path)), step=step))

    def group(self, group: Group) -> None:
        """Append one group of completions. Raises OSError (disk full)."""
        with self._writing:
            self._groups.append(group)

    # -- listening

    def control(self) -> Control:
        """What is wanted now. An unreadable record is answered once with an error; the last good one stays in force."""
        path = self.jobdir.path / "control.json"
        try:
            status = path.stat()
        except FileNotFoundError:
            return self._control
        stamp = (status.st_ino, status.st_mtime_ns)
        if stamp != self._control_stamp:
            self._control_stamp = stamp
            try:
                self._control = self.jobdir.control()
            except NotARecord as error:
                self.emit(ControlApplied(version=self._control.version, error=f"control.json: {error}"))
        return self._control

    @property
    def stopping(self) -> bool:
        """Whether the job was asked to stop."""
        return self.signalled.is_set() or self.control().stop

    def check(self) -> None:
        """A safe place to stop: raises Stopped when asked to. Cheap (one stat)."""
        if self.stopping:
            raise Stopped

    def wait_while_paused(self, idle: Callable[[], None] = lambda: None) -> float:
        """Hold here while the person wants a pause; returns the seconds spent. `idle` runs between two looks.

        A stop ends the pause; the caller's next `check` raises.
        """
        began = said = time.monotonic()
        if not self.control().paused or self.stopping:
            return 0.0
        self.phase("paused", "resume or stop from the app or with `ada-tui control`")
        while self.control().paused and not self.stopping:
            idle()
            self.signalled.wait(PAUSE_POLL)
            if time.monotonic() - said > REPEAT_PAUSED:
                said = time.monotonic()
                self.phase("paused", f"for {said - began:.0f} s")
        return time.monotonic() - began

    # -- finding

    def resolve(self, path: str) -> Path:
        """A path of the job record: absolute, or relative to the workspace. It need not exist."""
        return Path(self.job.workspace or ".") / Path(path).expanduser()

    def path_of(self, section: dict[str, Any], key: str) -> Path:
        """The path stored under `key` of `section`. Raises BadInput when it is missing or nothing stands there."""
        value = section.get(key)
        if not isinstance(value, str) or not value:
            raise BadInput(f"{self.jobdir.path / 'job.json'}: {key!r} is missing; make the job with `ada-tui`")
        path = self.resolve(value)
        if not path.exists():
            raise BadInput(f"{path}: not found ({key} of job {self.job.id})")
        return path


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
