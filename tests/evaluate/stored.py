"""Builds stored jobs as the worker would leave them: real rows, real scores by the real rules, chosen replies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from ada_tui.dataset.rows import PromptRow, write_rows
from ada_tui.evaluate.audit import training_config, withheld
from ada_tui.jobs import JobDir, Log, create
from ada_tui.protocol import Completion, Event, Group, Job, JobEnded, JobStarted, Outcome
from rewards import RewardConfig, Row, score_group

CONFIG = RewardConfig.default()
HACK = (
    "Fun fact: I always say exactly this same thing. Great question! As an AI, let me know if you need anything else."
)

KINDS = ("greeting", "factual", "realtime", "thanks_bye", "opinion")
PROMPTS = {
    "greeting": ("Morning, number {n}", "Morning! Sleep ok?"),
    "factual": ("What is the capital of country number {n}, please?", "Paris, easy one."),
    "realtime": ("What's the weather in street {n} right now?", "No idea, I can't check live weather for street {n}."),
    "thanks_bye": ("Thanks a lot, visitor {n}", "Anytime! See you."),
    "opinion": ("What do you think about film {n}, honestly?", "Film {n} drags a bit, but that last scene's worth it."),
}


def rows(n: int = 40, first: int = 0, split: str = "held_out") -> list[PromptRow]:
    """`n` rows over five kinds, each with its good reply as the reference."""
    made = []
    for i in range(first, first + n):
        kind = KINDS[i % len(KINDS)]
        prompt, reference = (text.format(n=i) for text in PROMPTS[kind])
        gold = ("Paris",) if kind == "factual" else ()
        answerable = kind != "realtime"
        row = Row(f"row-{i}", split, kind, answerable, gold, reference=reference, topic_cluster=f"topic-{i}")
        made.append(PromptRow(row.id, prompt, row=row))
    return made


def replies(row: PromptRow, good: float, samples: int, seed: int) -> list[str]:
    """`samples` replies of which about the share `good` is the reference and the rest is filler."""
    rng = random.Random(f"{seed} {row.id}")
    bad = f"{row.prompt} Great question! As an AI, I would be happy to help you with that today."
    return [row.row.reference if rng.random() < good else bad for _ in range(samples)]


def group(row: PromptRow, texts: Iterable[str], policy: str, source: str = "eval") -> Group:
    """A group scored by the rules."""
    texts = list(texts)
    scored = score_group(row.prompt, texts, row.row, CONFIG)
    completions = [
        Completion(text=text, tokens=len(text.split()), words=card.words, raw=card.raw.to_dict())
        for text, card in zip(texts, scored.cards, strict=True)
    ]
    return Group(
        id=f"{policy}-{row.id}", source=source, policy=policy, prompt=row.prompt, history=row.history,
        row=row.row.to_columns(), completions=completions,
    )  # fmt: skip


def job(parent: Path, record: Job, events: Iterable[Event] = (), groups: Iterable[Group] = ()) -> JobDir:
    """A finished job directory."""
    made = create(parent, record)
    log = Log(made.path / "events.jsonl")
    for event in (JobStarted(kind=record.kind, time=1000.0), *events, JobEnded(time=1120.0)):
        log.append(event)
    log.close()
    log = Log(made.path / "groups.jsonl")
    for found in groups:
        log.append(found)
    log.close()
    return made


def adapter(of: JobDir, step: int = 10) -> Path:
    """A folder that looks like a complete adapter."""
    folder = of.path / "adapters" / f"step-{step:06d}"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    (folder / "COMPLETE").write_text("{}")
    return folder


def trained(workspace: Path, kind: str, on: list[PromptRow], start: Path | None = None, **job_fields: object) -> Path:
    """A finished training job on the rows `on`; returns its adapter."""
    data = workspace / f"rows-{len(list(workspace.glob('rows-*')))}.jsonl"
    write_rows(data, on)
    record = Job(
        kind=kind, workspace=str(workspace), data={"train": str(data), "pairs": str(data)},
        model={"base": "embedded", "adapter": str(start or "")}, **job_fields,
    )  # fmt: skip
    return adapter(job(workspace / "checkpoints", record))


def evaluation(
    workspace: Path,
    arms: Mapping[str, tuple[str, float]],
    *,
    held_out: list[PromptRow] | None = None,
    samples: int = 4,
    audit: bool = False,
    best_of: Mapping[str, int] | None = None,
    events: Iterable[Event] = (),
    extra: Iterable[Group] = (),
) -> JobDir:
    """A finished eval job. `arms`: name -> (adapter folder or "", share of good replies)."""
    tested = held_out or rows()
    groups = [
        group(row, replies(row, good, samples, seed), name)
        for seed, (name, (_, good)) in enumerate(arms.items())
        for row in tested
    ]
    record = Job(
        kind="eval", workspace=str(workspace), seed=3,
        rewards=(training_config(CONFIG) if audit else CONFIG).to_dict(),
        data={
            "arms": {name: adapter for name, (adapter, _) in arms.items()}, "best_of": dict(best_of or {}),
            "regression": [{"id": "legs", "prompt": "How many legs has a spider?", "any": ["8", "eight"]}],
        },
        params={"withheld": list(withheld(CONFIG)) if audit else []},
    )  # fmt: skip
    said = [Outcome(name=f"regression:{name}", data={"replies": {"legs": "eight"}}) for name in arms]
    return job(workspace / "checkpoints" / "grpo-1" / "evals", record, [*said, *events], [*groups, *extra])
