"""The evaluation as a page: markdown for a repository, one HTML file without a single outside link for a browser."""

from ada_tui.evaluate.report.html import html
from ada_tui.evaluate.report.markdown import markdown
from ada_tui.evaluate.report.write import write, write_beside

__all__ = ["html", "markdown", "write", "write_beside"]
