"""What a foreign run may and may not decide."""

from __future__ import annotations

from pathlib import Path

from ada_tui import jobs, runs
from ada_tui.protocol import Job
from ada_tui.workspace import Workspace


def test_a_foreign_run_cannot_switch_on_code_of_its_own(tmp_path: Path) -> None:
    evil = {"base": "evil", "bits": 4, "adapter": "x", "trust_remote_code": True, "unknown": 1}
    job = jobs.create(tmp_path / "checkpoints", Job(kind="grpo", model=evil))
    assert runs.model_of(job, Workspace(tmp_path).settings()) == {"base": "evil", "bits": 4}
