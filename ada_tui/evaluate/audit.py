"""The audit list: a quarter of the filler phrases that training never sees and the comparison counts.

A model that only learned to avoid the listed words ("whack-a-mole") keeps using the withheld ones. Which entries are
withheld depends on each entry's id alone, so that adding a phrase moves no other one. Training (`runs.py`) and
evaluation both come here; `rewards.audit` of ada.toml switches it. Anybody may import it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace

from rewards import RewardConfig
from rewards.filler import matches
from rewards.text import view

QUARTER = 64
"""Entries whose id hashes to a first byte below this (of 256) are withheld."""


def withheld(config: RewardConfig) -> tuple[str, ...]:
    """Ids of the enabled filler entries that belong to the audit list, in the order of the list."""
    return tuple(entry.id for entry in config.fillers if entry.enabled and _is_audit(entry.id))


def training_config(config: RewardConfig) -> RewardConfig:
    """The same without the audit list: its entries are switched off, so that they cost nothing while training."""
    return without(config, withheld(config))


def without(config: RewardConfig, ids: Collection[str]) -> RewardConfig:
    """The same with the entries `ids` switched off."""
    return config.with_fillers(replace(e, enabled=False) if e.id in ids else e for e in config.fillers)


def audit_config(config: RewardConfig, ids: Collection[str]) -> RewardConfig:
    """The same with only the entries `ids` switched on: what the comparison counts."""
    return config.with_fillers(replace(entry, enabled=entry.id in ids) for entry in config.fillers)


def counts_any(prompt: str, reply: str, config: RewardConfig) -> bool:
    """Whether `reply` uses a phrase that is switched on in `config`, in its place and not quoted from the prompt."""
    return bool(matches(view(reply), view(prompt), config))


def _is_audit(entry_id: str) -> bool:
    return hashlib.sha256(entry_id.encode("utf-8", "replace")).digest()[0] < QUARTER
