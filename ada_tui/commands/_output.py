"""How commands print: JSON documents, plain tables, text that may be hostile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import orjson

from ada_tui.protocol import finite
from ada_tui.text import visible


def print_json(document: Any) -> None:
    """One JSON document on stdout; non-finite numbers become null, lone surrogates are replaced."""
    try:
        data = orjson.dumps(finite(document), option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError:
        import json

        text = json.dumps(finite(document), indent=2, ensure_ascii=True)
        data = text.encode()
    click.echo(data.decode())


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table: text left, numbers right, two spaces between columns. Control characters are made visible."""
    cells = [[visible(_cell(value)) for value in row] for row in rows]
    numeric = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    for line in [list(header), *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
