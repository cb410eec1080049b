"""`python -m ada_tui` is `ada-tui`."""

from ada_tui.cli import main

main()
