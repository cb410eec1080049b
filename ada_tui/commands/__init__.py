"""One file per sub-command of the command line; `cli.py` loads them on demand. They parse, call and print; no logic."""
