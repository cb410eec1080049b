"""The person's own rewards: scored, trained on, and never taken from anywhere but the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from ada_tui.protocol import Alarm
from ada_tui.worker.context import JobContext
from ada_tui.worker.generate import Sampled
from ada_tui.worker.scoring import Asked, own_rewards, scorer_of
from rewards import Row

SHOUT = """\
WEIGHT = 2.0

def reward(prompt, completion, row, config, *, truncated=False):
    return float("!" in completion)
"""


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_own_rewards_of_the_workspace_are_scored_and_weighted(bench: Any) -> None:
    write(bench.root / "my_rewards", "shout.py", SHOUT)
    write(bench.root / "my_rewards", "broken.py", "this is no Python")
    job = bench.job("sample", own_rewards="my_rewards")
    with JobContext(job) as context:
        scorer = scorer_of(context)
    replies = [Sampled("Morning! Sleep ok?", [1], False), Sampled("Morning. Sleep ok?", [1], False)]
    group, cards = scorer.score(
        Asked("Morning", [], Row(id="a", kind="greeting")), replies, id="x", batch_id=0, source="sample", policy="base"
    )
    assert [completion.raw["rewards"]["shout"] for completion in group.completions] == [1.0, 0.0]
    assert cards[0].total > cards[1].total
    assert scorer.config.weights["shout"] == 2.0
    alarms = bench.events(job, Alarm)
    assert len(alarms) == 1
    assert "broken.py" in alarms[0].detail


@pytest.mark.parametrize("where", ["../elsewhere", "absolute", "foreign"])
def test_code_outside_the_workspace_is_never_run(
    bench: Any, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    trap = outside / "ran"
    write(outside / "my_rewards", "trap.py", f"open({str(trap)!r}, 'w')\n{SHOUT}")
    if where == "../elsewhere":
        folder = f"../{outside.name}/my_rewards"
    else:
        folder = str(outside / "my_rewards")
    job = bench.job("sample", own_rewards=folder)
    if where == "foreign":  # a job record that claims another folder to be its workspace
        record = job.path / "job.json"
        record.write_text(record.read_text().replace(str(bench.root), str(outside)).replace(folder, "my_rewards"))
    with JobContext(job) as context:
        assert not own_rewards(context).rewards
    assert not trap.exists()
    assert "its code is not run" in bench.events(job, Alarm)[0].detail
