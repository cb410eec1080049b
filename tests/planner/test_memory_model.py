"""What can be counted is counted right, and more work never needs less memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ada_tui.errors import BadInput
from ada_tui.planner import GIB, PRESETS, Request, estimate, resolve
from ada_tui.planner.memory import MACHINE_PARTS, weight_bytes

QWEN = resolve("qwen2.5-3b")

requests = st.builds(
    Request,
    shape=st.sampled_from(list(PRESETS.values())),
    backend=st.sampled_from(["trl", "unsloth"]),
    bits=st.sampled_from([4, 16]),
    group=st.integers(2, 128),
    prompts=st.integers(1, 8),
    prompt=st.integers(1, 2000),
    completion=st.integers(1, 4000),
    rank=st.integers(1, 256),
    beta=st.sampled_from([0.0, 0.04]),
    at_once=st.sampled_from([0, 1, 8, 64]),
    checkpointing=st.booleans(),
    optimizer_bits=st.sampled_from([8, 32]),
)


def test_counts_of_the_three_billion_model() -> None:
    assert QWEN.parameters == 3_085_938_688
    assert QWEN.kv_bytes_per_token == 36_864
    assert QWEN.lora_parameters(64) == 119_734_272
    assert weight_bytes(QWEN, 16) == 2 * QWEN.parameters
    assert weight_bytes(QWEN, 4) / GIB == pytest.approx(1.913, abs=0.002)  # as loaded by bitsandbytes


@given(requests)
def test_parts_add_up_and_none_is_negative(request: Request) -> None:
    for phase in estimate(request).phases:
        assert all(size >= 0 for size in phase.parts.values())
        assert phase.total == phase.torch + sum(phase.parts.get(part, 0) for part in MACHINE_PARTS)


@given(requests, st.sampled_from(["group", "completion", "prompt", "rank", "prompts"]), st.integers(1, 50))
def test_more_never_needs_less(request: Request, field: str, more: int) -> None:
    # A pass over several groups shares fewer prompts when the groups grow: that one may shrink by a prompt.
    assume(field != "group" or request.pass_rows <= request.group)
    larger = dataclasses.replace(request, **{field: getattr(request, field) + more})
    assert estimate(larger).peak.total >= estimate(request).peak.total


@given(requests)
def test_beta_and_a_larger_optimizer_cost(request: Request) -> None:
    without = estimate(dataclasses.replace(request, beta=0.0, optimizer_bits=8))
    costly = estimate(dataclasses.replace(request, beta=0.04, optimizer_bits=32))
    assert costly.peak.total > without.peak.total
    assert "scoring" not in [phase.name for phase in without.phases]


def test_fewer_at_a_time_leaves_generation_and_shrinks_learning() -> None:
    whole = estimate(Request(shape=QWEN, group=64, completion=512))
    eight = estimate(Request(shape=QWEN, group=64, completion=512, at_once=8))
    assert eight.phase("generation").torch == whole.phase("generation").torch
    assert eight.phase("forward_backward").torch < whole.phase("forward_backward").torch / 1.5


def test_unsloth_loaded_for_short_sequences_keeps_its_checkpoints_on_the_device() -> None:
    short = Request(shape=QWEN, backend="unsloth", group=32, completion=256, max_length=342)
    kept = estimate(short).phase("forward_backward").parts
    moved = estimate(dataclasses.replace(short, max_length=512)).phase("forward_backward").parts
    assert kept["checkpoints"] > GIB
    assert "checkpoints" not in moved


def test_vllm_takes_its_share_and_replaces_generation() -> None:
    found = estimate(Request(shape=QWEN, vllm=0.3), device=24 * GIB)
    assert "generation" not in [phase.name for phase in found.phases]
    assert found.peak.parts["vllm"] == int(0.3 * 24 * GIB)
    assert found.peak.torch < found.peak.total - found.peak.parts["vllm"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"group": 1}, "--group 1: must be from 2"),
        ({"group": 513}, "--group 513: must be from 2 to 512"),
        ({"prompts": 0}, "--prompts-per-step 0"),
        ({"prompt": -1}, "--prompt -1"),
        ({"completion": 10**9}, "--completion 1e+09"),
        ({"rank": 0}, "--rank 0"),
        ({"beta": float("nan")}, "--beta nan"),
        ({"beta": float("inf")}, "--beta inf"),
        ({"at_once": -8}, "--at-once -8"),
        ({"vllm": 1.0}, "--vllm 1"),
        ({"bits": 8}, "--bits 8: must be 4 or 16"),
        ({"backend": "\x1b[31mx"}, "--backend '\\x1b[31mx'"),
        ({"optimizer_bits": 16}, "--optimizer-bits 16"),
        ({"targets": ("q_proj", "lm_head")}, "--targets 'lm_head'"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        Request(**{"shape": QWEN, **change})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
