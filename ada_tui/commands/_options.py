"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")(command)


def overrides(section: str, **values: Any) -> dict[str, dict[str, Any]]:
    """Settings overrides of one section from options; those not given (None) are left out."""
    return {section: {name: value for name, value in values.items() if value is not None}}
