"""Measurements: `python -m benchmarks.NAME` prints tables and writes benchmarks/results/*.json, which docs/ is made from."""
