"""Puts a report on disk: beside the eval job it was made from, or where the person wants it."""

from __future__ import annotations

from pathlib import Path

import orjson

from ada_tui.errors import BadInput
from ada_tui.evaluate.evaluation import Evaluation
from ada_tui.evaluate.report.html import html
from ada_tui.evaluate.report.markdown import markdown
from ada_tui.jobs import write_atomic
from ada_tui.protocol import finite

FORMATS = {".md": markdown, ".html": html}


def write(evaluation: Evaluation, path: Path) -> None:
    """Write the report as the ending of `path` says: .md, .html or .json.

    Raises:
        BadInput: another ending, or the file cannot be written.
    """
    if path.suffix == ".json":
        data = orjson.dumps(finite(evaluation.to_dict()), option=orjson.OPT_INDENT_2)
    elif path.suffix in FORMATS:
        data = FORMATS[path.suffix](evaluation).encode("utf-8", "replace")
    else:
        raise BadInput(f"{path}: a report ends in .md, .html or .json")
    try:
        write_atomic(path, data)
    except OSError as error:
        raise BadInput(f"{path}: cannot write the report ({error.strerror}); choose another place") from None


def write_beside(evaluation: Evaluation) -> Path:
    """Write report.md and report.html into the job directory; returns the HTML's path. Raises BadInput."""
    for name in ("report.md", "report.html"):
        write(evaluation, evaluation.job.path / name)
    return evaluation.job.path / "report.html"
