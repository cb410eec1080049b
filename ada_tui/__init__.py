"""ada-tui: finish a small personal assistant with GRPO and rule-based rewards, from the terminal."""

__version__ = "0.1.0"
