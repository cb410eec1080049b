"""Follow a job until it ends: its events as they come, its death noticed. For the command line and the demo.

Not for the app: `ui/session.py` polls without blocking. Anybody may import it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from ada_tui import launch, protocol
from ada_tui.errors import JobFailed
from ada_tui.jobs import JobDir, Tail
from ada_tui.protocol import Event, JobEnded, NotARecord

POLL = 0.1
"""Seconds between two looks at the files (inotify does not work on /mnt/c under WSL2)."""


def follow(job: JobDir) -> Iterator[Event]:
    """Every event of `job` from the start, until it has ended. Blocks between events.

    Raises:
        JobFailed: the job failed, or its worker died; the message says why and where the log is.
    """
    tail = Tail(job.path / "events.jsonl")
    while True:
        status = launch.status(job)  # before reading: what was written up to the end is then read below
        ended: JobEnded | None = None
        while lines := tail.lines():
            for _, line in lines:
                try:
                    event = protocol.decode_event(line)
                except NotARecord:
                    continue
                if event is None:
                    continue
                yield event
                ended = event if isinstance(event, JobEnded) else None
        if ended is not None and ended.status == "failed":
            raise JobFailed(f"{job.id} failed: {ended.error}; the log is {job.path / 'worker.log'}")
        if ended is not None:
            return
        if status.name == "dead":
            raise JobFailed(f"{job.id} died: {status.reason}; the log is {job.path / 'worker.log'}")
        if status.name in ("done", "stopped", "failed"):
            return
        time.sleep(POLL)
