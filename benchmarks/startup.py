"""How long until the app can be seen: from starting the process to the first page, and what importing costs.

    python -m benchmarks.startup [--runs 7]

A pseudo-terminal of 120 x 40 stands in for the person's. Two workspaces: an empty one, one with 10,000 stored groups.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from ada_tui import protocol
from ada_tui.protocol import Event, JobEnded, JobStarted
from benchmarks._results import write_result

GROUPS = 10_000
PATIENCE = 30.0
"""Seconds after which a start counts as failed."""


def first_paint(workspace: Path, sign: bytes) -> float:
    """Seconds from spawning `ada-tui` until `sign` is written to the terminal."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    began = time.perf_counter()
    app = subprocess.Popen(
        [sys.executable, "-m", "ada_tui", "--workspace", str(workspace)],
        stdin=side, stdout=side, stderr=side, start_new_session=True, env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(side)
    seen = b""
    try:
        while sign not in seen:
            left = PATIENCE - (time.perf_counter() - began)
            ready, _, _ = select.select([main], [], [], max(0.0, left))
            if not ready:
                raise TimeoutError(f"{sign!r} did not appear within {PATIENCE:.0f} s: {seen[-300:]!r}")
            seen += os.read(main, 65536)
        return time.perf_counter() - began
    finally:
        app.kill()
        app.wait()
        os.close(main)


def importing(module: str) -> float:
    """Seconds that a fresh interpreter spends on importing `module`."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def many_groups(workspace: Path) -> None:
    """A finished run of `GROUPS` groups of eight."""
    from rewards import RewardConfig
    from tests.ui.make_run import PROMPTS, START, group, make_job

    job, config = make_job(workspace, "grpo"), RewardConfig.default()
    lines = []
    for prompt, (row, texts) in PROMPTS.items():
        record = group("ID", prompt, dict(row), texts, config, step=1)
        lines.append(protocol.encode(record))
    with (job.path / "groups.jsonl").open("wb") as file:
        for number in range(GROUPS):
            line = lines[number % len(lines)].replace(b'"id":"ID"', b'"id":"g%d"' % number, 1)
            file.write(line.replace(b'"batch_id":0', b'"batch_id":%d' % (number // 4), 1))
    events: list[Event] = [JobStarted(kind="grpo", steps=9, time=START), JobEnded(status="done", time=START)]
    (job.path / "events.jsonl").write_bytes(b"".join(protocol.encode(event) for event in events))


def measured(runs: int, once: object) -> dict[str, float]:
    assert callable(once)
    seconds = sorted(once() for _ in range(runs))
    return {
        "median_s": round(statistics.median(seconds), 3),
        "best_s": round(seconds[0], 3),
        "worst_s": round(seconds[-1], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as temp:
        empty, full = Path(temp) / "empty", Path(temp) / "full"
        empty.mkdir()
        full.mkdir()
        many_groups(full)
        figures = {
            "import ada_tui.ui.app": measured(runs, lambda: importing("ada_tui.ui.app")),
            "empty workspace": measured(runs, lambda: first_paint(empty, b"Nothing to review")),
            "10,000 groups, first page": measured(runs, lambda: first_paint(full, b"uncertainty")),
            "10,000 groups, all read": measured(runs, lambda: first_paint(full, b"Prompts 10000")),
        }
    for name, seconds in figures.items():
        spread = f"best {seconds['best_s']:.2f} s, worst {seconds['worst_s']:.2f} s"
        print(f"{name:28} median {seconds['median_s']:.2f} s   ({spread})")
    print(write_result("startup", figures, ("textual", "textual-plot", "orjson", "pydantic")))


if __name__ == "__main__":
    main()
