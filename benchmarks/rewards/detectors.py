"""Each detector against labels of people: AUC, precision, recall, false positives, on both halves.

It tunes nothing. Used by `python -m benchmarks.rewards`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.rewards.labelled import Record, auc, halves, precision_recall, read
from rewards import RewardConfig, Row
from rewards.filler import filler_weight
from rewards.guard import guard
from rewards.kinds import decide, unanswerable_score
from rewards.text import view
from rewards.tone import casual_index
from rewards.types import SOCIAL_KINDS
from rewards.uncertainty import hedge_score, refusal_score, stance

Figures = dict[str, float]
Measure = Callable[[list[Record], RewardConfig], Figures]


@dataclass(frozen=True)
class Detector:
    """One row of the table."""

    name: str
    data: str
    key: str
    """Column by which the set is cut in halves."""
    measure: Measure
    targets: dict[str, tuple[str, float]]
    """Figure -> (">=" or "<=", value)."""


def _refusal(records: list[Record], config: RewardConfig) -> Figures:
    def of(label: bool) -> list[float]:
        return [
            refusal_score(view(r["completion"]), config) for r in records if (r["label"] == "2_full_refusal") == label
        ]

    flags = [refusal_score(view(r["completion"]), config) >= 1 for r in records]
    precision, recall, f1 = precision_recall(flags, [r["label"] == "2_full_refusal" for r in records])
    return {"auc": auc(of(True), of(False)), "precision": precision, "recall": recall, "f1": f1}


def _unanswerable(records: list[Record], config: RewardConfig) -> Figures:
    def of(label: bool) -> list[float]:
        return [unanswerable_score(r["question"], config) for r in records if r["answerable"] == label]

    flags = [unanswerable_score(r["question"], config) >= 1 for r in records]
    precision, recall, f1 = precision_recall(flags, [not r["answerable"] for r in records])
    return {"auc": auc(of(False), of(True)), "precision": precision, "recall": recall, "f1": f1}


_SOCIAL_COARSE = {"greeting": "greeting", "goodbye": "thanks_bye", "thanks": "thanks_bye", "ack": "ack"}


def _greeting(records: list[Record], config: RewardConfig) -> Figures:
    def rate(coarse: str, kinds: frozenset[str]) -> float:
        chosen = [r for r in records if r["coarse"] == coarse]
        return sum(decide(r["text"], Row(), config)[0] in kinds for r in chosen) / max(1, len(chosen))

    named = set(_SOCIAL_COARSE)
    turns = [r for r in records if r["coarse"] in named]
    found = sum(decide(r["text"], Row(), config)[0] in SOCIAL_KINDS for r in turns)
    return {
        "recall": found / max(1, len(turns)), "false_positives": rate("task", SOCIAL_KINDS),
        **{f"recall_{c}": rate(c, SOCIAL_KINDS) for c in sorted(named)},
        "smalltalk": rate("smalltalk", SOCIAL_KINDS),
    }  # fmt: skip


def _flattery(records: list[Record], config: RewardConfig) -> Figures:
    scores = [filler_weight(r["user"], r["completion"], Row(), config) for r in records]
    labels = [r["syc"] > 0 for r in records]
    precision, recall, f1 = precision_recall([s >= 0.75 for s in scores], labels)
    positive = [s for s, y in zip(scores, labels, strict=True) if y]
    negative = [s for s, y in zip(scores, labels, strict=True) if not y]
    return {"auc": auc(positive, negative), "precision": precision, "recall": recall, "f1": f1,
            "base_rate": sum(labels) / max(1, len(labels))}  # fmt: skip


def _hedges(records: list[Record], config: RewardConfig) -> Figures:
    scores = [hedge_score(view(r["text"]), config) for r in records]
    labels = [bool(r["uncertain"]) for r in records]
    precision, recall, f1 = precision_recall([s >= 0.5 for s in scores], labels)
    positive = [s for s, y in zip(scores, labels, strict=True) if y]
    negative = [s for s, y in zip(scores, labels, strict=True) if not y]
    return {"f1": f1, "precision": precision, "recall": recall, "auc": auc(positive, negative)}


def _not_knowing(records: list[Record], config: RewardConfig) -> Figures:
    hits = sum(stance(view(r["completion"]), config).early for r in records)
    long = [r for r in records if r["long"]]
    long_hits = sum(stance(view(r["completion"]), config).early for r in long)
    return {
        "false_positives": hits / max(1, len(records)), "n": float(len(records)),
        "false_positives_long_replies": long_hits / max(1, len(long)),
    }  # fmt: skip


def _gate(records: list[Record], config: RewardConfig) -> Figures:
    hits = sum(guard(r["prompt"], r["completion"], Row(kind="complex"), config).gated for r in records)
    return {"false_positives": hits / max(1, len(records)), "n": float(len(records))}


def _tone(records: list[Record], config: RewardConfig) -> Figures:
    casual = [casual_index(r["text"], config) for r in records if r["casual"]]
    formal = [casual_index(r["text"], config) for r in records if not r["casual"]]
    return {"auc": auc(casual, formal), "n": float(len(records))}


DETECTORS = (
    Detector("refusal", "xstest_completions", "prompt", _refusal, {"auc": (">=", 0.90)}),
    Detector("unanswerable question", "selfaware_questions", "question", _unanswerable, {"auc": (">=", 0.75)}),
    Detector("greeting, thanks, bye, ok", "clinc150_smalltalk_vs_task", "text", _greeting,
             {"recall": (">=", 0.85), "false_positives": ("<=", 0.015)}),
    Detector("filler and flattery", "spiralbench_turns", "completion", _flattery,
             {"auc": (">=", 0.65), "precision": (">=", 0.65)}),
    Detector("hedges", "wikiweasel_hedges", "text", _hedges, {"f1": (">=", 0.62)}),
    Detector("says it does not know", "answered", "prompt", _not_knowing, {"false_positives": ("<=", 0.005)}),
    Detector("hard gate on healthy replies", "healthy", "completion", _gate, {"false_positives": ("<=", 0.005)}),
    Detector("casual against formal", "casual_formal", "text", _tone, {"auc": (">=", 0.85)}),
)  # fmt: skip


def records_of(name: str) -> list[Record] | None:
    """A set by name; two are put together from the others."""
    if name == "healthy":
        xstest, spiral, pairs = read("xstest_completions"), read("spiralbench_turns"), read("chatterbot_pairs")
        if xstest is None or spiral is None or pairs is None:
            return None
        turns = [{"prompt": r["user"], "completion": r["completion"]} for r in spiral]
        return [*({"prompt": r["prompt"], "completion": r["completion"]} for r in xstest), *turns]
    if name == "answered":
        xstest, pairs = read("xstest_completions"), read("chatterbot_pairs")
        if xstest is None or pairs is None:
            return None
        complied = [r for r in xstest if r["label"] == "1_full_compliance"]
        answered = {r["reply"]: r for r in pairs if r["category"] in _ANSWERED}
        return [
            *({"prompt": r["prompt"], "completion": r["completion"], "long": True} for r in complied),
            *({"prompt": r["prompt"], "completion": r["reply"], "long": False} for r in answered.values()),
        ]
    if name == "casual_formal":
        spiral, pairs, weasel = read("spiralbench_turns"), read("chatterbot_pairs"), read("wikiweasel_hedges")
        xstest = read("xstest_completions")
        if spiral is None or pairs is None or weasel is None or xstest is None:
            return None
        turns = {r["user"][:400]: "turn" for r in spiral} | {
            r["prompt"]: "chat" for r in pairs if r["category"] in _CHATTY
        }
        plain = {r["completion"][:400] for r in xstest if r["label"] == "1_full_compliance"}
        encyclopaedia = {r["text"] for r in weasel[:600]}
        return [{"text": t, "casual": True} for t in turns] + [
            {"text": t, "casual": False} for t in sorted(plain | encyclopaedia)
        ]
    return read(name)


_ANSWERED = (
    "tech_support",
    "trivia",
    "coding",
    "science",
    "history",
    "literature",
    "computers",
    "food",
    "movies",
    "sports",
    "money",
)
"""Categories of the chat pairs in which a question gets an answer."""

_CHATTY = ("conversations", "greetings", "emotion", "humor", "profile", "botprofile", "gossip", "personality")
"""Categories of the chat pairs that are small talk."""


def measure(config: RewardConfig) -> dict[str, Any] | None:
    """Every detector on both halves, or None where the sets are absent."""
    table: dict[str, Any] = {}
    for detector in DETECTORS:
        records = records_of(detector.data)
        if records is None:
            return None
        tuned, held_out = halves(records, detector.key)
        table[detector.name] = {
            "data": detector.data, "targets": {k: list(v) for k, v in detector.targets.items()},
            "tuned": detector.measure(tuned, config), "held_out": detector.measure(held_out, config),
        }  # fmt: skip
    return table


def meets(figure: float, target: tuple[str, float] | list[Any]) -> bool:
    """Whether a figure reaches its target."""
    return figure >= target[1] if target[0] == ">=" else figure <= target[1]
