"""From a background thread back to the app; silently nowhere when the app has been left meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App


def tell(app: App[Any], what: Callable[..., object], *arguments: object) -> None:
    """Call `what(*arguments)` in the app's own thread and wait for it.

    A person may leave while a thread still works: then there is nobody to tell, and that is no error.
    """
    if not app.is_running:
        return
    try:
        app.call_from_thread(what, *arguments)
    except RuntimeError:
        if app.is_running:
            raise
