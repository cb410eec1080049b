"""`ada-tui` without a command: open the app, here or on the last workspace."""

from __future__ import annotations

import sys
from pathlib import Path

from ada_tui.errors import BadInput
from ada_tui.workspace import Workspace, cache_dir


def open_app(workspace: Workspace, *, chosen: bool) -> None:
    """Open the app on `workspace`; when it is none and nobody chose it, on the last one that was.

    Raises:
        BadInput: stdin or stdout is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "the app needs a terminal; without one use a sub-command, e.g. `ada-tui demo --headless` (see --help)"
        )
    memory = cache_dir() / "last-workspace"
    if not chosen and not _is_workspace(workspace.root) and (last := _read(memory)) and _is_workspace(last):
        workspace = Workspace(last)
    if _is_workspace(workspace.root):
        _remember(memory, workspace.root)
    from ada_tui.ui.app import run_app

    run_app(workspace)


def _is_workspace(root: Path) -> bool:
    return (root / "ada.toml").is_file()


def _read(memory: Path) -> Path | None:
    try:
        return Path(memory.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def _remember(memory: Path, root: Path) -> None:
    """Best effort: a cache that cannot be written costs a convenience, not the session."""
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(str(root), encoding="utf-8")
    except OSError:
        return
