"""Fixtures of the Pilot tests: workspaces with runs in them, a live job whose worker is this process, waiting."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ada_tui.jobs import JobDir, Log, WorkerLock
from ada_tui.protocol import Event, Group, JobStarted, Phase
from ada_tui.ui.app import AdaApp
from ada_tui.ui.main_screen import MainScreen
from ada_tui.workspace import Workspace
from tests.ui.make_run import make_grpo, make_job, make_workspace

SIZES = [(80, 24), (120, 40), (200, 60)]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("made") / "ws").root


@pytest.fixture(scope="session")
def made_hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile") / "ws"
    root.mkdir()
    make_grpo(root, steps=3, hostile=True)
    return root


@pytest.fixture
def workspace(made: Path, tmp_path: Path) -> Workspace:
    """A workspace with an SFT run, a finished GRPO run of 60 groups, and its export."""
    return Workspace(Path(shutil.copytree(made, tmp_path / "ws")))


@pytest.fixture
def hostile(made_hostile: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(made_hostile, tmp_path / "ws")))


@pytest.fixture
def empty(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@dataclass
class LiveJob:
    """A job that counts as running, because this very process holds its lock. The test plays the worker."""

    dir: JobDir
    events: Log
    groups: Log

    def say(self, *events: Event) -> None:
        for event in events:
            self.events.append(event)

    def give(self, *groups: Group) -> None:
        for group in groups:
            self.groups.append(group)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveJob]:
    """A GRPO job that has just started."""
    root = tmp_path / "live"
    root.mkdir()
    job = make_job(root, "grpo")
    with WorkerLock(job):
        worker = LiveJob(job, Log(job.path / "events.jsonl"), Log(job.path / "groups.jsonl"))
        worker.say(JobStarted(kind="grpo", steps=60), Phase(name="train", detail="generating"))
        yield worker
        worker.events.close()
        worker.groups.close()


@asynccontextmanager
async def opened(
    workspace: Workspace, size: tuple[int, int] = (120, 40), *, run: str | None = None, theme: str = "ada-dark"
) -> AsyncIterator[Pilot[None]]:
    """The app on `workspace`, its run read."""
    app = AdaApp(workspace, workspace.settings({"ui": {"theme": theme}}), run=run)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        main = screen(pilot).main
        if main is not None:
            await until(pilot, lambda: main.store.last_event > 0 or main.status.name == "dead")
        await pilot.pause()
        yield pilot


def screen(pilot: Pilot[None]) -> MainScreen:
    """The main screen, also under a dialog."""
    found = pilot.app.screen_stack[0]
    assert isinstance(found, MainScreen)
    return found


async def until(pilot: Pilot[None], condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until `condition` holds. Fails the test when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)
    await pilot.pause()


def lines(pilot: Pilot[None]) -> list[str]:
    """What stands on the screen, line by line, as a terminal would get it."""
    width, height = pilot.app.size
    strips = pilot.app.screen._compositor.render_strips()
    assert len(strips) == height
    for strip in strips:
        assert strip.cell_length == width, f"{strip.cell_length} cells instead of {width}: {strip.text!r}"
    return [strip.text for strip in strips]


def shown(pilot: Pilot[None]) -> str:
    return "\n".join(lines(pilot))
