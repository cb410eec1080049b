"""The tables of docs/rewards.md, made from benchmarks/results/*.json and from the lists themselves.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; everything else in the file is written by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks._results import read_result
from benchmarks.rewards import speed
from benchmarks.rewards.detectors import meets
from benchmarks.rewards.hacks import FAULTS, MARGIN_FAULT, MARGIN_POLICY
from rewards import KINDS, REWARD_NAMES, RewardConfig
from rewards.combine import weights_for

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rewards.md"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all but the first column right-aligned."""
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join([' --- ', *[' ---: '] * (len(header) - 1)])}|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _figure(name: str, value: float) -> str:
    return _percent(value) if name == "false_positives" else f"{value:.3f}"


def detectors_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, entry in figures.items():
        for figure, target in entry["targets"].items():
            held_out, tuned = entry["held_out"][figure], entry["tuned"][figure]
            sign = {">=": "≥", "<=": "≤"}[target[0]]
            rows.append([
                name, figure.replace("_", " "), f"{sign} {_figure(figure, target[1])}", _figure(figure, held_out),
                _figure(figure, tuned), "yes" if meets(held_out, target) else "**no**",
            ])  # fmt: skip
    return table(["Detector", "Figure", "Target", "Held-out half", "Tuned half", "Met"], rows)


def more_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, entry in figures.items():
        rest = {k: v for k, v in entry["held_out"].items() if k not in entry["targets"]}
        shown = [
            f"{k.replace('_', ' ')} {v:.0f}" if k == "n" else f"{k.replace('_', ' ')} {v:.2f}" for k, v in rest.items()
        ]
        if shown:
            rows.append([name, entry["data"], "; ".join(shown)])
    return table(["Detector", "Set", "Also measured on the held-out half"], rows)


def hacks_table(figures: dict[str, Any]) -> str:
    known, bare = figures["with_reference"], figures["without_reference"]
    rows = []
    for name, mean in known["mean_total"].items():
        needed = "" if name == "good" else f"{MARGIN_FAULT if name in FAULTS else MARGIN_POLICY:.2f}"
        margin = "" if name == "good" else f"{known['smallest_margin'][name]:.2f}"
        rows.append([name, f"{mean:.2f}", margin, needed, f"{bare['mean_total'].get(name, float('nan')):.2f}"])
    return table(
        ["Policy", "Mean total", "Smallest margin of the good reply", "Needed", "Mean total, row without reference"],
        rows,
    )


def first_table(figures: dict[str, Any]) -> str:
    known, bare = figures["with_reference"], figures["without_reference"]
    rows = [[mode, _percent(share), _percent(bare["first"][mode])] for mode, share in known["first"].items()]
    return table(["Aggregation", f"Good reply first ({known['prompts']} groups)", "Row without reference"], rows)


_SPEED_NAMES = {
    "card_1200_ms": "whole card, 1,200 characters (ms)", "card_300_ms": "whole card, 300 characters (ms)",
    "reweight_500x8_ms": "re-weighting 500 groups of 8 (ms)",
    "rematch_4000_s": "re-matching a changed phrase list, 4,000 replies (s)",
    "patterns_140_over_14": "140 phrases against 14 (times)",
    "worst_4000_ms": "slowest text of 4,000 characters found (ms)",
}  # fmt: skip


def speed_table(figures: dict[str, Any]) -> str:
    rows = [
        [_SPEED_NAMES[name], f"≤ {target:g}", f"{figures[name]:.2f}", "yes" if figures[name] <= target else "**no**"]
        for name, target in speed.TARGETS.items()
    ]
    return table(["What", "Target", "Measured", "Met"], rows)


def profile_table(figures: dict[str, Any]) -> str:
    return table(
        ["Where the time goes", "Share"], [[name, f"{100 * share:.0f} %"] for name, share in figures["profile"]]
    )


def fillers_table() -> str:
    config = RewardConfig.default()
    counts = Counter(entry.category for entry in config.fillers)
    hard = Counter(entry.category for entry in config.fillers if entry.weight > 0.5)
    rows = [[category, str(n), str(hard[category])] for category, n in counts.most_common()]
    return table(
        ["Category", "Phrases", "of them hard (0.75 and 1)"],
        [*rows, ["all", str(len(config.fillers)), str(sum(hard.values()))]],
    )


def shares_table() -> str:
    config = RewardConfig.default()
    rows = []
    for kind in KINDS:
        pairs = dict(weights_for(config, kind))
        whole = sum(pairs.values())
        rows.append([kind, *(f"{100 * pairs.get(name, 0) / whole:.0f} %" for name in REWARD_NAMES)])
    return table(["Kind", *REWARD_NAMES], rows)


def bands_table() -> str:
    numbers = RewardConfig.default().parameters
    names = [name[5:-3] for name in numbers if name.startswith("band.") and name.endswith(".lo")]
    rows = [[kind, f"{numbers[f'band.{kind}.lo']:g}", f"{numbers[f'band.{kind}.hi']:g}"] for kind in names]
    return table(["Kind", "Fewest words", "Most words"], rows)


def tables(part: str, figures: dict[str, Any]) -> dict[str, str]:
    """The tables of one measured part by their name in the page."""
    if part == "detectors":
        return {"detectors": detectors_table(figures), "detectors-more": more_table(figures)}
    if part == "hacks":
        return {"hacks": hacks_table(figures), "hacks-first": first_table(figures)}
    return {"speed": speed_table(figures), "profile": profile_table(figures)}


def missed(part: str, figures: dict[str, Any]) -> int:
    """How many targets are missed."""
    if part == "detectors":
        return sum(
            not meets(entry["held_out"][figure], target)
            for entry in figures.values()
            for figure, target in entry["targets"].items()
        )
    if part == "hacks":
        return len(figures["with_reference"]["losses"])
    return sum(figures[name] > target for name, target in speed.TARGETS.items())


def rewrite(page: Path = PAGE) -> bool:
    """Put the stored figures into the page; whether anything changed."""
    made = {"fillers": fillers_table(), "shares": shares_table(), "bands": bands_table()}
    for part in ("detectors", "hacks", "speed"):
        result = read_result(f"rewards_{part}")
        if result is not None:
            made |= tables(part, result["figures"])
    old = page.read_text(encoding="utf-8")

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- table: {name} -->\n{made[name]}\n<!-- end -->" if name in made else match.group(0)

    new = re.sub(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", fill, old, flags=re.DOTALL)
    if new != old:
        page.write_text(new, encoding="utf-8")
    return new != old
