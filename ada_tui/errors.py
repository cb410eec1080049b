"""The one exception that reaches the person: bad input, said in one line (what, where, what to do).

`ada_tui.cli` prints it without a traceback; the app shows it as a message; the worker writes it into `JobEnded.error`.
"""

from __future__ import annotations


class BadInput(Exception):
    """Something the person gave cannot be used. The message is complete: what, where, what to do."""


class JobFailed(Exception):
    """A job ended with status failed or dead. The message says which and why."""
