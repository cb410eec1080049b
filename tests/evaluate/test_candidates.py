"""What rejection SFT and DPO learn from: best and worst by total, never a gated reply, never a tie."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ada_tui.dataset import load_rows
from ada_tui.errors import BadInput
from ada_tui.evaluate.candidates import write_best, write_pairs
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job
from tests.evaluate import stored

FLAT, SPREAD, GATED = stored.rows(3, first=100, split="train")


@pytest.fixture
def sampled(tmp_path: Path) -> JobDir:
    groups = [
        stored.group(FLAT, [FLAT.row.reference] * 4, "sft", "sample"),
        stored.group(SPREAD, [stored.HACK, SPREAD.row.reference, "It is Lyon.", stored.HACK], "sft", "sample"),
        stored.group(GATED, ["", "", ""], "sft", "sample"),
    ]
    return stored.job(tmp_path, Job(kind="sample"), groups=groups)


def test_the_best_reply_becomes_the_reference(sampled: JobDir) -> None:
    rows = load_rows(write_best(sampled, stored.CONFIG))
    assert {row.id: row.row.reference for row in rows} == {
        FLAT.id: FLAT.row.reference, SPREAD.id: SPREAD.row.reference,
    }  # fmt: skip
    assert rows[1].row.gold == SPREAD.row.gold


def test_pairs_have_a_gap(sampled: JobDir) -> None:
    lines = write_pairs(sampled, stored.CONFIG).read_bytes().splitlines()
    pairs = [orjson.loads(line) for line in lines]
    assert [(p["id"], p["chosen"]) for p in pairs] == [(SPREAD.id, SPREAD.row.reference)]
    assert pairs[0]["rejected"] in (stored.HACK, "It is Lyon.")


def test_nothing_usable_is_said(tmp_path: Path) -> None:
    job = stored.job(tmp_path, Job(kind="sample"), groups=[stored.group(GATED, ["", ""], "sft", "sample")])
    with pytest.raises(BadInput, match="no usable reply"):
        write_best(job, stored.CONFIG)
    with pytest.raises(BadInput, match="no group with a difference"):
        write_pairs(job, stored.CONFIG)
