"""The report: reproducible, self-contained, and unmoved by hostile replies."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ada_tui.errors import BadInput
from ada_tui.evaluate.evaluation import Evaluation, read
from ada_tui.evaluate.report import html, markdown, write, write_beside
from ada_tui.evaluate.report.plots import ticks_of
from ada_tui.protocol import Outcome
from tests.evaluate import stored

HOSTILE = [
    "</bdi></div><script>alert(1)</script>", "\x1b]0;title\x07\x1b[31mred", "a\x00b \ud800", "‮gnirts",
    "| a | b |\n| `` ` ``", "<img src=x onerror=alert(1)>", "[/bold] [link](javascript:alert(1))", "é" * 50_000,
]  # fmt: skip
VOID = {"meta", "line", "circle", "rect", "polyline"}


class Checker(HTMLParser):
    """Counts tags and makes sure that they are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.seen.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    rows = stored.rows(40)
    hostile = [stored.group(row, [HOSTILE[i % len(HOSTILE)]] * 2, "grpo") for i, row in enumerate(rows)]
    probes = [
        Outcome(name=f"probe:{arm}", data={"kl": kl, "reference_perplexity": 9.5})
        for arm, kl in (("grpo", 2.0), ("grpo@5", 1.0))
    ]
    early = [stored.group(row, [row.row.reference] * 2, "grpo@5") for row in rows]
    arms = {"base": ("", 0.2), "sft": ("", 0.5), "bon4": ("", 0.8)}
    return read(stored.evaluation(tmp_path, arms, best_of={"bon4": 4}, events=probes, extra=[*hostile, *early]))


def test_the_page_is_whole_and_loads_nothing(evaluation: Evaluation) -> None:
    page = html(evaluation)
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert {"svg", "table", "h2"} <= checker.seen
    assert not {"script", "img", "link", "iframe", "a"} & checker.seen
    assert not [name for name, _ in checker.attributes if name.startswith("on") or name in ("src", "href")]
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 4


@pytest.mark.parametrize("form", [html, markdown], ids=["html", "markdown"])
def test_hostile_replies_are_shown_not_obeyed(evaluation: Evaluation, form) -> None:
    page = form(evaluation)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", page)
    page.encode("utf-8")


def test_markdown_keeps_hostile_text_in_code_spans(evaluation: Evaluation) -> None:
    for line in markdown(evaluation).splitlines():
        if "script" in line or "onerror" in line:
            assert re.search(r"`[^`]*(script|onerror)", line)


def test_the_same_job_gives_the_same_bytes(evaluation: Evaluation) -> None:
    again = read(evaluation.job)
    assert html(evaluation) == html(again)
    assert markdown(evaluation) == markdown(again)
    assert evaluation.to_dict() == again.to_dict()


def test_it_is_written_beside_the_job_and_where_it_is_wanted(evaluation: Evaluation, tmp_path: Path) -> None:
    assert write_beside(evaluation).read_text(encoding="utf-8") == html(evaluation)
    for ending in ("md", "html", "json"):
        write(evaluation, tmp_path / f"out.{ending}")
        assert (tmp_path / f"out.{ending}").stat().st_size > 500
    with pytest.raises(BadInput, match="ends in"):
        write(evaluation, tmp_path / "out.pdf")
    with pytest.raises(BadInput, match="cannot write"):
        write(evaluation, tmp_path / "missing" / "out.md")


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (-0.013, 0.021), (0.43, 0.87), (0, 12345), (-1e-9, 1e-9)])
def test_ticks_cover_the_data(low: float, high: float) -> None:
    ticks = ticks_of(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
