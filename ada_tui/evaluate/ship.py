"""What speaks against shipping a run: the gates of its newest comparison. For the export and for the app.

It judges nothing anew; it reads. Anybody may import it.
"""

from __future__ import annotations

from ada_tui import launch
from ada_tui.errors import BadInput
from ada_tui.evaluate.evaluation import Evaluation, read
from ada_tui.jobs import JobDir

JUDGED = ("grpo", "dpo")
"""Kinds of run that are judged against the SFT adapter they started from."""


def newest(run: JobDir) -> Evaluation | None:
    """The newest finished comparison of `run` that can be read, or None."""
    found = [JobDir(path.parent) for path in (run.path / "evals").glob("*/job.json")]
    for job in sorted(found, key=lambda job: job.job().created, reverse=True):
        if launch.status(job).name == "done":
            try:
                return read(job)
            except BadInput:
                continue  # an old one with a single arm says nothing
    return None


def doubts(run: JobDir) -> list[str]:
    """One line for each thing that speaks against shipping `run`; [] when nothing does.

    An undecided gate is no doubt; that nobody compared the run is one.
    """
    if run.job().kind not in JUDGED:
        return []
    evaluation = newest(run)
    if evaluation is None:
        return [f"{run.id} was never compared with what it started from; `ada-tui eval {run.id}` does"]
    lines = [finding.words for finding in evaluation.findings if finding.fatal]
    if evaluation.subject != run.job().kind:
        return lines
    for gate in evaluation.gates:
        if gate.state == "fail":
            lines.append(f"gate failed: {gate.name.replace('_', ' ')}: {gate.words}")
    return lines
