"""How fast chat files are checked, and how the search for near-duplicates grows: `python -m benchmarks.data`.

Makes its own files (a gigabyte by default, in a temporary folder), reads them in one process, and writes
benchmarks/results/data.json and the table in docs/data.md. The rows are plain chats of made-up words drawn with the
frequencies of real text.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from benchmarks._results import write_result

DOCS = Path(__file__).parent.parent / "docs"
WORDS = 60_000
"""Size of the vocabulary; word n is drawn with a frequency of 1/n."""


def make(path: Path, rows: int, seed: int = 1) -> None:
    """A file of `rows` different chats of about a kilobyte, two exchanges each."""
    rng = random.Random(seed)
    syllables = ("ka", "lo", "mi", "ter", "an", "vel", "do", "ris", "un", "pe", "sta", "gor", "ne", "il", "fa", "us")
    words = [
        "".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 4)))) + str(n % 7) * (n % 5 == 0) for n in range(WORDS)
    ]
    weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))
    roles = ("user", "assistant", "user", "assistant")
    sizes = (12, 45, 12, 60)
    with path.open("wb") as file:
        for _ in range(rows):
            pool = rng.choices(words, cum_weights=weights, k=sum(sizes))
            turns, at = [], 0
            for role, size in zip(roles, sizes, strict=True):
                turns.append({"role": role, "content": " ".join(pool[at : at + size]).capitalize() + "."})
                at += size
            file.write(orjson.dumps({"messages": turns}) + b"\n")


def prompts(rows: int, seed: int = 2) -> list[str]:
    """Different prompts of 5 to 20 words, every tenth a copy of an earlier one with a word changed."""
    rng = random.Random(seed)
    words = [f"{rng.choice('bcdfglmnprst')}{rng.choice('aeiou')}{n:x}" for n in range(WORDS)]
    weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))
    texts: list[str] = []
    for index in range(rows):
        if index % 10 == 9:
            copy = rng.choice(texts).split()
            copy[rng.randrange(len(copy))] = rng.choice(words)
            texts.append(" ".join(copy))
        else:
            texts.append(" ".join(rng.choices(words, cum_weights=weights, k=rng.randint(5, 20))))
    return texts


def checked(path: Path) -> dict[str, float]:
    """Check a file in a process of its own: rows per second (wall and processor) and peak memory."""
    code = (
        "import resource, sys, time; from ada_tui.dataset import check\n"
        "wall, cpu = time.perf_counter(), time.process_time()\n"
        "report = check(sys.argv[1:])\n"
        "wall, cpu = time.perf_counter() - wall, time.process_time() - cpu\n"
        "print(report.rows, report.ok, wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    rows, ok, wall, cpu, peak = map(float, done.stdout.split())
    return {
        "rows": rows, "ok": ok, "megabytes": round(path.stat().st_size / 1e6), "seconds": round(wall, 2),
        "rows_per_s": round(rows / wall), "rows_per_cpu_s": round(rows / cpu), "peak_mb": round(peak / 1024),
    }  # fmt: skip


def near(rows: int) -> dict[str, float]:
    """Search `rows` prompts for near-duplicates."""
    from ada_tui.dataset.near import copies

    texts = prompts(rows)
    start, cpu = time.perf_counter(), time.process_time()
    found = len(copies(texts))
    seconds = time.perf_counter() - start
    return {
        "prompts": rows, "planted": rows // 10, "found": found, "seconds": round(seconds, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--near", type=int, nargs="*", default=[12_500, 25_000, 50_000, 100_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.jsonl"
        make(path, options.rows)
        check = checked(path)
    print(f"checked {check['rows']:,.0f} rows ({check['megabytes']} MB) in {check['seconds']} s: "
          f"{check['rows_per_s']:,} rows/s, peak {check['peak_mb']} MB")  # fmt: skip
    searches = []
    for rows in options.near:
        searches.append(near(rows))
        print(f"near-duplicates of {rows:,} prompts: {searches[-1]['seconds']} s, "
              f"{searches[-1]['found']:,} found of {searches[-1]['planted']:,} planted")  # fmt: skip
    own_peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    figures = {"check": check, "near": searches, "peak_mb_near": own_peak}
    write_result("data", figures, ("orjson", "rapidfuzz"))
    document(figures)


def document(figures: dict[str, Any]) -> None:
    """Put the figures into docs/data.md."""
    check = figures["check"]
    lines = [
        "| what | rows | seconds | rows a second | peak memory |",
        "|---|---|---|---|---|",
        f"| check a file of {check['megabytes']} MB | {check['rows']:,.0f} "
        f"| {check['rows'] / check['rows_per_cpu_s']:.0f} | {check['rows_per_cpu_s']:,} | {check['peak_mb']} MB |",
    ]
    for one in figures["near"]:
        speed = f"{one['prompts'] / one['cpu_seconds']:,.0f}"
        lines.append(f"| near-duplicates | {one['prompts']:,} | {one['cpu_seconds']} | {speed} | |")
    page = DOCS / "data.md"
    block = re.compile(r"(<!-- speed: generated -->\n).*?(<!-- end -->)", re.DOTALL)
    text = block.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
