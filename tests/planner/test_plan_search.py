"""What fits, the most that fits, and advice that keeps its word."""

from __future__ import annotations

import dataclasses

import pytest

from ada_tui.errors import BadInput
from ada_tui.planner import (
    GIB,
    PRESETS,
    Plan,
    Request,
    after_out_of_memory,
    bars,
    card,
    document,
    estimate,
    make_plan,
    most_at_once,
    refusal,
    resolve,
    summary,
)
from ada_tui.planner.machine import SIZES

QWEN = resolve("qwen2.5-3b")
TOO_BIG = Request(shape=QWEN, group=64, completion=1024)


def plan(gib: float = 24, **changes: object) -> Plan:
    return make_plan(Request(**{"shape": QWEN, "group": 16, **changes}), card(gib, 0.6))  # type: ignore[arg-type]


def test_the_answer_to_the_question() -> None:
    """16 completions of 256 tokens with rank 64 in 16 bit fit on 24 GB with room to spare."""
    found = plan()
    assert found.fits
    assert not found.tight
    assert found.max_group is not None
    assert found.max_group >= 64
    assert any("rank 64 need not go down" in advice.text for advice in found.advice)
    assert any("16 bit fits, so keep it" in advice.text for advice in found.advice)


@pytest.mark.parametrize("gib", SIZES)
@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "qwen2.5-3b", "qwen2.5-7b"])
def test_the_largest_is_the_last_that_fits(gib: int, model: str) -> None:
    machine = card(gib, 0.6)
    found = make_plan(Request(shape=PRESETS[model], group=16), machine)

    def fits(**changes: int) -> bool:
        return estimate(dataclasses.replace(found.request, **changes)).peak.total <= machine.usable

    if found.max_group is None:
        assert not fits(group=2)
    else:
        assert fits(group=found.max_group)
        assert found.max_group == 512 or not fits(group=found.max_group + 1)
    if found.max_completion is None:
        assert not fits(completion=1)
    else:
        assert fits(completion=found.max_completion)
        assert not fits(completion=found.max_completion + 1)


def test_advice_starts_with_what_changes_nothing_and_keeps_its_word() -> None:
    found = make_plan(TOO_BIG, card(24, 0.6))
    assert not found.fits
    assert "at a time" in found.advice[0].text
    assert "rank" in found.advice[-1].text
    for advice in found.advice:
        after = make_plan(advice.request, found.machine)
        assert after.fits == advice.fits
        assert after.estimate.peak.total == advice.peak
        assert advice.peak < found.estimate.peak.total


def test_when_no_single_change_is_enough_they_are_heaped_up() -> None:
    found = make_plan(dataclasses.replace(TOO_BIG, shape=PRESETS["qwen2.5-7b"]), card(8, 0.6))
    assert [advice.fits for advice in found.advice].count(True) == 1
    assert found.advice[-1].text.startswith("together: one completion at a time, a 4-bit base")
    assert make_plan(found.advice[-1].request, found.machine).fits


def test_when_nothing_helps_it_says_so() -> None:
    found = make_plan(dataclasses.replace(TOO_BIG, shape=PRESETS["qwen2.5-7b"]), card(4, 0.6))
    assert not any(advice.fits for advice in found.advice)
    assert "take a smaller model or a larger GPU" in found.advice[-1].text
    assert found.max_group is None
    assert document(found)["max_group"] == 0


def test_a_start_that_cannot_fit_is_refused_with_what_to_do() -> None:
    said = refusal(make_plan(TOO_BIG, card(24, 0.6)))
    assert said is not None
    assert "\n" not in said
    assert "at a time" in said
    assert refusal(plan()) is None


def test_four_bit_on_a_card_where_sixteen_fit() -> None:
    assert any("16 bit fits too" in advice.text for advice in plan(bits=4).advice)
    assert not any("16 bit fits too" in advice.text for advice in plan(6, bits=4, group=4).advice)


def test_bars_stack_to_the_peak() -> None:
    found = make_plan(TOO_BIG, card(24, 0.6))
    for bar, phase in zip(bars(found), found.estimate.phases, strict=True):
        assert bar.phase == phase.name
        assert sum(segment.gib for segment in bar.segments) == pytest.approx(bar.gib)
        ends = [segment.start + segment.share for segment in bar.segments]
        assert [segment.start for segment in bar.segments[1:]] == pytest.approx(ends[:-1])
        assert ends[-1] == pytest.approx(phase.total / found.machine.total)
    assert [bar.estimated for bar in bars(found)] == [False, False, False, True, True]


def test_the_document_adds_up() -> None:
    data = document(plan(beta=0.04))
    assert data["fits"] is True
    assert sum(data["parts"].values()) == pytest.approx(data["peak_gib"], abs=0.01)
    assert data["torch_peak_gib"] < data["peak_gib"]
    assert set(data["phases"]) == {"generation", "scoring", "forward_backward", "optimizer", "resume", "merge"}
    assert all(isinstance(text, str) for text in data["advice"])


@pytest.mark.parametrize("gib", [0, -24, float("nan"), float("inf"), 5000])
def test_cards_that_do_not_exist(gib: float) -> None:
    with pytest.raises(BadInput, match="--gpu-gb"):
        card(gib)


@pytest.mark.parametrize("reserve", [-1, 24, 30, float("nan")])
def test_reserves_that_leave_nothing(reserve: float) -> None:
    with pytest.raises(BadInput, match="--reserve-gb"):
        card(24, reserve)


def test_the_reserve_counts() -> None:
    request = Request(shape=QWEN, group=100, completion=256)
    assert make_plan(request, card(24, 0)).left == make_plan(request, card(24, 2)).left + 2 * GIB


def test_the_most_at_a_time_divides_the_step_and_fits() -> None:
    machine = card(24, 0.6)
    request = Request(shape=QWEN, group=64, prompts=2, completion=1024)
    rows = most_at_once(request, machine)
    assert rows is not None
    assert 128 % rows == 0
    assert make_plan(dataclasses.replace(request, at_once=rows), machine).fits
    assert not make_plan(dataclasses.replace(request, at_once=2 * rows), machine).fits
    assert most_at_once(request, card(4, 0.6)) is None


def test_after_running_out_of_memory_something_smaller_is_tried_down_to_the_least() -> None:
    request = Request(shape=QWEN, group=16, completion=256)
    tried = [request]
    while (following := after_out_of_memory(tried[-1])) != tried[-1]:
        assert estimate(following).peak.total <= estimate(tried[-1]).peak.total
        tried.append(following)
    assert (tried[1].group, tried[1].pass_rows, tried[1].completion) == (16, 8, 256)
    assert (tried[-1].group, tried[-1].pass_rows) == (2, 1)


def test_what_a_run_logs_at_its_start() -> None:
    request = Request(shape=QWEN, group=16)
    logged = summary(request, estimate(request))
    assert logged["torch_peak_gib"] == pytest.approx(8.4, abs=0.05)
    assert logged["phase"] == "forward_backward"
