"""The runs of the workspace, newest first: kind, status, step, age. Enter opens one."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Footer

from ada_tui import jobs, launch, protocol
from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir
from ada_tui.protocol import JobStarted, NotARecord, Step
from ada_tui.ui import actions
from ada_tui.ui.draw import Line, duration
from ada_tui.ui.text import one_line
from ada_tui.ui.theme import Palette
from ada_tui.ui.widgets.empty import Empty
from ada_tui.ui.widgets.rows import Rows
from ada_tui.ui.widgets.status_line import GLYPHS
from ada_tui.workspace import Workspace

MOST = 200
"""Runs listed; older ones open by name."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One run as the list shows it."""

    job: JobDir
    kind: str
    title: str
    created: float
    status: launch.Status
    step: int
    steps: int


def listed(workspace: Workspace) -> list[Listed]:
    """The runs of the workspace; folders whose job.json cannot be read are passed over."""
    found = []
    for job in jobs.all_jobs(workspace.checkpoints)[:MOST]:
        try:
            asked = job.job()
        except BadInput:
            continue
        step, steps = _progress(job)
        found.append(Listed(job, asked.kind, asked.title, asked.created, launch.status(job), step, steps))
    return found


def _progress(job: JobDir) -> tuple[int, int]:
    """(last step, steps wanted), from both ends of events.jsonl only."""
    step = steps = 0
    try:
        with (job.path / "events.jsonl").open("rb") as file:
            head = file.read(4096).split(b"\n")
            size = file.seek(0, 2)
            file.seek(max(0, size - 32_768))
            tail = deque(file.read().split(b"\n"), maxlen=200)
    except OSError:
        return 0, 0
    for line in [*head, *tail]:
        if b'"step' not in line[:80] and b'"job_started"' not in line[:80]:
            continue
        try:
            event = protocol.decode_event(line)
        except NotARecord:
            continue
        if isinstance(event, Step):
            step = event.step
        elif isinstance(event, JobStarted):
            steps = event.steps
    return step, steps


class RunList(Rows):
    """Row: status, id, kind, step, age, title."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("runs")]

    def __init__(self, runs: list[Listed], *, id: str) -> None:
        super().__init__(id=id)
        self.runs = runs

    @property
    def count(self) -> int:
        return len(self.runs)

    def draw_row(self, index: int, width: int, *, at_cursor: bool, colours: Palette) -> Strip:
        run = self.runs[index]
        base = (colours.lifted if at_cursor else colours.paper) + colours.ink
        bad = run.status.name in ("failed", "dead")
        line = Line(base).add("▌" if at_cursor else " ", colours.accent)
        line.add(f"{GLYPHS.get(run.status.name, '·')} {run.status.name:8}", colours.bad if bad else colours.good)
        line.add(f"{one_line(run.job.id, 24):24} ")
        steps = f"{run.step}/{run.steps}" if run.steps and run.kind in ("sft", "grpo", "dpo") else ""
        line.add(f"{steps:>9}  ", colours.muted)
        line.add(f"{duration(time.time() - run.created):>7} ago  ", colours.muted)
        words = run.status.reason if bad else run.title
        return line.add(one_line(words, max(1, width - line.width - 1)), colours.muted).strip(width)

    def action_close(self) -> None:
        self.screen.dismiss(None)


class Runs(ModalScreen[JobDir | None]):
    """Dismisses with the run to open, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("confirm")]

    def __init__(self, runs: list[Listed]) -> None:
        super().__init__()
        self._runs = runs

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide tall") as box:
            box.border_title = Content(f"Runs {len(self._runs)}")
            if self._runs:
                yield RunList(self._runs, id="run-list")
            else:
                yield Empty(id="no-runs")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        if not self._runs:
            self.query_one("#no-runs", Empty).say(
                "This workspace has no runs yet", "Every run leaves a folder in checkpoints/.", [("esc", "back")]
            )

    @on(RunList.Chosen)
    def _chosen(self, message: RunList.Chosen) -> None:
        self.dismiss(self._runs[message.index].job)

    def action_close(self) -> None:
        self.dismiss(None)
