"""`python -m benchmarks.worth_it`: train every arm, compare them, write benchmarks/results/worth_it*.json.

One command on a CUDA machine (--profile gpu) or a CPU (--profile cpu), on the embedded model and the bundled chats.
Interrupted or short of time, the same command goes on: finished arms are kept. `--train-only` with `--arms` does a
part of the training, so that a machine that is lent for minutes at a time is enough. `--set grpo.beta=0` with `--name`
runs a variant. `--docs` runs nothing and rewrites docs/worth-it.md from the stored results.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from ada_tui.errors import BadInput, JobFailed
from ada_tui.evaluate.evaluation import Evaluation
from ada_tui.evaluate.report import write_beside
from ada_tui.protocol import finite
from benchmarks._results import write_result
from benchmarks.worth_it import docs, profiles
from benchmarks.worth_it.run import ROOT, Wanted, compare

PACKAGES = ("ada-tui", "torch", "transformers", "trl", "peft", "scipy")
SHOWN = ("model", "rewards", "lora", "sft", "grpo", "dpo", "evaluate")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worth_it", description=__doc__)
    parser.add_argument(
        "--profile", choices=sorted(profiles.PROFILES), help="default: gpu where there is one, else cpu"
    )
    parser.add_argument("--arms", help="comma-separated; default: all of the profile")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of grpo and shuffled (default 3)")
    parser.add_argument("--side-by-side", type=int, help="jobs at once (default: 6 on a GPU, 1 on a CPU)")
    parser.add_argument("--train-only", action="store_true", help="train, and leave the evaluation to a later call")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")
    parser.add_argument("--name", default="", help="name of a variant; its result is worth_it_NAME.json")
    parser.add_argument("--chats", default="", help="another chat file")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "checkpoints", help="where to work (default: checkpoints/)"
    )
    parser.add_argument("--docs", action="store_true", help="only rewrite docs/worth-it.md from the stored results")
    given = parser.parse_args(argv)
    if given.docs:
        print("docs/worth-it.md " + ("rewritten" if docs.rewrite() else "was up to date"))
        return 0
    profile = given.profile or ("gpu" if shutil.which("nvidia-smi") else "cpu")
    arms = tuple(given.arms.split(",")) if given.arms else profiles.ARMS[profile]
    try:
        wanted = Wanted(
            given.name, profile, arms, given.seeds, given.side_by_side or (6 if profile == "gpu" else 1),
            given.train_only, given.chats, changes(given.set), given.folder.resolve(),
        )  # fmt: skip
        evaluation = compare(wanted)
    except (BadInput, JobFailed) as error:
        print(f"worth_it: {error}", file=sys.stderr)
        return 3 if isinstance(error, JobFailed) else 2
    if evaluation is None:
        return 0
    name = "_".join(filter(None, ("worth_it", "" if profile == "gpu" else profile, given.name)))
    path = write_result(name, result(wanted, evaluation), PACKAGES)
    print(f"{path}\n{write_beside(evaluation)}")
    return 0


def changes(given: list[str]) -> dict[str, dict[str, Any]]:
    """--set SECTION.KEY=VALUE as settings. Raises BadInput.

    >>> changes(["grpo.beta=0", "sft.epochs=2.5", "model.base=embedded"])
    {'grpo': {'beta': 0}, 'sft': {'epochs': 2.5}, 'model': {'base': 'embedded'}}
    """
    out: dict[str, dict[str, Any]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        section, dot, key = name.partition(".")
        if not (equals and dot and section and key):
            raise BadInput(f"--set {item}: write SECTION.KEY=VALUE, e.g. grpo.beta=0")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        out.setdefault(section, {})[key] = value
    return out


def result(wanted: Wanted, evaluation: Evaluation) -> dict[str, Any]:
    """The figures as they are stored: the evaluation, every prompt's mean per arm, and what was asked."""
    settings = wanted.settings(wanted.workspace())
    spec = evaluation.job.job()
    return {
        "profile": wanted.profile,
        "variant": wanted.name,
        "seeds": wanted.seeds,
        "side_by_side": wanted.side_by_side,
        "device": docs.device_of(evaluation.job),
        "settings": {name: getattr(settings, name).model_dump() for name in SHOWN},
        "withheld_phrases": len(spec.params.get("withheld") or ()),
        "evaluation": finite(evaluation.to_dict()),
        "per_prompt": {name: dict(arm.totals) for name, arm in evaluation.arms.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
