"""Make the pictures of docs/images/ by driving the real app over a real run.

    python scripts/screenshots.py WORKSPACE RUN

Needs the dev extra (cairosvg) and the DejaVu fonts (apt install fonts-dejavu-core).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import cairosvg

from ada_tui.ui.app import AdaApp
from ada_tui.workspace import Workspace

IMAGES = Path(__file__).parent.parent / "docs" / "images"

SHOTS = (
    ("review-120x40", (120, 40), ()),
    ("review-80x24", (80, 24), ()),
    ("train-120x40", (120, 40), ("f3",)),
    ("export-120x40", (120, 40), ("f4",)),
    ("help-120x40", (120, 40), ("f1",)),
)
"""(file name, columns x rows, keys pressed before the picture)."""


async def shoot(workspace: Workspace, run: str, name: str, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    """One picture, after the run has been read and the screen has settled."""
    app = AdaApp(workspace, workspace.settings(), run=run)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(3)  # the tail reads the run in the background
        if keys:
            await pilot.press(*keys)
        await pilot.pause(1)
        svg = app.export_screenshot().replace("Fira Code", "DejaVu Sans Mono")  # cairo loads no web fonts
    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(IMAGES / f"{name}.png"), scale=1.0)
    print(f"{name}.png")


def main() -> None:
    folder, run = Path(sys.argv[1]).resolve(), sys.argv[2]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, size, keys in SHOTS:
        asyncio.run(shoot(Workspace(folder), run, name, size, keys))


if __name__ == "__main__":
    main()
