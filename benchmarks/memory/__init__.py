"""What the memory planner is judged by: the true peaks of GRPO steps on one CUDA device.

`python -m benchmarks.memory` measures the grid (needs CUDA, the train and gpu extras, about ten minutes);
`python -m benchmarks.memory --docs` rewrites the tables and the plot of docs/memory.md from what was measured.
"""
