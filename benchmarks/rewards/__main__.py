"""`python -m benchmarks.rewards`: measure, print the tables, write benchmarks/results/rewards_*.json.

`--only detectors,hacks,speed` measures some of it; `--docs` measures nothing and rewrites the tables of docs/rewards.md
from the stored results.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks._results import read_result, write_result
from benchmarks.rewards import detectors, docs, hacks, speed
from benchmarks.rewards.labelled import WHY_ABSENT
from rewards import RewardConfig

PARTS = ("detectors", "hacks", "speed")


def measure(part: str, config: RewardConfig, fuzz_seconds: float) -> dict[str, Any] | None:
    """The figures of one part, or None where they cannot be had here."""
    if part == "detectors":
        return detectors.measure(config)
    if part == "hacks":
        return {"with_reference": hacks.measure(config), "without_reference": hacks.measure(config, reference=False)}
    return speed.measure(config, fuzz_seconds)


def main(argv: list[str] | None = None) -> int:
    """0 = every target is met, 1 = one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rewards", description=__doc__)
    parser.add_argument(
        "--docs", action="store_true", help="rewrite the tables of docs/rewards.md from the stored results"
    )
    parser.add_argument("--only", default=",".join(PARTS), help="parts to measure, comma-separated")
    parser.add_argument("--fuzz-seconds", type=float, default=60.0, help="how long to search for the slowest text")
    arguments = parser.parse_args(argv)
    if arguments.docs:
        changed = docs.rewrite()
        print("docs/rewards.md " + ("rewritten" if changed else "was up to date"))
        return 0
    config = RewardConfig.default()
    for part in arguments.only.split(","):
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; known are {', '.join(PARTS)}")
        print(f"measuring {part} ...", file=sys.stderr)
        figures = measure(part, config, arguments.fuzz_seconds)
        if figures is None:
            print(f"{part}: skipped, {WHY_ABSENT}")
            continue
        write_result(f"rewards_{part}", figures)
    missed = 0
    for part in arguments.only.split(","):
        result = read_result(f"rewards_{part}")
        if result is not None:
            print(f"\n## {part} ({result['date']}, {result['machine']['cpu']})\n")
            for table in docs.tables(part, result["figures"]).values():
                print(table + "\n")
            missed += docs.missed(part, result["figures"])
    print(f"{missed} target(s) missed" if missed else "every target is met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
