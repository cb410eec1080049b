"""How long scoring takes on one core, where the time goes, and the slowest text a fuzzer finds.

Timings are processor time of one thread, the best of several runs, since the machine may be shared. Used by `python
-m benchmarks.rewards`.
"""

from __future__ import annotations

import cProfile
import pstats
import random
import time
from collections.abc import Callable
from typing import Any

from rewards import RawScores, RewardConfig, Row, score
from rewards.combine import rank, totals_many
from rewards.config import Compiled
from rewards.text import CAP, View, view

TARGETS = {
    "card_1200_ms": 3.0, "card_300_ms": 1.0, "reweight_500x8_ms": 10.0, "rematch_4000_s": 0.3,
    "patterns_140_over_14": 2.0, "worst_4000_ms": 20.0,
}  # fmt: skip

SENTENCES = (
    "Yeah, that's about right, though I'd check the oven first.", "It takes roughly forty minutes, maybe a bit more.",
    "Let the dough rest until it has doubled.", "You can use any flour you have lying around.",
    "I think the trick is patience.",
    "Great question, by the way.", "Salt goes in last, with a splash of water.", "If it's sticky, dust your hands.",
    "Honestly, nobody will notice the shape.", "Don't open the door for the first half hour.",
)  # fmt: skip


def text_of(length: int, seed: int) -> str:
    """A plausible reply of about that many characters."""
    rng = random.Random(seed)
    out: list[str] = []
    while sum(map(len, out)) + len(out) < length:
        out.append(rng.choice(SENTENCES))
    return " ".join(out)[:length]


def best(call: Callable[[], Any], runs: int = 5) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def fresh() -> None:
    """Forget every remembered text, so that work is counted."""
    view.cache_clear()


ROW = Row(kind="howto", reference="Rest the dough until it doubles, then bake it for forty minutes.")
PROMPT = "How do I bake bread?"


def card_ms(length: int, config: RewardConfig) -> float:
    """Milliseconds for one card of a text nobody has seen, the prompt and the reference known as in a group."""
    texts = [text_of(length, seed) for seed in range(40)]
    score(PROMPT, "warm", ROW, config)

    def run() -> None:
        fresh()
        view(PROMPT), view(ROW.reference)
        for text in texts:
            score(PROMPT, text, ROW, config)

    return best(run) / len(texts) * 1000


def reweight_ms() -> float:
    """Milliseconds to recompute totals, advantages and ranks of 500 groups of 8 after a weight changed."""
    rng = random.Random(1)
    groups = [
        [
            RawScores({n: rng.randrange(21) / 20 for n in ("length", "filler", "tone", "uncertainty", "unsolicited")},
                      0.0, False, rng.randrange(21) / 20, "factual") for _ in range(8)
        ] for _ in range(500)
    ]  # fmt: skip
    flat = [raw for group in groups for raw in group]
    base = RewardConfig.default()
    steps = iter(range(1, 1000))

    def run() -> None:
        totals = totals_many(flat, base.with_weight("length", 1 + next(steps) / 10))
        for i in range(0, len(totals), 8):
            rank(totals[i : i + 8])

    return best(run, 9) * 1000


def rematch_s(config: RewardConfig) -> float:
    """Seconds to match a changed phrase list against 4,000 completions that are known otherwise."""
    texts = [text_of(300, seed) for seed in range(4000)]
    views = [View(text) for text in texts]
    for v in views:
        _ = v.plain_tokens, v.joined_tokens
    lists = iter(range(100))

    def run() -> None:
        kept = config.fillers[: len(config.fillers) - 1 - next(lists)]
        compiled = Compiled(kept, (), False)
        for v in views:
            compiled.filler_index.find(v)

    return best(run, 3)


