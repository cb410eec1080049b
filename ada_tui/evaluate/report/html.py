"""The evaluation as one HTML file: inline style, inline SVG, no script, nothing loaded from anywhere.

Replies are hostile text: made visible, escaped, isolated against bidi marks. A content security policy in the page
forbids everything but its own style.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from ada_tui.evaluate.evaluation import Evaluation, Example, Point
from ada_tui.evaluate.report import plots
from ada_tui.evaluate.report.figures import figures, headline, words_by_kind
from ada_tui.text import visible

STYLE = """
:root { --text: #1c1c1c; --muted: #6b6b6b; --line: #d8d8d8; --back: #fdfdfc; --a: #0072b2; --b: #d55e00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e3; --muted: #9a9a97; --line: #3a3a38; --back: #171716; --a: #56b4e9; --b: #f0894a; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2 { font-weight: 600; line-height: 1.2; } h2 { margin-top: 2.2rem; }
p.answer { font-size: 1.15rem; } .muted { color: var(--muted); } .bad { color: var(--b); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
.sign { font-weight: 700; text-align: center; } .pass { color: var(--a); } .fail { color: var(--b); }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; margin: .4rem 0 1.4rem; }
.pair div { border: 1px solid var(--line); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr; } }
svg { width: 100%; max-width: 740px; height: auto; display: block; margin: 1rem 0; }
svg text { font: 13px system-ui, sans-serif; fill: var(--text); }
svg text.small { font-size: 11px; fill: var(--muted); }
svg line { stroke: var(--muted); stroke-width: 2; } svg line.grid { stroke: var(--line); stroke-width: 1; }
svg line.zero { stroke: var(--text); stroke-width: 1; } svg polyline { fill: none; stroke-width: 2; }
svg .a { stroke: var(--a); } svg .b { stroke: var(--b); } svg .none { stroke: var(--muted); }
svg circle.a, svg rect.a { fill: var(--a); } svg circle.b, svg rect.b { fill: var(--b); }
svg circle.none, svg rect.none { fill: var(--back); }
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(evaluation: Evaluation) -> str:
    """The whole page. The same job directory always gives the same bytes."""
    title = f"Was it worth it? {_safe(evaluation.job.id)}"
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
    )
    return "\n".join([head, f"<h1>{title}</h1>", *_body(evaluation), "</body></html>"]) + "\n"


def _body(evaluation: Evaluation) -> Iterator[str]:
    reference, subject = evaluation.reference, evaluation.subject
    yield f'<p class="answer">{_safe(headline(evaluation))}</p>'
    for finding in evaluation.findings:
        yield f'<p class="{"bad" if finding.fatal else "muted"}">{_safe(finding.words)}</p>'
    yield "<h2>Gates</h2>"
    yield from _gates(evaluation)
    yield f"<h2>Arms on {len(evaluation.arms[subject].totals)} held-out prompts</h2>"
    yield from _table(["", *evaluation.arms], [[figure.name, *figure.cells()] for figure in figures(evaluation)])
    against = [d for d in evaluation.differences if d.a == reference]
    yield f"<h2>Against {_safe(reference)}</h2>"
    yield plots.intervals(
        f"Held-out total against {reference}", [plots.Interval(d.b, d.mean, d.low, d.high) for d in against]
    )
    yield from _list(f"{d.words}; {d.power_words}" for d in evaluation.differences)
    if evaluation.seeds:
        yield "<p>Seed by seed:</p>"
        yield from _list(d.words for d in evaluation.seeds)
    yield f"<h2>Reward by reward, {_safe(subject)} against {_safe(reference)}</h2>"
    rows = [
        plots.Interval(r.reward, r.difference.mean, r.difference.low, r.difference.high) for r in evaluation.rewards
    ]
    yield plots.intervals("Raw score of every reward, difference with 95 % interval", rows)
    yield from _list(reward.words for reward in evaluation.rewards)
    if plot := _plane(evaluation):
        yield "<h2>Reward against distance from SFT</h2>"
        yield plot
        yield '<p class="muted">Best-of-n stands at the KL it costs at most, ln n − (n − 1)/n.</p>'
    yield "<h2>Length by kind</h2>"
    yield plots.before_after("Words per reply", (reference, subject), words_by_kind(evaluation))
    yield from _examples("Got better", evaluation.better, evaluation)
    yield from _examples("Got worse", evaluation.worse, evaluation)


def _gates(evaluation: Evaluation) -> Iterator[str]:
    yield '<div class="wide"><table><tr><th></th><th class="text">gate</th><th class="text">what was seen</th></tr>'
    for gate in evaluation.gates:
        name = f"{gate.name.replace('_', ' ')}: {gate.state}"
        yield (
            f'<tr><td class="sign {gate.state}">{gate.sign}</td>'
            f'<td class="text">{_safe(name)}</td><td class="text">{_safe(gate.words)}</td></tr>'
        )
    yield "</table></div>"


def _plane(evaluation: Evaluation) -> str:
    """Reward over sqrt(KL): the subject's checkpoints as one line, best-of-n as another, other arms as marks."""
    own = [p for p in evaluation.path if p.name.partition("@")[0] == evaluation.subject]
    others = [p for p in evaluation.path if p not in own]
    if not evaluation.path:
        return ""
    series = [
        plots.Series("a", _points(sorted(own, key=lambda p: (p.kl, p.name)))),
        plots.Series(
            "b", [(x, y, "" if not i else name) for i, (x, y, name) in enumerate(_points(evaluation.ceiling))]
        ),
        plots.Series("none", _points(others)),
    ]
    return plots.plane(
        "Reward against distance from SFT", "√KL from SFT (√nats per reply)", "held-out total",
        [line for line in series if line.points],
    )  # fmt: skip


def _points(points: Sequence[Point]) -> list[tuple[float, float, str]]:
    return [(math.sqrt(max(0.0, p.kl)), p.total, p.name) for p in points]


def _examples(title: str, examples: Sequence[Example], evaluation: Evaluation) -> Iterator[str]:
    if not examples:
        return
    yield f'<h2>{title}</h2><p class="muted">A typical reply of each arm: the sample nearest to its mean.</p>'
    for example in examples:
        yield f"<p><strong><bdi>{_safe(example.prompt)}</bdi></strong> {_muted(example.kind)}</p>"
        before = _muted(f"{evaluation.reference} {example.before_total:.2f}")
        after = _muted(f"{evaluation.subject} {example.after_total:.2f}")
        yield (
            f'<div class="pair"><div>{before}\n<bdi>{_safe(example.before, newlines=True)}</bdi></div>'
            f"<div>{after}\n<bdi>{_safe(example.after, newlines=True)}</bdi></div></div>"
        )


def _muted(text: str) -> str:
    return f'<span class="muted">{_safe(text)}</span>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield '<div class="wide"><table><tr>' + "".join(f"<th>{_safe(cell)}</th>" for cell in header) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>"
    yield "</table></div>"


def _list(lines: Iterator[str]) -> Iterator[str]:
    yield "<ul>"
    yield from (f"<li>{_safe(line)}</li>" for line in lines)
    yield "</ul>"


def _safe(text: str, *, newlines: bool = False) -> str:
    return escape(visible(text, newlines="\n") if newlines else visible(text))
