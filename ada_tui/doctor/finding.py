"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`ok` = nothing to do; otherwise `fix` says what to do."""

    check: str
    ok: bool
    detail: str
    fix: str = ""
