"""The batch arithmetic is valid by construction, whatever is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ada_tui.batching import largest_divisor, plan

small = st.integers(1, 64)


@given(group=st.integers(2, 64), prompts=small, processes=st.integers(1, 16), at_once=small)
def test_every_plan_satisfies_trl(group: int, prompts: int, processes: int, at_once: int) -> None:
    batch = plan(group, prompts, processes=processes, at_once=at_once)
    generation = batch.per_device * batch.processes * batch.accumulation
    assert generation == batch.prompts * group == batch.completions
    assert generation % group == 0  # TRL: whole groups in a generation batch
    assert batch.completions // processes % group == 0  # ours: whole groups in every process
    assert 1 <= batch.per_device <= at_once
    assert prompts <= batch.prompts < prompts + processes


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_largest_divisor(number: int, most: int) -> None:
    found = largest_divisor(number, most)
    assert number % found == 0
    assert found <= most
    assert not any(number % size == 0 for size in range(found + 1, min(most, number) + 1))


@pytest.mark.parametrize(("group", "prompts", "processes"), [(1, 4, 1), (8, 0, 1), (8, 4, 0)])
def test_impossible_numbers_are_refused(group: int, prompts: int, processes: int) -> None:
    with pytest.raises(ValueError, match="impossible batch"):
        plan(group, prompts, processes=processes)


def test_the_plan_reads_as_a_sum() -> None:
    assert str(plan(8, 4, at_once=16)) == "4 prompts x 8 completions = 32 = 1 process x 16 at a time x 2 passes"
    assert str(plan(4, 3, processes=2)) == "4 prompts x 4 completions = 16 = 2 processes x 8 at a time x 1 passes"