def pattern_growth(config: RewardConfig) -> float:
    """Time to match 140 patterns over that for 14."""
    texts = [text_of(1200, seed) for seed in range(60)]

    def seconds(n: int) -> float:
        index = Compiled(config.fillers[:: len(config.fillers) // n][:n], (), False).filler_index

        def run() -> None:
            for text in texts:
                index.find(View(text))

        return best(run, 5)

    return seconds(140) / seconds(14)


PIECES = (
    "a", "1", " ", "\n", ".", "!", "?", ",", "'",
    '"', "`", "```", "*", "_", "-", "(", ")", "[", "]", "<", "<|", "|>", "http://", "www.",
    "](", "# ", "**", "- ", "1. ", "a.", "a-", "a b ", "\u200b", "\u0301", "\u0430", "😀", "É", "i ", "i don't ",
    "i have no ", "how are ",
    "thank you for ", "would ", "great ", "question ", "it's ", "not ", "very ", "the answer is ", "User: ",
    "word ", "A", "Ab ", "0.", "x" * 30,
    "no way to ", "really ", "see you ", "you ", "if you ", "in ", "the ", "\t", "\r", "\x00", "it is ", "what ",
    "do ", "and ",
)  # fmt: skip


def worst(config: RewardConfig, seconds: float = 20.0, seed: int = 0) -> tuple[float, str]:
    """The slowest text of 4,000 characters that mutation finds: (milliseconds, how it is made)."""
    rng = random.Random(seed)
    kinds = (
        Row(kind="greeting"),
        Row(kind="factual", gold=("Paris",)),
        Row(kind="realtime"),
        Row(kind="howto"),
        Row(user_wrong=True),
    )

    def cost(pattern: tuple[str, ...], runs: int) -> float:
        unit = "".join(pattern) or " "
        text = (unit * (CAP // len(unit) + 1))[:CAP]

        def run() -> None:
            fresh()
            score(PROMPT, text, kinds[len(pattern) % len(kinds)], config)

        return best(run, runs) * 1000

    pool = [(cost((piece,), 1), (piece,)) for piece in PIECES]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pool = sorted(pool, reverse=True)[:12]
        parent = list(rng.choice(pool)[1])
        for _ in range(rng.randint(1, 3)):
            action = rng.random()
            if action < 0.6 or len(parent) < 2:
                parent.insert(rng.randrange(len(parent) + 1), rng.choice(PIECES))
            elif action < 0.8:
                parent.pop(rng.randrange(len(parent)))
            else:
                parent[rng.randrange(len(parent))] = rng.choice(PIECES)
        child = tuple(parent[:12])
        if all(child != pattern for _, pattern in pool):
            pool.append((cost(child, 1), child))
    pool = sorted(((cost(pattern, 3), pattern) for _, pattern in sorted(pool, reverse=True)[:5]), reverse=True)
    return pool[0][0], repr("".join(pool[0][1]))


def profile(config: RewardConfig) -> list[tuple[str, float]]:
    """Share of the time per module of `rewards`, own time, most expensive first."""
    texts = [text_of(1200, seed) for seed in range(60)]
    fresh()
    profiler = cProfile.Profile()
    profiler.enable()
    for text in texts:
        score(PROMPT, text, ROW, config)
    profiler.disable()
    own: dict[str, float] = {}
    whole = 0.0
    for (path, _, name), (_, _, seconds, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        module = (
            path.rsplit("/", 1)[-1].removesuffix(".py")
            if "rewards" in path
            else f"built-in: {name.split(' ')[0].strip('<>')}"
        )
        if module.startswith("built-in") and "re.Pattern" in name:
            module = "regular expressions"
        own[module] = own.get(module, 0.0) + seconds
        whole += seconds
    return sorted(((name, seconds / whole) for name, seconds in own.items()), key=lambda item: -item[1])[:10]


def measure(config: RewardConfig, fuzz_seconds: float = 20.0) -> dict[str, Any]:
    """All figures."""
    slowest, made_of = worst(config, fuzz_seconds)
    return {
        "card_1200_ms": card_ms(1200, config), "card_300_ms": card_ms(300, config), "reweight_500x8_ms": reweight_ms(),
        "rematch_4000_s": rematch_s(config), "patterns_140_over_14": pattern_growth(config), "worst_4000_ms": slowest,
        "worst_text": f"{made_of} repeated", "profile": profile(config),
    }  # fmt: skip
