"""The review page by keys: walking through groups and cards, turning weights, reading why."""

from __future__ import annotations

import pytest

from ada_tui.protocol import ControlApplied
from ada_tui.ui import session
from ada_tui.ui.dialogs.large import Large
from ada_tui.ui.widgets.cards import Cards
from ada_tui.ui.widgets.prompt_list import PromptList
from ada_tui.ui.widgets.weights import WeightsPanel
from ada_tui.workspace import Workspace
from rewards import REWARD_NAMES, RewardConfig
from rewards.combine import totals_many
from tests.ui.conftest import SIZES, LiveJob, lines, opened, screen, shown, until
from tests.ui.make_run import PROMPTS, group


def cards_of(pilot) -> Cards:
    return screen(pilot).query_one("#cards", Cards)


async def go_to(pilot, words: str) -> None:
    """Walk down to the newest group whose prompt has `words`."""
    review = screen(pilot).review
    await until(pilot, lambda: len(review.entries()) == 60)
    place = next(n for n, entry in enumerate(review.entries()) if words in entry.prompt)
    await pilot.press(*["n"] * place)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_groups_and_cards_are_there_at_every_size(workspace: Workspace, size: tuple[int, int]) -> None:
    async with opened(workspace, size, run="grpo-1") as pilot:
        await until(pilot, lambda: cards_of(pilot).focused_view is not None)
        text = shown(pilot)
        assert "Prompts 60" in text
        assert "Morning" in text
        assert "● 1" in text
        assert "uncertainty" in text
        cards = cards_of(pilot)
        assert len(cards._views) == 8
        assert [view.total for view in cards._views] == sorted((v.total for v in cards._views), reverse=True)


async def test_eight_cards_fit_on_a_wide_screen(workspace: Workspace) -> None:
    async with opened(workspace, (200, 60), run="grpo-1") as pilot:
        await until(pilot, lambda: cards_of(pilot).focused_view is not None)
        cards = cards_of(pilot)
        assert all(region.bottom <= cards.size.height for region in cards._regions)


async def test_walking_by_keys(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        prompts = screen(pilot).query_one("#prompts", PromptList)
        await until(pilot, lambda: prompts.count == 60)
        first = prompts.entry
        await pilot.press("n", "n", "p")
        assert prompts.cursor == 1
        assert prompts.entry is not first
        await pilot.press("end")
        assert prompts.cursor == 59
        await pilot.press("home", "enter")
        assert cards_of(pilot).has_focus
        await pilot.press("right", "down")
        assert cards_of(pilot).at > 1
        view = cards_of(pilot).focused_view
        assert view is not None
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Large)
        await pilot.pause()
        assert "Why" in shown(pilot)
        assert f"{view.total:.2f}" in shown(pilot)
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, Large)


