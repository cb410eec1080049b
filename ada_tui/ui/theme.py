"""The app's own themes: one accent, one muted, and blue against vermillion as signals. Only `ada_tui.ui` imports it.

Textual's built-in themes signal with red and green, which one man in twelve cannot tell apart. Colour never stands
alone here either: sign, glyph and position say the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from textual.theme import Theme


def _theme(name: str, *, dark: bool, ink: str, paper: str, card: str, lifted: str, track: str, muted: str, accent: str,
           good: str, bad: str) -> Theme:  # fmt: skip
    return Theme(
        name=name,
        dark=dark,
        primary=accent,
        secondary=muted,
        accent=accent,
        foreground=ink,
        background=paper,
        surface=card,
        panel=lifted,
        success=good,
        warning=bad,
        error=bad,
        variables={
            "ink": ink, "paper": paper, "card": card, "lifted": lifted, "track": track, "muted": muted,
            "good": good, "bad": bad,
            "footer-background": paper, "footer-foreground": muted, "footer-key-foreground": accent,
            "footer-description-foreground": muted, "footer-item-background": paper, "footer-key-background": paper,
            "footer-description-background": paper, "block-cursor-foreground": ink, "block-cursor-background": lifted,
            "block-cursor-text-style": "bold", "input-selection-background": lifted, "border": accent,
            "border-blurred": lifted, "scrollbar": lifted, "scrollbar-hover": muted, "scrollbar-active": accent,
            "scrollbar-background": paper, "scrollbar-background-hover": paper, "scrollbar-background-active": paper,
            "scrollbar-corner-color": paper,
        },
    )  # fmt: skip


DARK = _theme(
    "ada-dark", dark=True, ink="#dbe1e8", paper="#0e1319", card="#151c25", lifted="#202a36", track="#344252",
    muted="#8391a1",
    accent="#e9b95f", good="#62b6f2", bad="#f58a5a",
)  # fmt: skip
LIGHT = _theme(
    "ada-light", dark=False, ink="#20262d", paper="#faf8f4", card="#f0ece4", lifted="#e1dbcf", track="#cbc4b5",
    muted="#676c73",
    accent="#8a5800", good="#00609f", bad="#b03c0a",
)  # fmt: skip
THEMES = (DARK, LIGHT)


@dataclass(frozen=True, slots=True)
class Palette:
    """The theme as Rich styles, for widgets that draw their lines themselves."""

    ink: Style
    muted: Style
    faint: Style
    """Tracks of bars and other scenery."""
    accent: Style
    good: Style
    bad: Style
    paper: Style
    """Background of panes."""
    card: Style
    """Background of a card."""
    lifted: Style
    """Background of what is focused, and of headings."""
    marked_good: Style
    marked_bad: Style
    """Matched spans: something that earned, something that cost."""
    bold: Style


_palettes: dict[str, Palette] = {}


def palette(theme: Theme) -> Palette:
    """The styles of a theme, made once."""
    if theme.name not in _palettes:
        _palettes[theme.name] = _palette(theme)
    return _palettes[theme.name]


def _palette(theme: Theme) -> Palette:
    v = theme.variables if "lifted" in theme.variables else DARK.variables  # Textual's own themes have none of ours
    accent = theme.accent or theme.primary
    return Palette(
        ink=Style(color=v["ink"]),
        muted=Style(color=v["muted"]),
        faint=Style(color=v["track"]),
        accent=Style(color=accent),
        good=Style(color=v["good"]),
        bad=Style(color=v["bad"]),
        paper=Style(bgcolor=v["paper"]),
        card=Style(bgcolor=v["card"]),
        lifted=Style(bgcolor=v["lifted"]),
        marked_good=Style(color=v["paper"], bgcolor=v["good"]),
        marked_bad=Style(color=v["paper"], bgcolor=v["bad"]),
        bold=Style(bold=True),
    )
