"""Everything that will bite on this machine, each finding with its fix. No torch, no screen.

`machine.py` looks at the system, `software.py` at the worker's packages, `model.py` at the model that ada.toml names.
"""

from __future__ import annotations

from collections.abc import Iterator

from ada_tui.doctor import machine, model, software
from ada_tui.doctor.finding import Finding
from ada_tui.workspace import Workspace

__all__ = ["Finding", "examine"]


def examine(workspace: Workspace) -> Iterator[Finding]:
    """Every finding, good ones too, as it is made (the software check starts the worker's interpreter: seconds).

    Raises:
        BadInput: ada.toml cannot be read.
    """
    settings = workspace.settings()
    yield from machine.check(workspace)
    yield from software.check(settings.worker.python)
    yield from model.check(workspace, settings)
