"""The audit list: about a quarter, fixed by the ids, off in training and on in the comparison."""

from __future__ import annotations

import random

import pytest

from ada_tui import runs
from ada_tui.evaluate.audit import audit_config, counts_any, training_config, withheld
from ada_tui.workspace import init
from rewards import FillerEntry, RewardConfig, Row, score

CONFIG = RewardConfig.default()


def test_about_a_quarter_is_withheld() -> None:
    assert 0.15 < len(withheld(CONFIG)) / len([e for e in CONFIG.fillers if e.enabled]) < 0.35


def test_a_new_phrase_or_another_order_moves_no_other_one() -> None:
    fillers = [*CONFIG.fillers, *(FillerEntry.make(f"entirely new phrase {i}") for i in range(40))]
    random.Random(1).shuffle(fillers)
    known = {entry.id for entry in CONFIG.fillers}
    assert set(withheld(CONFIG.with_fillers(fillers))) & known == set(withheld(CONFIG))


def test_training_pays_nothing_for_a_withheld_phrase_and_the_audit_counts_it() -> None:
    ids = withheld(CONFIG)
    entry = next(e for e in CONFIG.fillers if e.id in ids and e.where == "any" and not e.regex and e.weight == 1.0)
    reply = f"Paris, {entry.pattern}."
    in_training, audit = training_config(CONFIG), audit_config(CONFIG, ids)
    assert score("Capital of France?", reply, Row(), CONFIG).raw.rewards["filler"] < 1
    assert score("Capital of France?", reply, Row(), in_training).raw.rewards["filler"] == 1
    assert counts_any("Capital of France?", reply, audit)
    assert not counts_any("Capital of France?", reply, audit_config(CONFIG, ()))
    assert not counts_any(f"Say {entry.pattern}", reply, audit)  # the person's own words are free
    assert withheld(in_training) == ()


def test_a_phrase_that_was_off_already_is_not_on_the_list() -> None:
    off = training_config(CONFIG)
    assert withheld(off) == ()


@pytest.mark.parametrize("audit", [True, False])
def test_the_setting_reaches_the_job(tmp_path, monkeypatch: pytest.MonkeyPatch, audit: bool) -> None:
    """`rewards.audit` decides what the worker gets; the worker process itself is left out here."""
    monkeypatch.setattr("ada_tui.launch.start", lambda job, python="": None)
    workspace = init(tmp_path)
    settings = workspace.settings({"rewards": {"audit": audit}})
    spec = runs.start_grpo(workspace, settings, runs.BASE).job()
    config = RewardConfig.load(workspace.resolve("data/rewards"))
    assert spec.params["withheld"] == (list(withheld(config)) if audit else [])
    trained = RewardConfig.from_dict(spec.rewards)
    assert (trained == training_config(config)) if audit else (trained == config)
