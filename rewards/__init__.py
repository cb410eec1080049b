"""Rewards for a persona: plain-Python rules that score a reply and say why. No model, no network, no state.

This is the public surface; any TRL script may import it. Nothing of the app is reachable from here.

>>> from rewards import RewardConfig, Row, score
>>> score("Morning", "Great question! How can I assist you today?", Row(), RewardConfig.default()).raw.rewards["filler"]
0.15
"""

from rewards.card import Fault, GroupScore, score, score_group
from rewards.config import ConfigError, FillerEntry, RewardConfig
from rewards.trl import trl_reward_functions
from rewards.types import KINDS, REWARD_NAMES, Card, RawScores, Result, Row, Span

__all__ = [
    "KINDS", "REWARD_NAMES", "Card", "ConfigError", "Fault", "FillerEntry", "GroupScore", "RawScores", "Result",
    "RewardConfig", "Row", "Span", "score", "score_group", "trl_reward_functions",
]  # fmt: skip
