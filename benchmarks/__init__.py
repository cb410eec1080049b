"""Measurements: `python -m benchmarks.NAME` prints tables and writes benchmarks/results/*.json for docs/."""