async def test_a_key_press_reranks_every_stored_group_at_once(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        review = screen(pilot).review
        await go_to(pilot, "jazz")  # no reply there is perfect: the best one depends on the weights
        before = [view.index for view in cards_of(pilot)._views]
        await pilot.press("w", "9", "down", "0", "down", "0", "down", "0", "down", "0")
        assert {name: review.ranking.config.weights[name] for name in REWARD_NAMES} == {
            "length": 9.0, "filler": 0.0, "tone": 0.0, "uncertainty": 0.0, "unsolicited": 0.0,
        }  # fmt: skip
        await pilot.pause()
        entry = review.query_one("#prompts", PromptList).entry
        assert entry is not None
        expected = totals_many(entry.raws, review.ranking.config)
        views = cards_of(pilot)._views
        assert [view.total for view in views] == sorted(expected, reverse=True)
        assert [view.index for view in views] != before
        assert any(view.moved for view in views)
        weights = screen(pilot).query_one("#weights", WeightsPanel)
        await until(pilot, lambda: weights.summary.complete)
        assert weights.summary.groups == 60
        assert weights.summary.winners_changed > 0
        assert f"◆ {weights.summary.winners_changed} of 60" in shown(pilot)
        await pilot.press("z")
        assert not review.ranking.edited


async def test_fine_coarse_mute_and_restore(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        weights = screen(pilot).query_one("#weights", WeightsPanel)
        await until(pilot, lambda: len(screen(pilot).review.entries()) == 60)
        await pilot.press("w", "w")
        assert weights.name_at == "filler"
        await pilot.press("right", "right", ".", ",", ",", "left")
        assert weights.config.weights["filler"] == pytest.approx(1.09)
        await pilot.press("0")
        assert weights.config.weights["filler"] == 0
        await pilot.press("left")
        assert weights.config.weights["filler"] == 0
        await pilot.press("=")
        assert weights.config.weights["filler"] == 1.0


async def test_the_focused_card_shows_matched_places_and_every_reason(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await go_to(pilot, "Morning")
        await pilot.press("c")
        cards = cards_of(pilot)
        for _ in range(8):
            view = cards.focused_view
            assert view is not None
            if "How can I assist you" in view.text:
                break
            await pilot.press("right")
        await until(pilot, lambda: bool(cards.focused_view and cards.focused_view.spans))
        assert cards.focused_view is not None
        assert any("assist" in span.text.lower() for span in cards.focused_view.spans)
        assert "filler" in "\n".join(lines(pilot)[-12:])


async def test_a_truncated_reply_carries_scissors(workspace: Workspace) -> None:
    async with opened(workspace, (200, 60), run="grpo-1") as pilot:
        await go_to(pilot, "wax")
        assert "✂" in shown(pilot)


async def test_flat_groups_are_marked(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await until(pilot, lambda: len(screen(pilot).review.entries()) == 60)
        assert any("thx!" in line and "=" in line for line in lines(pilot))


async def test_weights_go_to_a_live_run_and_come_back_as_applied(
    live: LiveJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SETTLE", 2.0)  # a busy machine takes longer than 0.3 s for four keys
    root = Workspace(live.dir.path.parents[1])
    async with opened(root, run="grpo-1") as pilot:
        main = screen(pilot).main
        assert main is not None
        prompt, (row, texts) = next(iter(PROMPTS.items()))
        live.give(group("g1", prompt, dict(row), texts, RewardConfig.default(), step=1))
        await until(pilot, lambda: len(main.store.groups) == 1)
        await pilot.press("w", "5", "right", "right")
        assert main.unsent
        assert main.control_state()[0] == "pending"
        assert live.dir.control().version == 0, "keys are collected before anything is written"
        await until(pilot, lambda: live.dir.control().version == 1)
        wanted = live.dir.control().rewards
        assert wanted is not None
        assert RewardConfig.from_dict(wanted).weights["length"] == pytest.approx(5.2)
        await until(pilot, lambda: main.control_state() == ("pending", "pending v1"))
        assert "pending v1" in lines(pilot)[-2]
        live.say(ControlApplied(version=1, step=7, changed=["weights"]))
        await until(pilot, lambda: main.control_state() == ("applied", "applied at step 7"))
        assert "applied at step 7" in lines(pilot)[-2]
        assert not screen(pilot).review.ranking.edited, "what the run uses now is the new reference"


async def test_a_refusal_is_shown_as_one(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        main = screen(pilot).main
        assert main is not None
        await pilot.press("w", "5")
        await until(pilot, lambda: live.dir.control().version == 1)
        live.say(ControlApplied(version=1, step=7, error="live weights need sum_then_normalize"))
        await until(pilot, lambda: "refused" in lines(pilot)[-2])


async def test_groups_of_a_live_run_stream_in_without_moving_the_cursor(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        prompts = screen(pilot).query_one("#prompts", PromptList)
        items = list(PROMPTS.items())
        for number, (prompt, (row, texts)) in enumerate(items[:3]):
            live.give(group(f"g{number}", prompt, dict(row), texts, RewardConfig.default(), step=number))
        await until(pilot, lambda: prompts.count == 3)
        await pilot.press("home", "down")
        entry = prompts.entry
        live.give(group("g9", *_plain(items[3]), RewardConfig.default(), step=9))
        await until(pilot, lambda: prompts.count == 4)
        assert prompts.entry is entry
        assert prompts.cursor == 2


def _plain(item: tuple[str, tuple[dict[str, object], list[str]]]) -> tuple[str, dict[str, object], list[str]]:
    return item[0], dict(item[1][0]), item[1][1]


async def test_a_typed_prompt_goes_to_the_live_run_between_two_steps(live: LiveJob) -> None:
    async with opened(Workspace(live.dir.path.parents[1]), run="grpo-1") as pilot:
        await pilot.press("s")
        await pilot.pause()
        assert "Sample now" in shown(pilot)
        await pilot.press(*"Hey [", "enter")
        await until(pilot, lambda: live.dir.control().probes)
        assert live.dir.control().probes[0].prompt == "Hey ["


async def test_weights_can_be_kept_for_the_workspace(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        await pilot.press("w", "7", "k")
        folder = workspace.root / "data" / "rewards"
        await until(pilot, lambda: (folder / "weights.toml").is_file())
        assert RewardConfig.load(folder).weights["length"] == 7.0


async def test_prompts_are_found_and_sorted_by_key(workspace: Workspace) -> None:
    async with opened(workspace, run="grpo-1") as pilot:
        review, prompts = screen(pilot).review, screen(pilot).query_one("#prompts", PromptList)
        await until(pilot, lambda: prompts.count == 60)
        await pilot.press("/", *"kind:opinion jazz", "enter")
        await until(pilot, lambda: 0 < prompts.count < 60)
        assert f"Prompts {prompts.count}/60" in shown(pilot)
        assert prompts.entry is not None
        assert "jazz" in prompts.entry.prompt
        await pilot.press("/", *" [/] nowhere", "enter")
        await until(pilot, lambda: "No prompt is like that" in shown(pilot))
        await pilot.press("/", *["backspace"] * 60, *"changed", "enter")
        await until(pilot, lambda: prompts.count == 0)
        await pilot.press("w", "9", "down", "0")
        await until(pilot, lambda: prompts.count > 0)
        assert all(review.ranking.winner_changed(entry) for entry in review.listed())
        await pilot.press("/", *["backspace"] * 60, *"fillr<1", "enter")
        await until(pilot, lambda: prompts.count == 60)
        assert "no such score" in shown(pilot)
        await pilot.press("r", "r")
        assert "lowest mean" in lines(pilot)[1]
        means = [review.ranking.now(entry).mean for entry in review.listed()]
        assert means == sorted(means)
