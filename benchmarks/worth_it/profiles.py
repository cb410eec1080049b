"""The sizes at which the comparison runs, by machine. Everything not named here is the product's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Sections = Mapping[str, Mapping[str, Any]]

COMMON: Sections = {
    "model": {"base": "embedded", "adapter": "", "backend": "trl", "bits": 16},
    "rewards": {"audit": True},
    "lora": {"rank": 16, "alpha": 32},
    "sft": {"epochs": 6.0, "rows_per_step": 8, "learning_rate": 1e-3, "max_length": 512},
    "grpo": {"group": 8, "prompts_per_step": 8, "learning_rate": 1e-4, "beta": 0.02, "save_every": 20},
    "dpo": {"epochs": 2.0, "pairs_per_step": 8, "learning_rate": 5e-5, "beta": 0.1, "max_length": 512},
}

PROFILES: Mapping[str, Sections] = {
    "gpu": {"grpo": {"steps": 100}, "evaluate": {"samples": 8}},
    "cpu": {
        "sft": {"epochs": 3.0},
        "grpo": {"steps": 30, "prompts_per_step": 4, "max_completion": 48, "save_every": 10},
        "evaluate": {"samples": 4, "max_completion": 48},
    },
    "tiny": {
        "sft": {"epochs": 1.0, "steps": 2, "rows_per_step": 4, "max_length": 256},
        "grpo": {"steps": 2, "group": 4, "prompts_per_step": 2, "max_completion": 12, "save_every": 1},
        "dpo": {"steps": 1, "pairs_per_step": 2},
        "evaluate": {"samples": 2, "prompts": 8, "max_completion": 12},
    },
}
"""gpu: what is published. cpu: hours on two cores. tiny: proves the machinery, its figures mean nothing."""

ARMS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("base", "sft", "sft_long", "bon4", "bon8", "bon16", "rft", "dpo", "grpo", "shuffled"),
    "cpu": ("base", "sft", "bon8", "rft", "dpo", "grpo", "shuffled"),
    "tiny": ("base", "sft", "bon4", "grpo", "shuffled"),
}

SEEDED = ("grpo", "shuffled")
"""Arms that are trained from several seeds."""


def sections(profile: str, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings overrides: COMMON, the profile over it, `changes` over both."""
    merged: dict[str, dict[str, Any]] = {}
    for source in (COMMON, PROFILES[profile], changes):
        for section, values in source.items():
            merged.setdefault(section, {}).update(values)
    return merged
