"""The demo inside the app: its stages run one after the other in a thread, the screen follows each stage's job.

The stages themselves are `ada_tui.demo`, the same that `ada-tui demo --headless` runs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ada_tui.errors import BadInput, JobFailed
from ada_tui.jobs import JobDir
from ada_tui.ui.background import tell

if TYPE_CHECKING:
    from ada_tui.ui.main_screen import MainScreen

PAGES = {"sample": "review", "sft": "train", "grpo": "train", "eval": "review", "export": "export"}
"""The page that shows a stage best."""


def play(screen: MainScreen) -> None:
    """Run the whole loop, following each stage. Returns at once; the app stays usable."""
    from ada_tui import demo
    from ada_tui.follow import follow

    app = screen.app

    def wait_for(job: JobDir) -> None:
        for _ in follow(job):
            pass

    def show(stage: demo.Stage, number: int) -> None:
        if stage.job is not None:
            screen.open_run(stage.job)
            screen.show_page(PAGES.get(stage.name, "train"))
        screen.notify(f"Demo {number} of {len(PAGES)}: {stage.title}", timeout=8, markup=False)

    def done(report: demo.Report) -> None:
        parts = [f"{name} {arm.total:.3f}" for name, arm in report.arms.items()]
        words = "\n".join(["Held-out total: " + ", ".join(parts), f"Ada: {report.reply}"])
        screen.notify(words, title="The demo is done", timeout=60, markup=False)

    def run() -> None:
        report = demo.Report()
        try:
            for number, stage in enumerate(demo.run(screen.workspace, None, report, wait_for), 1):
                tell(app, show, stage, number)
        except (BadInput, JobFailed, OSError) as error:
            tell(app, screen.complain, error)
        else:
            tell(app, done, report)

    threading.Thread(target=run, name="demo", daemon=True).start()
