"""Picking by key, learning from picks, undo and redo."""

from __future__ import annotations

from ada_tui import picks
from ada_tui.jobs import JobDir
from ada_tui.ui.dialogs.fitted import Fitted
from ada_tui.ui.widgets.cards import Cards
from ada_tui.ui.widgets.prompt_list import PromptList
from ada_tui.workspace import Workspace
from tests.ui.conftest import lines, opened, screen, shown, until
from tests.ui.test_review import go_to


async def test_a_digit_picks_and_is_saved_at_once(workspace: Workspace) -> None:
    job = JobDir(workspace.checkpoints / "grpo-1")
    async with opened(workspace, (200, 60), run="grpo-1") as pilot:
        await go_to(pilot, "jazz")
        await pilot.press("c", "3")
        cards = screen(pilot).query_one("#cards", Cards)
        view = cards.focused_view
        assert view is not None
        entry = screen(pilot).query_one("#prompts", PromptList).entry
        assert entry is not None
        saved = picks.read(job)[entry.id]
        assert (saved.chosen, saved.row_id) == (view.index, "r7")
        assert any("★" in line and "jazz" in line for line in lines(pilot))
        await pilot.press("right", "x")
        rejected = cards.focused_view
        assert rejected is not None
        assert picks.read(job)[entry.id].rejected == rejected.index
        assert "✗" in shown(pilot)
        await pilot.press("i", *"too [/]", "enter")
        await until(pilot, lambda: picks.read(job)[entry.id].comment == "too [/]")
        assert picks.read(job)[entry.id].chosen == view.index
        await pilot.press("t")
        assert picks.read(job)[entry.id].tie
        assert not picks.read(job)[entry.id].decided
        await pilot.press("1", "1")
        assert picks.read(job)[entry.id].chosen == picks.NONE, "the same digit again takes the pick back"
    async with opened(workspace, run="grpo-1") as pilot:
        main = screen(pilot).main
        assert main is not None
        assert entry.id in main.picks


async def test_weights_are_learned_from_picks_and_taken_or_left(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("f")
        await until(pilot, lambda: "Pick some best completions first" in shown(pilot))
        await go_to(pilot, "jazz")
        review, cards = screen(pilot).review, screen(pilot).query_one("#cards", Cards)
        before = dict(review.ranking.config.weights)
        await pilot.press("c")
        for position, view in enumerate(cards._views, 1):
            if view.text.startswith("Great question! Jazz is"):
                await pilot.press(str(position))
                break
        await pilot.press("f")
        await until(pilot, lambda: isinstance(pilot.app.screen, Fitted), seconds=60)
        await pilot.pause()
        assert "Only 1 picks: a guess" in shown(pilot)
        await pilot.press("escape")
        assert dict(review.ranking.config.weights) == before
        await pilot.press("f")
        await until(pilot, lambda: isinstance(pilot.app.screen, Fitted), seconds=60)
        await pilot.press("enter")
        await until(pilot, lambda: dict(review.ranking.config.weights) != before)
        weights = review.ranking.config.weights
        assert weights["filler"] < before["filler"], "the pick goes against the filler rule"
        await pilot.press("u")
        assert dict(review.ranking.config.weights) == before
        await pilot.press("U")
        assert review.ranking.config.weights == weights


async def test_undo_and_redo_over_weights(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        review = screen(pilot).review
        await until(pilot, lambda: len(review.entries()) == 60)
        await pilot.press("w", "3", "4", "down", "0")
        await pilot.press("u")
        assert (review.ranking.config.weights["length"], review.ranking.config.weights["filler"]) == (4.0, 1.0)
        await pilot.press("u")
        assert review.ranking.config.weights["length"] == 3.0
        await pilot.press("U", "U")
        assert (review.ranking.config.weights["length"], review.ranking.config.weights["filler"]) == (4.0, 0.0)
        await pilot.press("U")
        await until(pilot, lambda: "Nothing to redo" in shown(pilot))
