"""The app: everything a person sees and presses.

Textual lives here and nowhere else. Nothing in this package imports torch, transformers, TRL or `ada_tui.worker`: work
is started as a job (`ada_tui.runs`) and followed through its directory. `ada_tui.cli` imports `ada_tui.ui.app` when a
screen is wanted, tests import all of it.
"""
