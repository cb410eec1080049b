"""One real run: a weight turned by key while a real worker trains, and what TRL then logs."""

from __future__ import annotations

import pytest

from ada_tui import launch
from ada_tui.protocol import Step
from ada_tui.workspace import Workspace
from rewards import RawScores, RewardConfig
from rewards.combine import totals_many
from tests.conftest import Bench
from tests.ui.conftest import lines, opened, screen, until

pytestmark = pytest.mark.model


async def test_a_weight_turned_by_key_is_what_trl_trains_with_from_the_next_batch_on(bench: Bench) -> None:
    job = bench.job("grpo", steps=5000)
    launch.start(job)
    async with opened(Workspace(bench.root), run="grpo-1") as pilot:
        main = screen(pilot).main
        assert main is not None
        await until(pilot, lambda: main.store.step is not None, seconds=240)
        await pilot.press("w", "4", "down", "0", "down", "right", "right")  # length 4, filler 0, tone 0.7
        await until(pilot, lambda: main.control_state()[0] == "applied", seconds=240)
        applied = main.store.applied
        assert applied is not None
        assert f"applied at step {applied.step}" in lines(pilot)[-2]
        await until(pilot, lambda: main.store.step is not None and main.store.step.step > applied.step, seconds=240)
        await pilot.press("f3", "x", "s")
        await until(pilot, lambda: main.status.name == "stopped", seconds=240)

    wanted = RewardConfig.from_dict(job.control().rewards or {})
    assert (wanted.weights["length"], wanted.weights["filler"], wanted.weights["tone"]) == (4, 0, 0.7)
    stored: dict[int, list[RawScores]] = {}
    for group in job.groups():
        if group.source == "train":
            stored.setdefault(group.step, []).extend(RawScores.from_dict(c.raw) for c in group.completions)
    steps = [event for event in bench.events(job, Step) if event.reward is not None]
    before = [step for step in steps if step.control_version == 0]
    after = [step for step in steps if step.control_version >= applied.version]
    assert before
    assert after
    for step in [*before, *after]:  # between them, on a slow machine, the first keys were sent before the last
        config = wanted if step in after else RewardConfig.from_dict(job.job().rewards)
        totals = totals_many(stored[step.step], config)
        assert step.reward == pytest.approx(sum(totals) / len(totals), abs=1e-5)
    moved = [abs(_mean(stored[s.step], wanted) - _mean(stored[s.step], RewardConfig.default())) for s in after]
    assert max(moved) > 1e-3, "the edit must make a difference, or the test shows nothing"


def _mean(raws: list[RawScores], config: RewardConfig) -> float:
    totals = totals_many(raws, config)
    return sum(totals) / len(totals)


async def test_a_typed_prompt_is_sampled_by_a_real_worker(bench: Bench) -> None:
    (bench.root / "ada.toml").write_text(
        f'[model]\nbase = "{bench.model}"\n[evaluate]\nmax_completion = 12\n', encoding="utf-8"
    )
    async with opened(Workspace(bench.root)) as pilot:
        await pilot.press("s")
        await pilot.pause()
        await pilot.press(*"Hello you", "enter")
        review = screen(pilot).review
        await until(pilot, lambda: len(review.entries()) == 1, seconds=240)
        entry = review.entries()[0]
        assert (entry.prompt, entry.source, len(entry)) == ("Hello you", "sample", 8)
        await until(pilot, lambda: "Hello you" in lines(pilot)[1])
