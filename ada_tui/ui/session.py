"""A session with one job: reads its files in a thread, folds them into a RunStore, writes its control record.

Running, finished, foreign and dead jobs are all the same here: files that may or may not grow. No widget is known
here; news goes out as `Arrived` (from the thread) and, once folded, as `Frame` (at most ten a second). The main screen
owns it.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from textual.message import Message

from ada_tui import launch, picks, protocol
from ada_tui.jobs import STALE_AFTER, JobDir, Tail
from ada_tui.picks import Pick
from ada_tui.protocol import Control, Event, Group, Job, NotARecord, Probe
from ada_tui.store import GroupEntry, RunStore, index_group
from rewards.config import ConfigError, RewardConfig

POLL = 0.1
"""Seconds between two looks at the files."""

LIFE = 1.0
"""Seconds between two looks at the worker process."""

SETTLE = 0.3
"""Seconds without a further edit after which the control record is written."""

LIVE = ("running", "paused")


@dataclass(slots=True)
class Batch:
    """What one look at the files brought."""

    events: list[Event] = field(default_factory=list)
    groups: list[GroupEntry] = field(default_factory=list)
    groups_restarted: bool = False
    status: launch.Status | None = None
    control: Control | None = None
    """A control record that was written, by us or by another viewer."""
    error: str = ""
    """Why the control record could not be written."""

    def __bool__(self) -> bool:
        return bool(
            self.events or self.groups or self.groups_restarted or self.status or self.control or self.error
        )  # fmt: skip


class Arrived(Message):
    """The reading thread found something new; the receiver folds it with `Session.fold`."""

    def __init__(self, session: Session, batch: Batch) -> None:
        super().__init__()
        self.session = session
        self.batch = batch


class Frame(Message):
    """The store of `session` changed in these topics (`store.TOPICS` and "status")."""

    def __init__(self, session: Session, topics: frozenset[str]) -> None:
        super().__init__()
        self.session = session
        self.topics = topics


class Session:
    """One open job.

    Raises:
        BadInput: job.json is missing or cannot be read.
    """

    def __init__(self, job: JobDir, post: Callable[[Message], object]) -> None:
        self.dir = job
        self.job: Job = job.job()
        self.store = RunStore()
        self.status = launch.status(job)
        self.control = _readable_control(job)
        self.notice = ""
        """Why the last control record could not be written."""
        self.picks: dict[str, Pick] = picks.read(job)
        """The person's verdicts by group id."""
        self._post = post
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._wanted: Control | None = None
        self._wanted_at = 0.0
        self._writing: Control | None = None
        self._weights: RewardConfig | None = None
        self._control_mark = _mark(job.path / "control.json")
        self._thread = threading.Thread(target=self._read, name=f"session {job.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop reading; an edit that was not written yet is written. The job itself goes on."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    # -- what there is

    @property
    def id(self) -> str:
        return self.dir.id

    @property
    def live(self) -> bool:
        return self.status.name in LIVE

    @property
    def age(self) -> float | None:
        """Seconds since the worker last said anything; None before its first word."""
        return time.time() - self.store.last_event if self.store.last_event else None

    @property
    def stale(self) -> bool:
        """The figures on the screen are old although the job should be running."""
        return self.live and (self.age or 0.0) > STALE_AFTER

    def rewards(self) -> RewardConfig:
        """What the job is wanted to train with: the newest edit or control record, else what it was started with."""
        with self._lock:
            if self._weights is not None:
                return self._weights
            wish = self._writing or self.control
        for source in (wish.rewards, self.job.rewards):
            if source:
                try:
                    return RewardConfig.from_dict(source)
                except ConfigError:
                    continue
        return RewardConfig.default()

    def read(self, entry: GroupEntry) -> Group:
        """The texts of a group, from disk. Raises NotARecord, OSError."""
        with (self.dir.path / "groups.jsonl").open("rb") as file:
            file.seek(entry.offset)
            return protocol.decode_group(file.readline())

    def pick(self, pick: Pick) -> None:
        """Save a verdict, at once and for good. Raises OSError."""
        self.picks[pick.group] = picks.append(self.dir, pick)

    # -- what is wanted

    @property
    def unsent(self) -> bool:
        """An edit waits to be written."""
        with self._lock:
            return self._wanted is not None or self._writing is not None

    @property
    def wish(self) -> Control:
        """The newest wish, written or not."""
        with self._lock:
            return self._wanted or self._writing or self.control

    def want(self, *, now: bool = False, **changes: object) -> None:
        """Change the control record (`paused`, `stop`, `save`, `probes`); written when edits have settled."""
        with self._lock:
            base = self._wanted or self._writing or self.control
            self._wanted = dataclasses.replace(base, **changes)  # type: ignore[arg-type]
            self._wanted_at = 0.0 if now else time.monotonic()

    def want_rewards(self, config: RewardConfig) -> None:
        """Ask the job to train with `config` from its next generation batch on."""
        with self._lock:
            self._weights = config  # made JSON in the thread: the phrase lists are long and keys come fast
        self.want()

    def probe(self, prompt: str, n: int) -> str:
        """Ask the running job for a group between two steps; returns the request's id."""
        probe = Probe(id=f"ask-{time.time_ns():x}", prompt=prompt, n=n)
        self.want(now=True, probes=[*self.wish.probes[-7:], probe])
        return probe.id

    def control_state(self) -> tuple[str, str]:
        """(state, words) of the weights: "" | "pending" | "applied" | "refused" | "failed"."""
        if self.notice:
            return "failed", f"not sent: {self.notice}"
        if not self.live:
            return "", ""
        if self.unsent:
            return "pending", "edited"
        applied = self.store.applied
        if self.control.version and (applied is None or applied.version < self.control.version):
            return "pending", f"pending v{self.control.version}"
        if applied is not None and applied.error is not None:
            return "refused", f"refused: {applied.error}"
        if applied is not None:
            return "applied", f"applied at step {applied.step}"
        return "", ""

    # -- folding (in the app's own thread)

    def fold(self, batch: Batch) -> frozenset[str]:
        """Take a batch into the store; returns what changed."""
        topics = {self.store.fold(event) for event in batch.events}
        if batch.groups_restarted:
            self.store.forget_groups()
            topics.add("groups")
        for entry in batch.groups:
            self.store.add(entry)
        if batch.groups:
            topics.add("groups")
        if batch.status is not None:
            self.status = batch.status
            topics.add("status")
        if batch.control is not None:
            self.control, self.notice = batch.control, ""
            topics.add("control")
        if batch.error:
            self.notice = batch.error
            topics.add("control")
        return frozenset(topics)

    # -- reading (in the thread)

    def _read(self) -> None:
        events, groups = Tail(self.dir.path / "events.jsonl"), Tail(self.dir.path / "groups.jsonl")
        looked, last = 0.0, self.status
        while True:
            stopping = self._stop.is_set()
            batch = Batch()
            self._read_events(events, batch)
            self._read_groups(groups, batch)
            self._control(batch, stopping)
            if time.monotonic() - looked >= LIFE:
                looked, status = time.monotonic(), launch.status(self.dir)
                if status != last:
                    batch.status = last = status
            if batch and not stopping:
                self._post(Arrived(self, batch))
            if stopping:
                return
            more = len(batch.groups) + len(batch.events) > 1000
            self._stop.wait(0.01 if more else POLL)

    @staticmethod
    def _read_events(tail: Tail, batch: Batch) -> None:
        for _, line in tail.lines():
            try:
                event = protocol.decode_event(line)
            except NotARecord:
                continue
            if event is not None:
                batch.events.append(event)

    @staticmethod
    def _read_groups(tail: Tail, batch: Batch) -> None:
        lines = tail.lines()
        batch.groups_restarted = tail.restarted
        for offset, line in lines:
            try:
                batch.groups.append(index_group(line, offset))
            except NotARecord:
                continue

    def _control(self, batch: Batch, at_once: bool) -> None:
        """Write what is wanted once it has settled; notice what another viewer wrote."""
        path = self.dir.path / "control.json"
        with self._lock:
            wanted = self._wanted
            if wanted is not None and (at_once or time.monotonic() - self._wanted_at >= SETTLE):
                if self._weights is not None:
                    wanted = dataclasses.replace(wanted, rewards=self._weights.to_dict())
                self._wanted, self._writing, self._weights = None, wanted, None
        if self._writing is not None:
            try:
                batch.control = self.dir.write_control(self._writing)
            except OSError as error:
                batch.error = error.strerror or str(error)
            with self._lock:
                self._writing = None
            self._control_mark = _mark(path)
        elif wanted is None and (mark := _mark(path)) != self._control_mark:
            self._control_mark = mark
            batch.control = _readable_control(self.dir)


def _readable_control(job: JobDir) -> Control:
    try:
        return job.control()
    except (NotARecord, OSError):
        return Control()


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino
