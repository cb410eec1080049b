"""Progress of a job on stderr: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ada_tui import launch
from ada_tui.follow import follow
from ada_tui.jobs import JobDir
from ada_tui.protocol import Alarm, ControlApplied, Event, JobStarted, ModelLoaded, Phase, Saved, Step
from ada_tui.text import visible

QUIET_SECONDS = 10.0
"""Without a terminal: at most one progress line in this many seconds per phase."""


class Display(Protocol):
    """Where progress goes."""

    def update(self, label: str, detail: str, fraction: float | None) -> None: ...

    def note(self, line: str) -> None: ...


class _Bar:
    """rich's progress bar."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description:<10}", markup=False),
            BarColumn(30),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=1.0, detail="")

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, label: str, detail: str, fraction: float | None) -> None:
        self._progress.update(
            self._task,
            description=label,
            detail=detail,
            completed=fraction or 0.0,
            total=None if fraction is None else 1.0,
        )

    def note(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False)


class _Lines:
    """One plain line whenever the label changes, or after a quiet while."""

    def __init__(self) -> None:
        self._label, self._said = "", 0.0

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, label: str, detail: str, fraction: float | None) -> None:
        now = time.monotonic()
        if label == self._label and now - self._said < QUIET_SECONDS:
            return
        self._label, self._said = label, now
        percent = "" if fraction is None else f" {fraction:4.0%}"
        print(f"{label:<10}{percent}  {detail}", file=sys.stderr, flush=True)

    def note(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def display() -> Iterator[Display]:
    """The display that fits stderr."""
    with _Bar() if sys.stderr.isatty() else _Lines() as shown:
        yield shown


def watch(job: JobDir, shown: Display, label: str | None = None) -> list[Event]:
    """Follow `job` to its end, showing progress; returns its events.

    Ctrl-C asks the worker to stop cleanly, waits for it, and goes on as an interrupt.

    Raises:
        JobFailed: as `follow`.
    """
    try:
        return list(_shown(follow(job), shown, label or job.id.rpartition("/")[2]))
    except KeyboardInterrupt:
        shown.note(f"{job.id}: stopping, the state so far is kept ...")
        launch.stop(job)
        raise


def _shown(events: Iterable[Event], shown: Display, label: str) -> Iterator[Event]:
    total = 0
    for event in events:
        match event:
            case JobStarted(steps=steps):
                total = steps
            case Phase(name=name, detail=detail, fraction=fraction):
                shown.update(label, visible(f"{name} {detail}".strip()), fraction)
            case Step(step=step):
                figures = [f"step {step}"]
                figures += [f"reward {event.reward:.3f}"] if event.reward is not None else []
                figures += [f"loss {event.loss:.3f}"] if event.loss is not None else []
                figures += [f"{event.seconds:.1f} s"] if event.seconds is not None else []
                shown.update(label, "  ".join(figures), step / total if total else None)
            case ModelLoaded():
                shown.note(f"{label}: {event.backend} on {event.device} ({visible(event.reason)})")
            case Alarm(kind=kind, detail=detail, action=action):
                shown.note(visible(f"{label}: {kind}: {detail}. {action}"))
            case ControlApplied(version=version, step=step, error=error):
                shown.note(
                    f"{label}: control {version} " + (f"refused: {error}" if error else f"applied at step {step}")
                )
            case Saved(path=path):
                shown.note(f"{label}: saved {visible(path)}")
        yield event
