"""AdaApp: themes, size classes, the command palette, the one screen. Nothing else.

`ada_tui.cli` calls `run_app`. Importing this file imports no torch and no numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.events import Resize
from textual.notifications import SeverityLevel

from ada_tui.settings import Settings
from ada_tui.ui import actions
from ada_tui.ui.main_screen import MainScreen
from ada_tui.ui.text import reveal
from ada_tui.ui.theme import THEMES
from ada_tui.workspace import Workspace


class ActionCommands(Provider):
    """The command palette: every action whose key works where the focus is."""

    def _commands(self) -> list[tuple[str, str, Callable[[], object]]]:
        found = {}
        for active in self.screen.active_bindings.values():
            action = actions.by_binding(active.binding.id or "")
            if action is not None and not action.argument:
                title = f"{action.help}  ({action.written})"
                found[action.id] = (title, action.id, partial(self.app.run_action, active.binding.action, active.node))
        return list(found.values())

    async def discover(self) -> Hits:
        for title, _, run in self._commands():
            yield DiscoveryHit(Content(title), run, text=title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, _, run in self._commands():
            if (score := matcher.match(title)) > 0:
                yield Hit(score, matcher.highlight(title), run, text=title)


class AdaApp(App[None]):
    """The app."""

    TITLE = "ada-tui"
    CSS_PATH = "ada.tcss"
    COMMANDS: ClassVar = {ActionCommands}
    COMMAND_PALETTE_BINDING = "f5"
    BINDINGS: ClassVar = []

    def __init__(self, workspace: Workspace, settings: Settings, *, run: str | None = None, demo: bool = False) -> None:
        super().__init__()
        self.workspace = workspace
        self.settings = settings
        self._run_wanted = run
        self._demo = demo
        for theme in THEMES:
            self.register_theme(theme)
        known = self.available_themes
        self.theme = settings.ui.theme if settings.ui.theme in known else THEMES[0].name

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self.workspace, self.settings, run=self._run_wanted, demo=self._demo)

    def on_resize(self, event: Resize) -> None:
        """Appearance by size is CSS: classes on the app, no branches in the code."""
        width, height = event.size
        self.set_class(width < 100, "narrow")
        self.set_class(width >= 160, "wide")
        self.set_class(height < 30, "short")
        self.set_class(height >= 50, "tall")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A toast. What it says may come from a file or a model: hidden characters are shown, markup is never read."""
        super().notify(reveal(message).text, title=reveal(title).text, severity=severity, timeout=timeout, markup=False)

    def action_quit(self) -> None:  # type: ignore[override]
        """Textual's own ctrl+q asks as well."""
        screen = self.screen
        if isinstance(screen, MainScreen):
            screen.action_ask_quit()
        else:
            self.exit()


def run_app(workspace: Workspace, *, run: str | None = None, demo: bool = False) -> None:
    """Open the app and stay in it until the person leaves.

    Args:
        run: the run to open; None = the newest one.
        demo: play the demo at once.

    Raises:
        BadInput: ada.toml cannot be used.
    """
    AdaApp(workspace, workspace.settings(), run=run, demo=demo).run()
