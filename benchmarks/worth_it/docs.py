"""docs/worth-it.md from the stored results: no figure in it is typed by hand, nothing is said that was not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from ada_tui.evaluate.arms import ARMS
from ada_tui.evaluate.candidates import REPLIES
from ada_tui.evaluate.report.figures import SUMMARY
from ada_tui.evaluate.report.markdown import code, table
from ada_tui.jobs import JobDir
from ada_tui.protocol import ModelLoaded
from benchmarks._results import RESULTS, read_result

PAGE = Path(__file__).resolve().parents[2] / "docs" / "worth-it.md"
COMMAND = "python -m benchmarks.worth_it --profile gpu"

TEMPLATE = Path(__file__).parent / "page.md"
"""The page around the figures."""


def page() -> str:
    """The whole page."""
    variants = [(path.stem, found) for path in sorted(RESULTS.glob("worth_it_*.json")) if (found := _shown(path.stem))]
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        answer="\n".join(_answer(read_result("worth_it"))),
        arms="\n".join(table(["arm", "what it is"], [[f"`{name}`", what] for name, what in ARMS.items()])),
        candidates=REPLIES,
        variants="\n".join(_variants(variants)) if variants else "",
    )
    return text.rstrip() + "\n"


def _shown(name: str) -> dict[str, Any] | None:
    """A variant's result; None for the tiny profile, which proves the machinery and nothing else."""
    result = read_result(name)
    return result if result and result["figures"]["profile"] != "tiny" else None


def rewrite() -> bool:
    """Write the page; False when it was current."""
    text = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return False
    PAGE.write_text(text, encoding="utf-8")
    return True


def device_of(job: JobDir) -> str:
    """The device an eval job ran on, in words."""
    loaded = next((event for event in job.events() if isinstance(event, ModelLoaded)), None)
    return f"{loaded.device}, {loaded.dtype}" if loaded else "unknown"


def _answer(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        yield "**Not answered yet for the bundled chats.** The run that would answer it has not been made:"
        yield f"\n```\n{COMMAND}\n```\n"
        yield "It trains every arm below on the embedded model and writes benchmarks/results/worth_it.json, from which"
        yield "this page is made. Until then the repository makes no claim."
        return
    figures, found = result["figures"], result["figures"]["evaluation"]
    yield f"**{headline(found)}**\n"
    yield (
        f"{result['date']}, {figures['device']}; {figures['seeds']} seeds; "
        f"{figures['withheld_phrases']} phrases withheld; GRPO: {_settings(figures['settings']['grpo'])}. "
        f"Minutes are wall time, up to {figures['side_by_side']} jobs side by side.\n"
    )
    for finding in found["findings"]:
        yield f"- {'**INVALID** ' if finding['fatal'] else ''}{finding['words']}"
    yield from _arms(found)
    yield from ("\nDifferences on the held-out total:\n", *(f"- {d['words']}" for d in found["differences"]))
    if found["seeds"]:
        yield from ("\nSeed by seed:\n", *(f"- {d['words']}" for d in found["seeds"]))
    yield from ("\nReward by reward, with Holm's correction:\n", *(f"- {r['words']}" for r in found["rewards"]))
    yield "\nGates:\n"
    gates = [[g["sign"], name.replace("_", " "), g["state"], g["words"]] for name, g in found["gates"].items()]
    yield from table(["", "gate", "answer", "what was seen"], gates)
    yield from _plane(found)
    for title, key in (("Got better", "better"), ("Got worse", "worse")):
        yield from _examples(title, found[key], found)


def headline(found: Mapping[str, Any]) -> str:
    """The answer as one or two sentences, from the stored differences, gates and findings alone."""
    if any(finding["fatal"] for finding in found["findings"]):
        return "This comparison proves nothing: an arm was trained on what it was tested on."
    pair = (found["reference"], found["subject"])
    words = next(d["words"] for d in found["differences"] if (d["a"], d["b"]) == pair)
    states = {state: [n.replace("_", " ") for n, g in found["gates"].items() if g["state"] == state] for state in
              ("fail", "undecided")}  # fmt: skip
    parts = [words[:1].upper() + words[1:]]
    parts.append(f"Gates failed: {', '.join(states['fail'])}" if states["fail"] else "No gate failed")
    parts += [f"Undecided: {', '.join(states['undecided'])}"] if states["undecided"] else []
    return ". ".join(parts) + "."


def _settings(values: Mapping[str, Any]) -> str:
    shown = ("steps", "group", "prompts_per_step", "learning_rate", "beta", "temperature")
    return ", ".join(f"{name} {values[name]:g}" for name in shown)


def _arms(found: Mapping[str, Any]) -> Iterator[str]:
    arms = found["arms"]
    first = next(iter(arms.values()))
    yield f"\nOn {first['prompts']} held-out prompts:\n"
    rows = [["total", *(f"{arm['total']:.3f}" for arm in arms.values())]]
    for name in arms[found["subject"]]["rewards"]:
        rows.append([name, *(f"{arm['rewards'][name]:.3f}" for arm in arms.values())])
    for shown, key, form in SUMMARY:
        values = [arm.get(key) for arm in arms.values()]
        if any(value is not None for value in values):
            rows.append([shown, *("-" if value is None else form(value) for value in values)])
    yield from table(["held out", *arms], rows)


def _plane(found: Mapping[str, Any]) -> Iterator[str]:
    points = [*found["path"], *({**p, "name": f"{p['name']} (bound)"} for p in found["ceiling"][1:])]
    if points:
        yield "\nReward against distance from SFT (KL in nats per reply; best-of-n: the most that selection costs):\n"
        rows = [[p["name"], f"{p['kl']:.2f}", f"{p['total']:.3f}"] for p in sorted(points, key=lambda p: p["kl"])]
        yield from table(["policy", "KL", "held-out total"], rows)


def _examples(title: str, examples: list[Mapping[str, Any]], found: Mapping[str, Any]) -> Iterator[str]:
    if examples:
        yield f"\n{title} (of each arm the sample nearest to its mean on that prompt):\n"
        for e in examples:
            yield f"- {code(e['prompt'])} ({e['kind']})"
            yield f"  - {found['reference']} {e['before_total']:.2f}: {code(e['before'])}"
            yield f"  - {found['subject']} {e['after_total']:.2f}: {code(e['after'])}"


def _variants(shown: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    yield "## Variants that were tried\n"
    rows = []
    for name, result in shown:
        figures = result["figures"]
        variant = name.removeprefix("worth_it_")
        rows.append([variant, _settings(figures["settings"]["grpo"]), headline(figures["evaluation"])])
    yield from table(["variant", "GRPO", "answer"], rows)
