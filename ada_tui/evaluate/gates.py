"""The ship gates: five questions that a model must not fail before it goes on the device. Pass, fail or undecided.

Undecided is an answer of its own: too few prompts or verdicts to tell. Every gate says in words what it saw. Figures
come from `measures` and `statistics`; nothing is read here. Anybody may import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ada_tui.errors import BadInput
from ada_tui.evaluate.measures import AUDIT_PHRASE, FALSE_ABSTENTION, KNOWN_ANSWER, Arm
from ada_tui.evaluate.statistics import Difference, WinRate, paired_difference, win_rate

State = Literal["pass", "fail", "undecided"]
SIGNS: Mapping[str, str] = {"pass": "+", "fail": "-", "undecided": "?"}

FEWEST = 8
"""Prompts below which a share is not judged."""
KNOWN_ANSWER_MARGIN = 0.02
"""Known-answer accuracy may fall by this much (2 points)."""
ABSTENTION_MARGIN = 0.03
"""False abstention may rise by this much (3 points)."""
COMPARABLE = 0.5
"""A shuffled arm that gains this share of what the arm gains is no control any more: something else did it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One question and its answer."""

    name: str
    state: State
    words: str

    @property
    def sign(self) -> str:
        """ "+" pass, "-" fail, "?" undecided."""
        return SIGNS[self.state]


def gates(sft: Arm, arm: Arm, shuffled: Arm | None = None, blind: WinRate | None = None) -> list[Gate]:
    """The five gates for shipping `arm` instead of `sft`.

    Args:
        shuffled: the control that was trained on shuffled rewards, when it was run.
        blind: blind verdicts of `arm` against `sft`, when somebody gave some.
    """
    return [
        _preferred(sft, arm, blind),
        _known_answers(sft, arm),
        _false_abstention(sft, arm),
        _audit_phrases(sft, arm),
        _shuffled_flat(sft, arm, shuffled),
    ]


def _preferred(sft: Arm, arm: Arm, blind: WinRate | None) -> Gate:
    rate = blind or win_rate(sft.name, arm.name, sft.sampled, arm.sampled)
    if rate is None:
        return Gate("preferred", "undecided", f"{arm.name} and {sft.name} share fewer than two prompts")
    state: State = "pass" if rate.low > 0.5 else "fail" if rate.high < 0.5 else "undecided"
    hint = "" if blind else " (no blind verdicts: the rules judge their own pupil)"
    return Gate("preferred", state, rate.words + hint)


def _known_answers(sft: Arm, arm: Arm) -> Gate:
    found = _difference(KNOWN_ANSWER, sft, arm)
    if isinstance(found, str):
        return Gate(KNOWN_ANSWER, "undecided", found)
    state: State = (
        "pass" if found.low >= -KNOWN_ANSWER_MARGIN else "fail" if found.high < -KNOWN_ANSWER_MARGIN else "undecided"
    )
    return Gate(KNOWN_ANSWER, state, f"right answers {_points(found)}; 2 points down are allowed")


def _false_abstention(sft: Arm, arm: Arm) -> Gate:
    found = _difference(FALSE_ABSTENTION, sft, arm)
    if isinstance(found, str):
        return Gate(FALSE_ABSTENTION, "undecided", found)
    state: State = (
        "pass" if found.high <= ABSTENTION_MARGIN else "fail" if found.low > ABSTENTION_MARGIN else "undecided"
    )
    return Gate(FALSE_ABSTENTION, state, f'"don\'t know" on what can be answered {_points(found)}; 3 up are allowed')


def _audit_phrases(sft: Arm, arm: Arm) -> Gate:
    found = _difference(AUDIT_PHRASE, sft, arm)
    if isinstance(found, str):
        return Gate(AUDIT_PHRASE, "undecided", found)
    state: State = "pass" if found.high <= 0 else "fail" if found.low > 0 else "undecided"
    return Gate(AUDIT_PHRASE, state, f"replies with a withheld phrase {_points(found)}; none more are allowed")


def _shuffled_flat(sft: Arm, arm: Arm, shuffled: Arm | None) -> Gate:
    name = "shuffled_flat"
    if shuffled is None:
        return Gate(name, "undecided", "the control with shuffled rewards was not run; add the arm `shuffled`")
    try:
        gain = paired_difference(sft.name, arm.name, sft.totals, arm.totals)
        control = paired_difference(sft.name, shuffled.name, sft.totals, shuffled.totals)
        apart = paired_difference(shuffled.name, arm.name, shuffled.totals, arm.totals)
    except BadInput as error:
        return Gate(name, "undecided", str(error))
    interval = f"[{control.low:+.3f}, {control.high:+.3f}]"
    words = f"shuffled rewards gain {control.mean:+.3f} {interval}, real ones {gain.mean:+.3f}"
    if control.low > 0 and control.mean >= COMPARABLE * gain.mean:
        return Gate(name, "fail", f"{words}: whatever improved it, the rewards did not")
    if gain.mean > 0 and apart.low > 0 and control.mean < COMPARABLE * gain.mean:
        return Gate(name, "pass", words)
    return Gate(name, "undecided", f"{words}: too close to tell")


def _difference(share: str, sft: Arm, arm: Arm) -> Difference | str:
    """The difference of a share, or why there is none to judge."""
    ours, theirs = arm.shares.get(share), sft.shares.get(share)
    if ours is None or theirs is None:
        return _MISSING[share]
    shared = ours.keys() & theirs.keys()
    if len(shared) < FEWEST:
        return f"{len(shared)} prompts are too few to tell; {FEWEST} are the least"
    return paired_difference(sft.name, arm.name, theirs, ours)


_MISSING: Mapping[str, str] = {
    KNOWN_ANSWER: "no held-out row has an accepted answer (column gold)",
    FALSE_ABSTENTION: "no held-out row can be answered",
    AUDIT_PHRASE: "no phrases were withheld from training; set rewards.audit = true before it",
}


def _points(found: Difference) -> str:
    return f"{100 * found.mean:+.1f} points [{100 * found.low:+.1f}, {100 * found.high:+.1f}] on {found.n} prompts"
