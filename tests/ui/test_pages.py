"""The pages around the review: train, export, help, palette, runs, questions, first start. Keys only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ada_tui.protocol import Alarm, JobEnded, JobStarted, Memory, Phase, Step
from ada_tui.ui.dialogs.choice import Choice
from ada_tui.ui.dialogs.new_run import NewRun
from ada_tui.ui.dialogs.runs import RunList, Runs
from ada_tui.workspace import Workspace
from tests.ui.conftest import SIZES, LiveJob, lines, opened, screen, shown, until
from tests.ui.make_run import HOSTILE, make_job


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_train_shows_facts_curves_and_log(workspace: Workspace, size: tuple[int, int]) -> None:
    async with opened(workspace, size, run="grpo-1") as pilot:
        await pilot.press("f3")
        await until(pilot, lambda: len(screen(pilot).query(".curve")) > 8)
        await until(pilot, lambda: "reward (total)  0.8" in shown(pilot))
        text = shown(pilot)
        assert "status" in text
        assert "SmolLM2" in text
        assert "4 prompts × 8 = 32" in text
        assert "Log" in text
        for _ in range(20):
            await pilot.press("right")
        await until(pilot, lambda: "memory, GiB" in shown(pilot))


async def test_curves_follow_a_live_run(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        await pilot.press("f3")
        live.say(*(Step(step=n, reward=0.5 + n / 100, loss=None if n == 3 else 0.1) for n in range(1, 6)))
        live.say(
            Memory(rss=3 << 30), Alarm(kind="flat", detail="7 of 8 groups are flat", action="raise the temperature")
        )
        await until(pilot, lambda: "reward (total)  0.550" in shown(pilot))
        await until(pilot, lambda: "⚠ flat" in shown(pilot))
        assert "5/60" in lines(pilot)[-2]


async def test_pause_save_and_stop_are_wishes_in_control(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        await pilot.press("f3", "p")
        await until(pilot, lambda: live.dir.control().paused)
        live.say(Phase(name="paused"))
        main = screen(pilot).main
        assert main is not None
        await until(pilot, lambda: main.status.name == "paused")
        await pilot.press("p")
        await until(pilot, lambda: not live.dir.control().paused)
        await pilot.press("c")
        await until(pilot, lambda: live.dir.control().save == 1)
        await pilot.press("x")
        assert isinstance(pilot.app.screen, Choice)
        await pilot.press("escape")
        assert not live.dir.control().stop
        await pilot.press("x", "s")
        await until(pilot, lambda: live.dir.control().stop)


async def test_leaving_a_running_job_asks(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        await pilot.press("q")
        assert isinstance(pilot.app.screen, Choice)
        assert "grpo-1 is running" in shown(pilot)
        await pilot.press("escape")
        assert pilot.app.is_running
        await pilot.press("q", "d")
    assert not live.dir.control().stop


async def test_leaving_can_stop_the_job(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        await pilot.press("q", "s")
    assert live.dir.control().stop


async def test_leaving_without_a_running_job_just_leaves(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("q")
    assert pilot.app.return_code == 0


async def test_a_dead_worker_is_shown_as_dead_with_its_reason(tmp_path: Path) -> None:
    import orjson

    from ada_tui.jobs import Log

    job = make_job(tmp_path, "grpo")
    log = Log(job.path / "events.jsonl")
    log.append(JobStarted(kind="grpo", steps=10))
    log.close()
    (job.path / "worker.lock").write_bytes(orjson.dumps({"pid": os.getpid(), "started": 1.0}))
    (job.path / "worker.log").write_text("Killed by the \x1b[31mkernel[/]")
    async with opened(Workspace(tmp_path), run="grpo-1") as pilot:
        await until(pilot, lambda: "✗ dead" in lines(pilot)[0])
        await pilot.press("f3")
        await until(pilot, lambda: "because" in shown(pilot))
        assert "kernel" in shown(pilot)


async def test_stale_figures_look_stale(live: LiveJob) -> None:
    live.say(Memory(rss=1 << 30, time=1.0))
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        main = screen(pilot).main
        assert main is not None
        main.store.last_event -= 60
        screen(pilot).status.refresh()
        await until(pilot, lambda: "⚠ silent for" in lines(pilot)[-2])


async def test_a_job_that_ends_while_watched(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        assert "▶ running" in lines(pilot)[0]
        live.say(Step(step=9, reward=0.5), JobEnded(status="failed", error="CUDA out of memory; halve the group"))
        await until(pilot, lambda: "✗ failed" in lines(pilot)[0])
        assert "halve the group" in lines(pilot)[-2]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_export_shows_stages_memory_and_the_reply(workspace: Workspace, size: tuple[int, int]) -> None:
    async with opened(workspace, size, run="grpo-1") as pilot:
        await pilot.press("f4")
        await until(pilot, lambda: "quantise" in shown(pilot))
        assert "ada-q4_k_m.gguf" in shown(pilot)
        assert "just not slept" in shown(pilot)


async def test_help_lists_the_keys_of_the_focused_panel_first(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("w", "f1")
        await until(pilot, lambda: "Review: the weights" in lines(pilot)[2])
        assert "still scored and charted" in shown(pilot)
        await pilot.press("f1")
        await until(pilot, lambda: "Prompts" in shown(pilot))


async def test_the_palette_finds_and_runs_an_action(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("f5")
        await pilot.pause()
        await pilot.press(*"Start, watch")
        await until(pilot, lambda: "Start, watch, pause and stop training" in shown(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: screen(pilot).bar.page == "train")


async def test_another_run_is_opened_by_key(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("o")
        assert isinstance(pilot.app.screen, Runs)
        await pilot.pause()
        assert "sft-1" in shown(pilot)
        listed = pilot.app.screen.query_one(RunList)
        while listed.runs[listed.cursor].job.id != "sft-1":
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: screen(pilot).main is not None and screen(pilot).main.id == "sft-1")
        assert "holds no groups" in shown(pilot)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_an_empty_workspace_says_what_to_do(empty: Workspace, size: tuple[int, int]) -> None:
    async with opened(empty, size) as pilot:
        text = shown(pilot)
        assert "Nothing to review yet" in text
        assert "demo" in text
        await pilot.press("f3")
        assert "No run is open" in shown(pilot)
        await pilot.press("p")
        await pilot.press("e")
        await pilot.pause()
        assert "No run is open" in shown(pilot)
        await pilot.press("o")
        await pilot.pause()
        assert "no runs yet" in shown(pilot)


async def test_the_form_shows_the_batch_as_a_sum_and_refuses_nonsense(empty: Workspace) -> None:
    async with opened(empty, (80, 24)) as pilot:
        await pilot.press("f3", "n", "g")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewRun))
        await pilot.pause()
        assert "8 prompts × 8 completions = 64" in shown(pilot)
        assert "there is no complete SFT run" in shown(pilot)
        await pilot.press("down", "end", "backspace", "1")
        await until(pilot, lambda: "greater than or equal to 2" in shown(pilot))
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, NewRun), "a form with a mistake does not start anything"
        await pilot.press("backspace", "4")
        await until(pilot, lambda: "8 prompts × 4 completions = 32" in shown(pilot))
        await pilot.press("escape")
        assert not (empty.root / "checkpoints").exists()


async def test_the_theme_can_be_switched(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("f6")
        assert pilot.app.theme == "ada-light"
        await pilot.pause()
        assert "Prompts 60" in shown(pilot)


async def test_a_run_that_does_not_exist_is_said_in_one_line(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-99[/]") as pilot:
        await until(pilot, lambda: "no run" in shown(pilot))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_hostile_text_never_breaks_a_line(hostile: Workspace, size: tuple[int, int]) -> None:
    async with opened(hostile, size, run="grpo-1") as pilot:
        await until(pilot, lambda: len(screen(pilot).review.entries()) == 3 + len(HOSTILE))
        await pilot.press("c")
        for _ in range(len(HOSTILE)):  # another prompt and another reply each time
            _clean(shown(pilot))
            await pilot.press("enter")
            await pilot.pause()
            _clean(shown(pilot))
            await pilot.press("escape", "right", "n", "right")
        for page in ("f3", "f4", "f1", "o"):
            await pilot.press(page)
            await pilot.pause()
            _clean(shown(pilot))
        await pilot.press("escape")
        screen(pilot).complain(ValueError(HOSTILE[0] + HOSTILE[1]))
        await pilot.pause()
        _clean(shown(pilot))


def _clean(text: str) -> None:
    """No control character, no mark that turns the writing direction, no half of a surrogate pair gets out."""
    bad = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c in "\u202e\u2067\ufeff"]
    assert not bad, next(line for line in text.split("\n") if bad[0] in line)
    text.encode("utf-8")
