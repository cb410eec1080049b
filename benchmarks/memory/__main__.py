"""`python -m benchmarks.memory`: measure the grid on this machine's CUDA device, or rewrite docs/memory.md."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.memory import docs, fit, grid
from benchmarks.memory.grid import Cell


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="only rewrite the tables and the plot of docs/memory.md")
    parser.add_argument("--fit", action="store_true", help="print the planner's constants from half of the results")
    parser.add_argument("--limit-gib", type=float, default=24.0, help="the card to stand in for")
    parser.add_argument("--parallel", type=int, default=1, help="processes at once (the device must hold them all)")
    parser.add_argument("--only", nargs="*", default=[], help="ids of cells, or grid, extra, timed; all when left out")
    parser.add_argument("--seconds", type=float, default=3600, help="start no further cell after this long")
    parser.add_argument("--out", type=Path, help="results file; default benchmarks/results/memory.json")
    parser.add_argument("--logs", type=Path, help="folder for the logs of the measuring processes")
    args = parser.parse_args()
    if args.docs:
        docs.rewrite()
        return 0
    if args.fit:
        fit.fit(docs.read()["cells"])
        return 0
    cells = [cell for cell in grid.all_cells() if not args.only or cell.id in args.only or cell.role in args.only]
    with tempfile.TemporaryDirectory(prefix="ada-memory-") as work:
        run = Run(Path(work), args.limit_gib, args.parallel, time.monotonic() + args.seconds, args.logs or Path(work))
        run.out = args.out or docs.RESULT
        for exclusive, workers in ((False, args.parallel), (True, 1)):
            batches = collections.defaultdict(list)
            for cell in cells:
                if cell.exclusive == exclusive:
                    batches[cell.process].append(cell)
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                list(pool.map(run.batch, sorted(batches.values(), key=lambda batch: batch[0].backend != "unsloth")))
    done = len(run.results)
    print(f"{done} of {len(cells)} cells measured -> {run.out}")
    return 0 if done == len(cells) else 1


class Run:
    """One measuring session: results are written after every cell, so that an interrupted one keeps what it has."""

    def __init__(self, work: Path, limit_gib: float, parallel: int, deadline: float, logs: Path) -> None:
        self.work, self.limit_gib, self.parallel = work, limit_gib, parallel
        self.deadline, self.logs = deadline, logs
        self.out = Path()
        self.results: list[dict[str, object]] = []
        self.lock = threading.Lock()
        self.models: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)
        self.number = 0

    def batch(self, cells: list[Cell]) -> None:
        """Measure cells that share a process, small ones first; one that runs out of memory ends its process."""
        left = sorted(cells, key=lambda cell: (cell.group * cell.completion, cell.group))
        folder = self.model(left[0].model)
        while left and time.monotonic() < self.deadline:
            done = self.process(left, folder)
            if done == 0:
                print(f"{left[0].id}: failed, passed over", file=sys.stderr, flush=True)
                done = 1
            left = left[done:]

    def process(self, cells: list[Cell], folder: Path) -> int:
        """Run one process over `cells`; returns how many of them gave a result."""
        with self.lock:
            self.number += 1
            name = f"{self.number:02d}-{cells[0].backend}-{cells[0].bits}"
        place = self.work / name
        place.mkdir()
        (place / "cells.json").write_text(json.dumps([dataclasses.asdict(cell) for cell in cells]))
        environment = {
            **os.environ,
            "ADA_BENCHMARK_WORK": str(place),
            "UNSLOTH_COMPILE_LOCATION": str(place / "compiled"),
            "TORCHINDUCTOR_COMPILE_THREADS": "4",
        }
        command = [sys.executable, "-m", "benchmarks.memory.measure", "--cells", str(place / "cells.json")]
        command += ["--model", str(folder), "--limit-gib", str(self.limit_gib)]
        done = 0
        with (
            (self.logs / f"{name}.log").open("wb") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                self.keep(cells[done], json.loads(line))
                done += 1
                if time.monotonic() > self.deadline:
                    process.terminate()
        return done

    def keep(self, cell: Cell, result: dict[str, object]) -> None:
        """Add a result and write all of them."""
        from benchmarks.memory.measure import versions

        phases = result["phases"]
        assert isinstance(phases, dict)
        peak = max((phase["allocated"] for phase in phases.values()), default=0) / (1 << 30)
        print(f"{cell.id:50} {peak:6.2f} GiB  oom={result['oom']}", file=sys.stderr, flush=True)
        with self.lock:
            self.results.append({**dataclasses.asdict(cell), **result})
            head = {
                "machine": f"{device_name()} limited to {self.limit_gib:g} GiB",
                "date": datetime.date.today().isoformat(),
                "versions": versions(),
                "processes_at_once": self.parallel,
            }
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(json.dumps({**head, "cells": self.results}, indent=1) + "\n")

    def model(self, name: str) -> Path:
        """The folder of the random-weight model `name`, made once."""
        folder = self.work / "models" / name
        with self.models[name]:
            if not folder.exists():
                command = [sys.executable, "-m", "benchmarks.memory.model", name, str(folder)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return folder


def device_name() -> str:
    import pynvml

    pynvml.nvmlInit()
    name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
    return name if isinstance(name, str) else name.decode()


if __name__ == "__main__":
    sys.exit(main())
