"""The table of an evaluation, the same in terminal, markdown and HTML: a row per measure, a column per arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ada_tui.evaluate.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure over all arms."""

    name: str
    values: list[float | None]
    """Per arm, in the order of `Evaluation.arms`."""
    format: Callable[[float], str]

    def cells(self) -> list[str]:
        """Per arm as text; "-" where it was not measured."""
        return ["-" if value is None else self.format(value) for value in self.values]


def score(value: float) -> str:
    return f"{value:.3f}"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def one_decimal(value: float) -> str:
    return f"{value:.1f}"


SUMMARY: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("words per reply", "words", one_decimal),
    ("cut at the cap", "truncated", percent),
    ("right answers", "known_answer", percent),
    ('false "don\'t know"', "false_abstention", percent),
    ("withheld phrases", "audit_phrase", percent),
    ("capability items", "regression", percent),
    ("distinct 3-grams", "distinct_3", score),
    ("word entropy, bits", "entropy", one_decimal),
    ("commonest 6 words in", "common_6gram_share", percent),
    ("perplexity, references", "reference_perplexity", one_decimal),
    ("perplexity, neutral text", "neutral_perplexity", one_decimal),
    ("KL from SFT, nats", "kl", score),
    ("token entropy, nats", "token_entropy", score),
    ("training, minutes", "minutes", one_decimal),
    ("with all it builds on", "minutes_in_all", one_decimal),
)
"""(shown name, key of the arm's summary, how it is written)."""


def figures(evaluation: Evaluation) -> list[Figure]:
    """Every measure that at least one arm has: total, the rewards, then `SUMMARY`."""
    summaries: list[dict[str, Any]] = list(evaluation.to_dict()["arms"].values())
    rows = [Figure("total", [summary["total"] for summary in summaries], score)]
    for name in evaluation.arms[evaluation.subject].rewards:
        rows.append(Figure(name, [summary["rewards"].get(name) for summary in summaries], score))
    rows += [Figure(shown, [summary.get(key) for summary in summaries], form) for shown, key, form in SUMMARY]
    return [row for row in rows if any(value is not None for value in row.values)]


def words_by_kind(evaluation: Evaluation) -> list[tuple[str, float, float]]:
    """(kind, words per reply of the reference, of the subject), by kind."""
    before, after = evaluation.arms[evaluation.reference], evaluation.arms[evaluation.subject]
    rows = []
    for kind in sorted(set(before.kinds.values()) & set(after.kinds.values())):
        means = [fmean(arm.words[key] for key, of in arm.kinds.items() if of == kind) for arm in (before, after)]
        rows.append((kind, means[0], means[1]))
    return rows


def headline(evaluation: Evaluation) -> str:
    """The answer in one sentence."""
    found = evaluation.difference(evaluation.reference, evaluation.subject)
    assert found is not None
    failed = [gate.name.replace("_", " ") for gate in evaluation.gates if gate.state == "fail"]
    open_ = [gate.name.replace("_", " ") for gate in evaluation.gates if gate.state == "undecided"]
    tail = f"; gates failed: {', '.join(failed)}" if failed else "; no gate failed"
    tail += f"; undecided: {', '.join(open_)}" if open_ else ""
    if any(finding.fatal for finding in evaluation.findings):
        return "This comparison proves nothing: an arm was trained on what it was tested on."
    return f"{found.words}{tail}."
