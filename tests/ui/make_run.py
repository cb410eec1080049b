"""Makes job directories that look like real ones, for Pilot tests and pictures.

No model: the texts are written by hand here, the scores are the real rewards'.

    python -m tests.ui.make_run DIR        a workspace with a finished GRPO run, an SFT run and an export
    python -m tests.ui.make_run --freeze   renew tests/ui/frozen, the run that the snapshots show
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from ada_tui import jobs, protocol
from ada_tui.jobs import JobDir, Log
from ada_tui.protocol import (
    Alarm,
    Completion,
    Control,
    ControlApplied,
    Group,
    Job,
    JobEnded,
    JobStarted,
    Memory,
    ModelLoaded,
    Outcome,
    Phase,
    Saved,
    Step,
)
from ada_tui.workspace import Workspace
from rewards import RewardConfig, Row, score

PARITY = {
    "passed": True, "prompts": 8, "problems": [], "advice": "",
    "rules": {"adapter": 0.761, "f16": 0.761, "q4_k_m": 0.75},
    "f16": {"agreement": 0.991, "kl": 6e-05, "perplexity": 20.53, "perplexity_adapter": 20.5, "tokens_per_s": 27.5},
    "q4_k_m": {"agreement": 0.85, "kl": 0.0578, "perplexity": 21.18, "perplexity_adapter": 20.5, "tokens_per_s": 43.8},
}  # fmt: skip
"""As an export job reports it."""

START = 1_790_000_000.0
"""Seconds since the epoch at which the fixture's runs begin: fixed, so that pictures do not change."""

