"""Pictures of the main screens. A changed picture fails; look at it, then renew with UPDATE_SNAPSHOTS=1.

Textual's SVG export is deterministic but for the ids it makes up; those are numbered here.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ada_tui.workspace import Workspace
from tests.ui.conftest import opened, screen, shown, until

STORED = Path(__file__).parent.parent / "snapshots"
FROZEN = Path(__file__).parent / "frozen"


@pytest.fixture
def frozen(tmp_path: Path) -> Workspace:
    """The frozen run: stored scores, so that tuning a rule does not change a picture."""
    shutil.copytree(FROZEN, tmp_path / "checkpoints")
    return Workspace(tmp_path)


def picture(pilot: Pilot[None]) -> str:
    """The screen as SVG with stable ids."""
    svg = pilot.app.export_screenshot()
    return re.sub(r"terminal-\d+", "terminal", svg)


def compare(pilot: Pilot[None], name: str) -> None:
    path = STORED / f"{name}.svg"
    now = picture(pilot)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    assert path.is_file(), f"no picture {path}; make it with UPDATE_SNAPSHOTS=1"
    if path.read_text(encoding="utf-8") != now:
        seen = path.with_suffix(".new.svg")
        seen.write_text(now, encoding="utf-8")
        pytest.fail(f"{name} looks different: compare {path} and {seen}; UPDATE_SNAPSHOTS=1 renews it")


PAGES = {
    "review": [],
    "weights": ["n", "w", "5", "down", "0"],
    "train": ["f3"],
    "export": ["f4"],
    "help": ["f1"],
}


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("page", PAGES)
async def test_page(frozen: Workspace, page: str, size: tuple[int, int]) -> None:
    async with opened(frozen, size, run="grpo-1") as pilot:
        await _read(pilot)
        await pilot.press(*PAGES[page])
        await _still(pilot)
        compare(pilot, f"{page}-{size[0]}x{size[1]}")


@pytest.mark.parametrize("page", ["review", "train"])
async def test_light_theme(frozen: Workspace, page: str) -> None:
    async with opened(frozen, run="grpo-1", theme="ada-light") as pilot:
        await _read(pilot)
        await pilot.press(*PAGES[page])
        await _still(pilot)
        compare(pilot, f"{page}-light")


async def test_first_start(tmp_path: Path) -> None:
    async with opened(Workspace(tmp_path), (80, 24)) as pilot:
        await _still(pilot)
        compare(pilot, "first-start-80x24")


async def _read(pilot: Pilot[None]) -> None:
    """Until the whole run is read and ranked."""
    main, review = screen(pilot).main, screen(pilot).review
    assert main is not None
    await until(pilot, lambda: main.store.ended is not None and len(review.entries()) == 20)
    await until(pilot, lambda: review._sweep is None)


async def _still(pilot: Pilot[None]) -> None:
    """Until nothing changes any more on the screen."""
    seen = [""]

    def same() -> bool:
        now = shown(pilot)
        if now == seen[-1]:
            seen.append(now)
        else:
            seen[:] = [now]
        return len(seen) > 15 and screen(pilot).review._sweep is None

    await until(pilot, same)
