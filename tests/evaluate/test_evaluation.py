"""An eval job read from disk: arms, seeds, checkpoints, gates, and the arms that cheat."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ada_tui.errors import BadInput
from ada_tui.evaluate import arms_of
from ada_tui.evaluate.evaluation import Evaluation, read
from ada_tui.evaluate.gates import Gate
from ada_tui.evaluate.honesty import findings, refuse_leaks
from ada_tui.evaluate.ship import doubts
from ada_tui.jobs import JobDir
from ada_tui.protocol import ControlApplied, Job, Outcome
from tests.evaluate import stored

HELD_OUT, TRAIN = stored.rows(40), stored.rows(40, first=100, split="train")


def gate(evaluation: Evaluation, name: str) -> Gate:
    return next(gate for gate in evaluation.gates if gate.name == name)


@pytest.fixture
def sft(tmp_path: Path) -> Path:
    return stored.trained(tmp_path, "sft", TRAIN)


@pytest.fixture
def grpo(tmp_path: Path, sft: Path) -> Path:
    return stored.trained(tmp_path, "grpo", TRAIN, sft, rewards=stored.training_config(stored.CONFIG).to_dict())


def test_a_better_arm_wins_and_a_flat_control_says_why(tmp_path: Path, sft: Path, grpo: Path) -> None:
    found = read(
        stored.evaluation(
            tmp_path,
            {"base": ("", 0.2), "sft": (str(sft), 0.5), "grpo": (str(grpo), 0.95), "shuffled": (str(grpo), 0.5)},
            audit=True,
        )
    )
    assert (found.reference, found.subject) == ("sft", "grpo")
    won = found.difference("sft", "grpo")
    assert won is not None
    assert won.sign == "+"
    assert won.n == 40
    assert {g.name: g.state for g in found.gates} == {
        "preferred": "pass", "known_answer": "pass", "false_abstention": "pass", "audit_phrase": "pass",
        "shuffled_flat": "pass",
    }  # fmt: skip
    assert "the rules judge their own pupil" in gate(found, "preferred").words
    assert any(r.reward == "filler" and r.told_apart for r in found.rewards)
    assert any(r.reward == "guard" and not r.told_apart for r in found.rewards)
    assert found.minutes["grpo"] == pytest.approx((2.0, 4.0))
    assert found.regression["grpo"] == {"legs": 1.0}
    assert len(found.better) == 3
    assert found.findings == []


def test_a_shuffled_arm_that_gains_as_much_fails_its_gate(tmp_path: Path, sft: Path, grpo: Path) -> None:
    arms = {"sft": (str(sft), 0.5), "grpo": (str(grpo), 0.9), "shuffled": (str(grpo), 0.9)}
    flat = gate(read(stored.evaluation(tmp_path, arms)), "shuffled_flat")
    assert flat.state == "fail"
    assert "the rewards did not" in flat.words


def test_a_worse_arm_fails_in_words(tmp_path: Path, sft: Path, grpo: Path) -> None:
    found = read(stored.evaluation(tmp_path, {"sft": (str(sft), 0.95), "grpo": (str(grpo), 0.3)}, audit=True))
    lost = found.difference("sft", "grpo")
    assert lost is not None
    assert lost.words.startswith("grpo is worse than sft")
    states = {g.name: g.state for g in found.gates}
    assert states["preferred"] == states["known_answer"] == "fail"
    assert states["shuffled_flat"] == "undecided"
    assert len(found.worse) == 3


def test_few_prompts_are_undecided_not_a_pass(tmp_path: Path, sft: Path, grpo: Path) -> None:
    arms = {"sft": (str(sft), 0.5), "grpo": (str(grpo), 0.9)}
    found = read(stored.evaluation(tmp_path, arms, held_out=HELD_OUT[:10]))
    assert gate(found, "known_answer").state == "undecided"
    assert "too few" in gate(found, "known_answer").words
    assert "rewards.audit" in gate(found, "audit_phrase").words


def test_whack_a_mole_shows_in_the_audit_phrases(tmp_path: Path, sft: Path, grpo: Path) -> None:
    """An arm whose total is better but which says what training did not forbid."""
    ids = frozenset(stored.withheld(stored.CONFIG))
    entry = next(
        e for e in stored.CONFIG.fillers if e.id in ids and e.where == "any" and not e.regex and e.weight == 1.0
    )
    mole = [stored.group(row, [f"{row.row.reference} {entry.pattern}."] * 4, "grpo") for row in HELD_OUT]
    found = read(stored.evaluation(tmp_path, {"sft": (str(sft), 0.5)}, audit=True, extra=mole))
    assert gate(found, "audit_phrase").state == "fail"


def test_seeds_are_put_together_and_shown_apart(tmp_path: Path, sft: Path, grpo: Path) -> None:
    arms = {"sft": (str(sft), 0.5), "grpo": (str(grpo), 0.9), "grpo#8": (str(grpo), 0.7)}
    job = stored.evaluation(tmp_path, arms)
    found = read(job)
    assert list(found.arms) == ["sft", "grpo"]
    assert [d.b for d in found.seeds] == ["grpo", "grpo#8"]
    apart = arms_of(job, stored.CONFIG)
    assert found.arms["grpo"].total == pytest.approx((apart["grpo"].total + apart["grpo#8"].total) / 2)
    assert found.arms["grpo"].samples == 2 * apart["grpo"].samples


def test_checkpoints_and_best_of_n_make_the_plane(tmp_path: Path, sft: Path, grpo: Path) -> None:
    arms = {
        "sft": (str(sft), 0.5), "grpo@10": (str(grpo), 0.7), "grpo": (str(grpo), 0.9),
        "bon4": (str(sft), 0.8), "bon16": (str(sft), 0.99),
    }  # fmt: skip
    probes = [Outcome(name=f"probe:{n}", data={"kl": kl}) for n, kl in {"sft": 0, "grpo@10": 0.5, "grpo": 2.0}.items()]
    found = read(stored.evaluation(tmp_path, arms, best_of={"bon4": 4, "bon16": 16}, events=probes))
    assert "grpo@10" not in found.arms
    assert [(p.name, p.kl) for p in found.path] == [("sft", 0), ("grpo@10", 0.5), ("grpo", 2.0)]
    assert [p.name for p in found.ceiling] == ["sft", "bon4", "bon16"]
    assert found.ceiling[1].kl == pytest.approx(0.636, abs=0.001)  # ln 4 - 3/4


@pytest.mark.parametrize("rename", [False, True], ids=["same ids", "other ids"])
def test_an_arm_trained_on_the_held_out_rows_is_caught(tmp_path: Path, sft: Path, rename: bool) -> None:
    leak = HELD_OUT[:5]
    if rename:
        leak = [
            dataclasses.replace(r, id=f"new-{r.id}", row=dataclasses.replace(r.row, id=f"new-{r.id}")) for r in leak
        ]
    cheat = stored.trained(tmp_path, "sft", [*TRAIN, *leak])
    child = stored.trained(tmp_path, "grpo", TRAIN, cheat, rewards=stored.CONFIG.to_dict())
    found = read(stored.evaluation(tmp_path, {"sft": (str(sft), 0.5), "grpo": (str(child), 0.99)}))
    assert found.findings[0].fatal
    assert "trained on 5 of the held-out rows" in found.findings[0].words
    with pytest.raises(BadInput, match="prove nothing"):
        refuse_leaks(found.findings)


def test_rows_that_only_the_groups_tell_of_are_caught(tmp_path: Path, sft: Path) -> None:
    """The rows file was swapped after the run; what was generated for the held-out prompts stays on record."""
    record = Job(
        kind="grpo", workspace=str(tmp_path), data={"train": str(tmp_path / "rows-0.jsonl")}, model={"adapter": ""}
    )
    groups = [stored.group(row, [row.row.reference] * 2, "", source="train") for row in HELD_OUT[:2]]
    cheat = stored.adapter(stored.job(tmp_path / "checkpoints", record, groups=groups))
    found = findings({"grpo": str(cheat)}, HELD_OUT, str(tmp_path), ())
    assert [f.fatal for f in found] == [True]


def test_other_faults_are_named_but_not_fatal(tmp_path: Path) -> None:
    audit = stored.withheld(stored.CONFIG)
    topic = [dataclasses.replace(TRAIN[0], row=dataclasses.replace(TRAIN[0].row, topic_cluster="topic-1"))]
    knows = stored.trained(tmp_path, "grpo", topic, rewards=stored.CONFIG.to_dict())
    steered = Job(kind="grpo", workspace=str(tmp_path), data={"train": str(tmp_path / "rows-0.jsonl")})
    events = [ControlApplied(version=2, step=3, changed=["weights"])]
    edited = stored.adapter(stored.job(tmp_path / "checkpoints", steered, events))
    found = findings(
        {"a": str(knows), "b": str(edited), "c": str(tmp_path / "elsewhere")}, HELD_OUT, str(tmp_path), audit
    )
    assert not any(f.fatal for f in found)
    told = " | ".join(f.words for f in found)
    for part in (
        "1 topics of the held-out rows",
        "phrases of the audit list switched on",
        "steered 1 times",
        "unknown",
    ):
        assert part in told


def test_a_clean_arm_has_nothing_against_it(tmp_path: Path, grpo: Path) -> None:
    assert findings({"grpo": str(grpo), "base": ""}, HELD_OUT, str(tmp_path), ()) == []


def test_a_job_of_another_kind_is_refused(tmp_path: Path) -> None:
    record = Job(kind="sample", workspace=str(tmp_path))
    with pytest.raises(BadInput, match="is a sample job"):
        read(stored.job(tmp_path / "checkpoints", record))


def test_one_arm_is_no_comparison(tmp_path: Path, sft: Path) -> None:
    with pytest.raises(BadInput, match="holds 1 arm"):
        read(stored.evaluation(tmp_path, {"sft": (str(sft), 0.5)}))


def test_the_export_is_told_what_speaks_against_a_run(tmp_path: Path, sft: Path, grpo: Path) -> None:
    run = JobDir(tmp_path / "checkpoints" / "grpo-1")
    assert "never compared" in doubts(run)[0]
    stored.evaluation(tmp_path, {"sft": (str(sft), 0.4), "grpo": (str(grpo), 0.95)})
    assert doubts(run) == []
    stored.evaluation(tmp_path, {"sft": (str(sft), 0.95), "grpo": (str(grpo), 0.3)})
    assert [line.partition(":")[0] for line in doubts(run)] == ["gate failed"] * 2
    assert doubts(JobDir(sft.parent.parent)) == []
