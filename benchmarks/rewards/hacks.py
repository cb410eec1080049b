"""The hack table: does a good reply beat everything that games the rules, on every kind of prompt?

The prompts and good replies are those of the bundled chats (every first turn). Each group is the good reply, every
degenerate policy and two good replies with one fault. Used by `python -m benchmarks.rewards` and by the tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewards import RewardConfig, Row, score_group
from rewards.combine import advantages, advantages_gdpo, gdpo_columns, reward_names
from rewards.kinds import content_words
from rewards.length import band
from rewards.text import view

CHATS = Path(__file__).resolve().parents[2] / "data" / "ada" / "conversations.jsonl"
MARGIN_POLICY = 0.15
MARGIN_FAULT = 0.05

LECTURE = (
    "It is essential to consider this matter with the utmost care. Furthermore, one must ascertain the relevant "
    "circumstances "
    "before any conclusion is reached. Additionally, numerous factors contribute to the outcome, and it is "
    "imperative that each "
    "of them be evaluated in accordance with established principles. Consequently, a comprehensive approach is "
    "recommended."
)
PADDING = (
    " There is more to say about this, of course. People talk about it in all kinds of places and at all kinds "
    "of times. It goes on "
    "and on, from one day to the next, and there is always one more side to look at. Some like it and some do "
    "not, and that is how "
    "it is with most things in life. One could go on about it for a long while, and plenty of people do just "
    "that when they sit "
    "together in the evening and have nothing else to do. And so it goes, week after week, with one small thing "
    "after another."
)


@dataclass(frozen=True)
class Prompt:
    """One prompt with its good reply."""

    text: str
    good: str
    row: Row


def stuffing(prompt: Prompt, config: RewardConfig) -> str:
    """Nothing but the key words of the prompt and the reference."""
    words = [*content_words(view(prompt.text), config), *content_words(view(prompt.good), config)]
    return " ".join(dict.fromkeys(words)) or "morning coffee weather"


def padded(prompt: Prompt, config: RewardConfig) -> str:
    """The good reply with talk about nothing after it, three times as long as it may be."""
    most = band(prompt.text, prompt.good, prompt.row, config)[1]
    text = prompt.good
    while len(view(text).words) <= 3 * most:
        text += PADDING
        if len(text) > 3500:
            break
    return text


POLICIES: dict[str, Callable[[Prompt, RewardConfig], str]] = {
    "empty": lambda p, c: "",
    "always I don't know": lambda p, c: "I don't know.",
    "canned defer": lambda p, c: "Not sure about that one, better ask a bigger model.",
    "hedge spam": lambda p,
    c: "Maybe, perhaps, it could possibly be, I guess it might sort of depend, but I'm not really sure, probably.",
    "generic ok": lambda p, c: "Yeah, that sounds good, let me think about it.",
    "echo": lambda p, c: p.text,
    "gibberish": lambda p, c: "asdkj qwrtp zxcvb lkjhg mnbvq sdfgh wrtpl kjhgf",
    "other language": lambda p, c: "Hola, no puedo decir mucho sobre esto, pero para mi todo está muy bien hoy.",
    "other script": lambda p, c: "Привет, я думаю, что всё будет хорошо, друг мой.",
    "emoji spam": lambda p, c: "Yay 🎉🎉 so fun 😀😀😀 love it 🔥🔥✨",
    "slang spam": lambda p, c: "yo bro lol ngl fr fr no cap bruh that's lit af lowkey dope tbh",
    "padding": padded,
    "keyword stuffing": stuffing,
    "said twice": lambda p, c: f"{p.good} {p.good}",
    "one word": lambda p, c: "Yeah.",
    "formal lecture": lambda p, c: LECTURE,
    "flattery": lambda p, c: "What a great question! You're absolutely right to ask, and that's so insightful of you.",
    "only a closing offer": lambda p, c: "I'm here to help! Let me know if you need anything else.",
}  # fmt: skip

FAULTS: dict[str, Callable[[Prompt, RewardConfig], str]] = {
    "flattery opener": lambda p, c: f"Great question! {p.good}",
    "closing offer": lambda p, c: f"{p.good} Let me know if you need anything else!",
}


def prompts(path: Path = CHATS, *, reference: bool = True) -> Iterator[Prompt]:
    """Every first turn of the bundled chats; without `reference` the row knows nothing of the curated reply."""
    for line in path.read_text(encoding="utf-8").splitlines():
        chat = json.loads(line)
        turns = chat["conversations"]
        if len(turns) != 2:
            continue
        columns = {k: v for k, v in chat.items() if k != "conversations"}
        row = Row.from_columns(columns)
        good = turns[1]["value"]
        yield Prompt(turns[0]["value"], good, replace(row, reference=good) if reference else row)


@dataclass
class Loss:
    """A group in which something came too close to the good reply."""

    kind: str
    prompt: str
    policy: str
    margin: float
    what: str


def judge(prompt: Prompt, config: RewardConfig) -> tuple[dict[str, float], dict[str, bool]]:
    """(total per policy, "good" included; whether the good reply has the highest advantage, per aggregation mode)."""
    texts = {"good": prompt.good}
    lo = band(prompt.text, "Yeah.", prompt.row, config)[0]
    for name, make in {**POLICIES, **FAULTS}.items():
        if name == "one word" and lo <= 1:
            continue
        if name == "always I don't know" and prompt.good.strip() == "I don't know.":
            continue
        text = make(prompt, config)
        if name == "keyword stuffing" and len(view(text).words) < 5:
            continue
        texts[name] = text
    cards = score_group(prompt.text, list(texts.values()), prompt.row, config).cards
    totals = {name: card.total for name, card in zip(texts, cards, strict=True)}
    names = reward_names(config)
    weights = [*(config.weights.get(n, 0.0) for n in names), config.weights.get("guard", 1.0)]
    columns = [gdpo_columns(card.raw, config, names) for card in cards]
    modes = {f"sum, {scale}": advantages([list(totals.values())], scale)[0] for scale in ("batch", "group", "none")}
    modes["normalize, then sum"] = advantages_gdpo([columns], weights)[0]
    return totals, {mode: values[0] >= max(values) and values.count(max(values)) == 1 for mode, values in modes.items()}


def measure(config: RewardConfig, *, reference: bool = True, per_kind: int = 1000) -> dict[str, Any]:
    """Mean total per policy, the smallest margin, and every group in which the good reply does not win."""
    sums: dict[str, list[float]] = {}
    kinds: dict[str, int] = {}
    margins: dict[str, float] = {}
    losses: list[Loss] = []
    first: dict[str, int] = {}
    for prompt in prompts(reference=reference):
        kind = prompt.row.kind or "factual"
        if kinds.get(kind, 0) >= per_kind:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        totals, wins = judge(prompt, config)
        for name, value in totals.items():
            sums.setdefault(name, []).append(value)
            if name == "good":
                continue
            margin = totals["good"] - value
            margins[name] = min(margins.get(name, 9.0), margin)
            needed = MARGIN_FAULT if name in FAULTS else MARGIN_POLICY
            if margin < needed - 1e-9:
                losses.append(Loss(kind, prompt.text, name, round(margin, 3), f"margin below {needed}"))
        for mode, won in wins.items():
            first[mode] = first.get(mode, 0) + won
            if not won:
                losses.append(Loss(kind, prompt.text, mode, 0.0, "the good reply is not first"))
    n = sum(kinds.values())
    return {
        "prompts": n, "kinds": kinds, "first": {mode: count / n for mode, count in first.items()},
        "mean_total": {name: sum(v) / len(v) for name, v in sums.items()}, "smallest_margin": margins,
        "losses": [vars(loss) for loss in losses],
    }  # fmt: skip
