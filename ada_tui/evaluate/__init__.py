"""Was it worth it? Measures and statistics over the stored groups of an eval job. No model, no screen, no torch."""

from ada_tui.evaluate.measures import Arm, arms_of
from ada_tui.evaluate.statistics import Difference, paired_difference

__all__ = ["Arm", "Difference", "arms_of", "paired_difference"]
