"""The evaluation as markdown. Replies are hostile text: shown in code spans, never as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ada_tui.evaluate.evaluation import Evaluation, Example
from ada_tui.evaluate.report.figures import figures, headline, words_by_kind
from ada_tui.text import visible


def markdown(evaluation: Evaluation) -> str:
    """The whole report. The same job directory always gives the same text."""
    return "\n".join(_lines(evaluation)) + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A markdown table: columns of figures to the right, text to the left."""
    figures = [all(re.match(r"[-+]?\d|-$", row[i]) for row in rows) for i in range(len(header))]
    lines = [header, ["---:" if right else "---" for right in figures], *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def code(text: str) -> str:
    """Hostile text as a code span on one line.

    >>> code("a `b`")
    '`` a `b` ``'
    """
    shown = visible(text)
    fence = "`"
    while fence in shown:
        fence += "`"
    return f"{fence} {shown} {fence}" if len(fence) > 1 or not shown.strip() else f"{fence}{shown}{fence}"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    arms = list(evaluation.arms)
    yield from (f"# Was it worth it? {evaluation.job.id}", "", headline(evaluation))
    if evaluation.findings:
        yield ""
    for finding in evaluation.findings:
        yield f"- {'**INVALID** ' if finding.fatal else ''}{visible(finding.words)}"
    yield from ("", "## Gates", "")
    yield from table(
        ["", "gate", "answer", "what was seen"],
        [[gate.sign, gate.name.replace("_", " "), gate.state, gate.words] for gate in evaluation.gates],
    )
    yield from ("", "## Arms", "", f"Held-out prompts: {len(evaluation.arms[evaluation.subject].totals)}.", "")
    yield from table(["held out", *arms], [[figure.name, *figure.cells()] for figure in figures(evaluation)])
    yield from ("", "## Differences", "", "95 % intervals, paired bootstrap over prompts.", "")
    yield from (f"- {difference.words}; {difference.power_words}" for difference in evaluation.differences)
    if evaluation.seeds:
        yield from ("", "Seed by seed:", "")
        yield from (f"- {difference.words}" for difference in evaluation.seeds)
    yield from ("", f"## Reward by reward, {evaluation.subject} against {evaluation.reference}", "")
    yield from (f"- {reward.words}" for reward in evaluation.rewards)
    yield from ("", "## Words per reply", "")
    yield from table(
        ["kind", evaluation.reference, evaluation.subject],
        [[kind, f"{before:.1f}", f"{after:.1f}"] for kind, before, after in words_by_kind(evaluation)],
    )
    yield from _examples("Got better", evaluation.better, evaluation)
    yield from _examples("Got worse", evaluation.worse, evaluation)


def _examples(title: str, examples: Sequence[Example], evaluation: Evaluation) -> Iterator[str]:
    if not examples:
        return
    yield from ("", f"## {title}", "", "A typical reply of each arm: the sample nearest to its mean.", "")
    for example in examples:
        yield f"- {code(example.prompt)} ({example.kind})"
        yield f"  - {evaluation.reference} {example.before_total:.2f}: {code(example.before)}"
        yield f"  - {evaluation.subject} {example.after_total:.2f}: {code(example.after)}"