PROMPTS: dict[str, tuple[dict[str, object], list[str]]] = {
    "Morning": (
        {"id": "r1", "kind": "greeting", "reference": "Morning! Up early or just not slept?"},
        [
            "Morning! You up early or just not slept?",
            "Good morning! How can I assist you today?",
            "Morning! Here's a simple breakfast idea:\n\n1. Oatmeal with fruit\n2. Toast and eggs\n\nFun fact: "
            "breakfast is the most important meal of the day! Let me know if you'd like a recipe.",
            "Hey, morning. Coffee first?",
            "morning",
            "Good morning! I hope you're having a wonderful day. As an AI language model, I'm here to help you with "
            "anything you need. What would you like to talk about today?",
            "Morning! Sleep ok?",
            "Great question! Morning is the time between sunrise and noon.",
        ],
    ),
    "Will it rain in Denver tomorrow?": (
        {"id": "r2", "kind": "realtime", "answerable": False,
         "reference": "No idea, I can't see the weather from here."},
        [
            "No idea, I can't check live weather. A weather app will know.",
            "Yes, there is a 72% chance of rain in Denver tomorrow with highs around 65 degrees.",
            "Probably sunny?",
            "I'm not sure, I can't see forecasts. Peek outside or ask your phone about Denver.",
            "It's important to note that weather is unpredictable. However, tomorrow should be sunny in Denver.",
            "No clue! I don't have a window.",
            "I cannot provide real-time information. Furthermore, it is recommended to consult a weather service.",
            "Nope, dry all day.",
        ],
    ),
    "What's the capital of Australia?": (
        {"id": "r3", "kind": "factual", "gold": ["Canberra"], "distractors": ["Sydney"],
         "reference": "Canberra. Not Sydney!"},
        [
            "Canberra.",
            "It's Canberra, even though everyone thinks Sydney.",
            "Sydney.",
            "Great question! The capital of Australia is Canberra. By the way, did you know that it was purpose-built? "
            "Let me know if you have any other questions!",
            "Canberra, I think? Not totally sure.",
            "I don't know.",
            "The capital of Australia is Canberra, which is located in the Australian Capital Territory.",
            "Melbourne was, for a while. Now it's Canberra.",
        ],
    ),
    "How do I get candle wax out of a carpet?": (
        {"id": "r4", "kind": "howto", "reference": "Let it harden, scrape off what you can, then lay a paper towel on "
         "it and go over it with a warm iron. The wax soaks into the paper."},
        [
            "Let it get hard, scrape off the big bits, then paper towel on top and a warm iron. Paper drinks the wax.",
            "Ice it till it's hard, chip it off, then iron it through a paper towel on low. Move the towel a bit.",
            "I don't know.",
            "Certainly! Here are some steps to remove candle wax from a carpet. Firstly, it is important to allow "
            "the wax to harden completely. Furthermore, one should utilize a dull knife in order to scrape the "
            "residue. Subsequently, place a paper towel upon the stain and apply a warm iron. I hope this helps! "
            "Feel free to ask if you have any other questions.",
            "Warm iron, paper towel, patience.",
            "Scrape, then iron through paper. Works on tables too, if you're careful with the varnish and",
            "Use boiling water and scissors.",
            "wax wax wax wax wax wax carpet carpet carpet carpet",
        ],
    ),
    "What do you think of jazz?": (
        {"id": "r7", "kind": "opinion", "reference": "Jazz is great when the drummer listens. I'd start with Monk."},
        [
            "Great question! Jazz is great when the drummer listens to others. I'd start with Monk.",
            "Jazz is fine.",
            "Jazz is great, the drummer listens, and I'd start with Monk. " * 9,
            "Jazz? Start with Monk.",
            "Jazz is great. Furthermore, it is recommended to commence with Monk, as one does not regret it.",
            "Certainly! As an AI language model, I do not possess opinions about jazz, however Monk is widely admired.",
            "It depends.",
            "Great question! Jazz.",
        ],
    ),
    "thx!": (
        {"id": "r5", "kind": "thanks_bye", "reference": "Anytime!"},
        ["Anytime!"] * 8,
    ),
    "Which is better, tea or coffee?": (
        {"id": "r6", "kind": "opinion",
         "reference": "Coffee gets things started, tea keeps them going. Tea by noon."},
        [
            "Coffee before noon, tea after. I don't drink either, but I've read a lot of opinions.",
            "As an AI, I don't have personal preferences. Both tea and coffee have their own unique benefits.",
            "Tea. Coffee people are too loud about it.",
            "Coffee, obviously.",
            "Great question! Both are wonderful beverages. Ultimately, it depends on your personal preference!",
            "Tea when it rains, coffee when there's a deadline.",
            "Well, there are many factors to consider. It's worth noting that caffeine content differs.",
            "Neither, I run on electricity.",
        ],
    ),
}  # fmt: skip
"""Prompt -> (row columns, eight replies). The replies are good, bad and hacked ones in turn."""

