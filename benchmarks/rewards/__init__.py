"""How good, how gameable and how fast the rewards are: `python -m benchmarks.rewards`."""
