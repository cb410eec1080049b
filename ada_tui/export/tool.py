"""Run a tool of llama.cpp: argument list, no shell, its output read line by line, one line when it fails.

Not here: which tool (`gguf.py`, `quantise.py`). Only ada_tui.export imports it.
"""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ada_tui.errors import BadInput

Report = Callable[[str, float | None], None]
"""Told (detail, fraction 0..1 or None = not known) while a stage goes on."""


def silent(detail: str, fraction: float | None) -> None:
    """A `Report` for nobody."""


def run(command: Sequence[str | Path], *, what: str, on_line: Callable[[str], None], cwd: Path | None = None) -> None:
    """Run `command` to its end, handing every line of its output (stdout and stderr) to `on_line`.

    The hub is out of reach for the child, and it never waits for a keyboard. It dies with an exception raised here.

    Raises:
        BadInput: the program is missing, or it failed; the message holds `what` and the last thing it said.
    """
    said: deque[str] = deque(maxlen=40)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
    try:
        process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", env=environment, cwd=cwd,
        )  # fmt: skip
    except OSError as error:
        raise BadInput(f"{what}: {command[0]} cannot be started ({error.strerror})") from None
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:  # text mode: a progress bar's \r ends a line as well
                if line := line.strip():
                    said.append(line)
                    on_line(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise BadInput(f"{what} failed ({_ending(process.returncode)}): {last_words(said)}")


def last_words(lines: Sequence[str]) -> str:
    """The line that tells most: the last one that speaks of an error, else the last one."""
    telling = [line for line in lines if "error" in line.lower() or "no space" in line.lower()]
    return (telling or list(lines) or ["it said nothing"])[-1][:400]


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"killed by signal {-code}"
