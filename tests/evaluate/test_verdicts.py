"""Blind verdicts: one vote a prompt, the newest; damaged and foreign lines passed over."""

from __future__ import annotations

from pathlib import Path

import orjson

from ada_tui.evaluate.evaluation import read
from ada_tui.evaluate.verdicts import blind_rate, questions, record
from ada_tui.jobs import JobDir
from tests.evaluate import stored


def write(job: JobDir, *lines: object) -> None:
    data = b"".join(line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines)
    (job.path / "picks.jsonl").write_bytes(data)


def verdict(row: int, winner: str, a: str = "sft", b: str = "grpo") -> dict[str, object]:
    return {"type": "blind", "row_id": f"row-{row}", "a": a, "b": b, "winner": winner, "time": 1.0}


def test_the_newest_vote_counts_whichever_side_it_was_on(tmp_path: Path) -> None:
    job = JobDir(tmp_path)
    votes = [verdict(1, "a"), verdict(2, "tie"), verdict(1, "b"), verdict(3, "a", a="grpo", b="sft")]
    foreign = [
        {"type": "pick", "winner": "b"},
        [1],
        verdict(9, "b", b="base"),
        verdict(4, "both"),
        verdict(5, "a", b="sft"),
    ]
    write(job, *votes, *foreign, b"\xff\x00{\n", b'{"torn": ')
    found = blind_rate(job, "sft", "grpo")
    assert found is not None
    assert (found.rate, found.n) == (1.0, 2)
    assert "1 ties left out" in found.by


def test_no_file_and_no_decision_are_no_rate(tmp_path: Path) -> None:
    job = JobDir(tmp_path)
    assert blind_rate(job, "sft", "grpo") is None
    write(job, verdict(1, "tie"))
    assert blind_rate(job, "sft", "grpo") is None


def test_verdicts_of_a_person_replace_those_of_the_rules(tmp_path: Path) -> None:
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": ("", 0.9)})
    write(job, *(verdict(i, "a" if i % 5 else "b") for i in range(40)))
    found = read(job)
    assert found.blind is not None
    assert found.gates[0].state == "fail"  # the rules love it, the person does not
    assert "blind verdicts" in found.gates[0].words


def test_questions_hide_who_spoke_and_are_asked_once(tmp_path: Path) -> None:
    job = stored.evaluation(tmp_path, {"sft": ("", 0.3), "grpo": ("", 0.9)})
    asked = questions(job, "sft", "grpo")
    assert 5 < len(asked) < 40  # equal replies are left out
    assert [(q.row_id, q.arms, q.replies) for q in asked] == [
        (q.row_id, q.arms, q.replies) for q in questions(job, "sft", "grpo")
    ]
    assert {q.arms for q in asked} == {("sft", "grpo"), ("grpo", "sft")}
    first = asked[0]
    record(job, first.verdict("left"))
    assert first.row_id not in {q.row_id for q in questions(job, "sft", "grpo")}
    found = blind_rate(job, "sft", "grpo")
    assert found is not None
    assert found.rate == (1.0 if first.arms[0] == "grpo" else 0.0)
