"""docs/memory.md from benchmarks/results."""


def rewrite() -> None:
    raise SystemExit(0)