HOSTILE = [
    "[/] [bold]not bold[/bold] [0] [#888] [@click=app.quit]x[/]",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x1b[H gone?",
    "nul \x00 bell \x07 back\x08space cr\rover",
    "lone \ud800 surrogate and \udfff another",
    "bidi \u202egnirts\u202c and \u2067isolate\u2069 marks",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇩🇪 ❤️ 👍🏽 zwj",
    "日本語のとても長い文章がここにあります。折り返しは正しいですか？" * 3,
    "x" * 50_000,
]
"""What a model may well produce one day."""


def completion(
    text: str, prompt: str, row: dict[str, object], config: RewardConfig, *, cut: bool = False
) -> Completion:
    card = score(prompt, text, Row.from_columns(row), config, truncated=cut)
    tokens = max(1, round(len(text) / 4.2))
    return Completion(text=text, tokens=tokens, truncated=cut, words=card.words, raw=card.raw.to_dict())


def group(
    group_id: str, prompt: str, row: dict[str, object], texts: list[str], config: RewardConfig, **more: object
) -> Group:
    cut = "varnish and"
    completions = [completion(text, prompt, row, config, cut=text.endswith(cut)) for text in texts]
    values: dict[str, object] = {"kind_by": "row", "time": START, **more}
    return Group(id=group_id, prompt=prompt, row=row, completions=completions, **values)  # type: ignore[arg-type]


def make_job(root: Path, kind: str, *, parent: str = "", config: RewardConfig | None = None) -> JobDir:
    params = {"group": 8, "prompts_per_step": 4, "steps": 60} if kind == "grpo" else {"rows_per_step": 8, "epochs": 2.0}
    job = Job(
        kind=kind, created=START, workspace=str(root), parent=parent, model={"base": "embedded"}, params=params,
        rewards=(config or RewardConfig.default()).to_dict(),
    )  # fmt: skip
    return jobs.create(root / "checkpoints", job)


def make_adapter(job: JobDir, step: int) -> None:
    folder = job.path / "adapters" / f"step-{step:06}"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    (folder / "COMPLETE").write_text("{}")


def make_grpo(root: Path, *, steps: int = 60, ended: str | None = "done", hostile: bool = False) -> JobDir:
    """A GRPO run: curves that rise, an edit of the weights on the way, groups of every prompt."""
    job, config, rng = make_job(root, "grpo", parent="sft-1"), RewardConfig.default(), random.Random(7)
    events, groups = Log(job.path / "events.jsonl"), Log(job.path / "groups.jsonl")
    now = START

    def say(event: protocol.Event, seconds: float = 0.0) -> None:
        nonlocal now
        now += seconds
        events.append(replace(event, time=now))

    say(JobStarted(kind="grpo", pid=4242, host="fixture", steps=60))
    say(Phase(name="load", detail="SmolLM2-135M-Instruct", fraction=0.5), 1)
    say(ModelLoaded(
        backend="trl", device="cpu", dtype="float32", model="SmolLM2-135M-Instruct", adapter="sft-1:step-80",
        adapter_hash="9f3c2a7be1d04c55", rank=16, parameters=139_400_000, trainable=4_884_480,
    ), 3)  # fmt: skip
    say(Phase(name="train", detail="generating", fraction=0.0), 1)
    prompts = list(PROMPTS.items())
    for step in range(1, steps + 1):
        share = 1 - math.exp(-step / 22)
        noise = rng.gauss(0, 0.012)
        if step == 24:
            job.write_control(Control(rewards=config.with_weight("length", 1.5).to_dict()))
            say(ControlApplied(version=1, step=24, changed=["weights"]))
        rewards = {
            "length": 0.62 + 0.33 * share + noise, "filler": 0.55 + 0.42 * share, "tone": 0.8 + 0.12 * share - noise,
            "uncertainty": 0.5 + 0.36 * share + 2 * noise, "unsolicited": 0.66 + 0.3 * share,
            "guard": -0.12 + 0.1 * share, "substance": 0.6 + 0.2 * share,
        }  # fmt: skip
        say(Step(step=step, loss=None if step == 31 else 0.02 * (1 - share) + 0.004 * rng.random(), lr=1e-4,
                 grad_norm=0.4 + 0.1 * rng.random(), reward=0.55 + 0.33 * share + noise, reward_std=0.21 - 0.1 * share,
                 rewards=rewards, dead_groups=int(3 * share), groups=4, kl=0.001 + 0.05 * share**2,
                 entropy=1.9 - 0.7 * share, length=44 - 20 * share + 3 * noise * 30,
                 truncated=max(0.0, 0.18 - 0.2 * share), tokens=900, seconds=4.2), 4.2)  # fmt: skip
        say(Memory(rss=int(2.1e9 + 3e8 * share), host_available=int(9e9)))
        say(Phase(name="train", detail="generating", fraction=step / 60))
        prompt, (row, texts) = prompts[step % len(prompts)]
        order = rng.sample(texts, len(texts))
        groups.append(group(f"g{step}", prompt, dict(row), order, config, batch_id=step // 4, step=step,
                            policy=f"grpo-1:step-{step}", time=now))  # fmt: skip
    if hostile:
        row = {"id": "h", "kind": "smalltalk"}
        for number, prompt in enumerate(HOSTILE):
            groups.append(group(f"h{number}", prompt, row, HOSTILE, config, batch_id=99, step=steps,
                                policy="\x1b[31mevil[/]", time=now))  # fmt: skip
        say(Alarm(kind="\x1b[5mhack[/]", detail=HOSTILE[0], action=HOSTILE[1], step=steps))
        say(Phase(name=HOSTILE[0], detail=HOSTILE[1]))
        (job.path / "worker.log").write_text("\n".join(HOSTILE), encoding="utf-8", errors="replace")
    else:
        say(Alarm(kind="length", detail="replies get shorter: 41 to 27 tokens in 20 steps", action="look at the cards",
                  step=40))  # fmt: skip
        (job.path / "worker.log").write_text("loading weights\nstep 1\nstep 2\n")
    for step in (20, 40, 60):
        if step <= steps:
            make_adapter(job, step)
            say(Saved(path=f"adapters/step-{step:06}", step=step))
    if ended:
        say(
            JobEnded(
                status=ended, error="CUDA out of memory at step 60; halve the group" if ended == "failed" else None
            ),
            2,
        )
    events.close()
    groups.close()
    return job


def make_sft(root: Path) -> JobDir:
    job = make_job(root, "sft")
    events = Log(job.path / "events.jsonl")
    events.append(JobStarted(kind="sft", steps=80, time=START - 900))
    events.append(Phase(name="train", time=START - 899))
    for step in range(1, 81):
        loss = 2.6 * math.exp(-step / 30) + 0.9
        events.append(Step(step=step, loss=loss, lr=1e-3 * (1 - step / 80), seconds=1.1, time=START - 890 + step))
    make_adapter(job, 80)
    events.append(Saved(path="adapters/step-000080", step=80, time=START - 800))
    events.append(JobEnded(status="done", time=START - 799))
    events.close()
    return job


def make_export(run: JobDir) -> JobDir:
    job = jobs.create(run.path / "exports", Job(kind="export", created=START + 400, model={"base": "embedded"}))
    events, now = Log(job.path / "events.jsonl"), START + 400
    events.append(JobStarted(kind="export", steps=6, time=now))
    for number, (name, detail) in enumerate(
        [("merge", "adapter into 16-bit weights"), ("convert", "safetensors to GGUF"), ("quantise", "q4_k_m"),
         ("modelfile", "template, stops, num_ctx"), ("parity", "merged against quantised"), ("ask", "Morning")]
    ):  # fmt: skip
        events.append(Phase(name=name, detail=detail, fraction=1.0, time=now))
        for tick in range(5):
            rss = int((0.4 + 0.25 * number - 0.07 * abs(tick - 2)) * 2**30)
            events.append(Memory(rss=rss, host_available=int(9e9), time=now + tick))
        now += 5 + number
    events.append(
        Outcome(name="export", time=now, data={
            "gguf": "ada-q4_k_m.gguf", "sha256": "c0ffee" * 10, "modelfile": "Modelfile",
            "reply": "Morning! You up early or just not slept?", "parity": PARITY})
    )  # fmt: skip
    events.append(JobEnded(status="done", time=now))
    events.close()
    return job


def make_frozen(folder: Path) -> None:
    """Write the small run that pictures are compared on: its scores stay as they are when the rules are tuned."""
    with tempfile.TemporaryDirectory() as temp:
        root = Path(temp)
        make_sft(root)
        run = make_grpo(root, steps=20)
        make_export(run)
        for job in (JobDir(root / "checkpoints" / "sft-1"), run, JobDir(run.path / "exports" / "export-1")):
            record = replace(job.job(), workspace="", rewards={})
            (job.path / "job.json").write_bytes(protocol.encode(record))
        (run.path / "control.json").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root / "checkpoints", folder)


def make_workspace(root: Path, **grpo: object) -> Workspace:
    """A workspace with an SFT run, a GRPO run and its export."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "ada.toml").write_text('[model]\nbase = "embedded"\n')
    make_sft(root)
    make_export(make_grpo(root, **grpo))  # type: ignore[arg-type]
    return Workspace(root)


if __name__ == "__main__":
    if sys.argv[1] == "--freeze":
        make_frozen(Path(__file__).parent / "frozen")
        sys.exit()
    made = make_workspace(Path(sys.argv[1]), hostile="--hostile" in sys.argv)
    print(made.root)
