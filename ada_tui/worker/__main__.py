"""`python -m ada_tui.worker <job-dir>`: run one job to its end and say so.

Takes the lock, switches telemetry off, starts the heartbeat, calls the script of the job's kind, and turns whatever
happens into one `JobEnded`. Exit codes: 0 done or stopped, 1 failed, 2 nothing was started (no job, or it is taken).
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from ada_tui.errors import BadInput
from ada_tui.jobs import JobDir, WorkerLock
from ada_tui.protocol import Job, JobEnded, JobStarted
from ada_tui.settings import EMBEDDED
from ada_tui.worker.context import JobContext, Stopped, StoppedNow
from ada_tui.worker.failures import explain
from ada_tui.worker.gpu import Heartbeat

SCRIPTS = {
    "sft": "sft", "grpo": "grpo", "dpo": "dpo", "sample": "sample", "eval": "evaluate", "export": "export",
}  # fmt: skip
"""Job kind -> module of this package with `run(context)`."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m ada_tui.worker JOB_DIR", file=sys.stderr)
        return 2
    jobdir = JobDir(Path(arguments[0]).resolve())
    try:
        job = jobdir.job()
        if job.kind not in SCRIPTS:
            raise BadInput(f"{jobdir.path}: job kind {job.kind!r} cannot be run by this version; update ada-tui")
        with WorkerLock(jobdir):
            if any(isinstance(event, JobStarted) for event in jobdir.events()):
                raise BadInput(f"{jobdir.path}: this job has run already; start a new one with `ada-tui train`")
            go_offline(job)
            with JobContext(jobdir) as context:
                return _run(context)
    except BadInput as error:
        print(f"ada-tui worker: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"ada-tui worker: {explain(error)[0]}", file=sys.stderr)
        return 1


def go_offline(job: Job) -> None:
    """Telemetry off, also for what this process starts; the hub is reachable only for a base model named by hub id.

    Progress bars are off too: worker.log is for what went wrong, and its last line explains a sudden death.
    """
    os.environ.update(
        HF_HUB_DISABLE_TELEMETRY="1", DO_NOT_TRACK="1", DISABLE_TELEMETRY="1", UNSLOTH_DISABLE_STATISTICS="1",
        TRACKIO_DISABLE_TELEMETRY="1", WANDB_ERROR_REPORTING="false",
        TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1", TRANSFORMERS_NO_ADVISORY_WARNINGS="1",
        HF_HUB_DISABLE_PROGRESS_BARS="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    )  # fmt: skip
    base = str(job.model.get("base", EMBEDDED))
    if base == EMBEDDED or (Path(job.workspace or ".") / Path(base).expanduser()).is_dir():
        os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")


def _run(context: JobContext) -> int:
    _install_signals(context)
    context.started()
    context.phase("start", "loading the libraries")
    heartbeat = Heartbeat(context.emit)
    heartbeat.start()
    ended = JobEnded(status="done")
    try:
        importlib.import_module(f"ada_tui.worker.{SCRIPTS[context.job.kind]}").run(context)
    except Stopped:
        ended = JobEnded(status="stopped")
    except Exception as error:
        # The one place that catches everything: whatever ends a job becomes its last word.
        line, known = explain(error)
        tail = None if known else "".join(traceback.format_exception(error)[-12:])[-8000:]
        ended = JobEnded(status="failed", error=line, traceback=tail)
        traceback.print_exception(error)
    heartbeat.stop()
    context.emit(ended)
    return 1 if ended.status == "failed" else 0


def _install_signals(context: JobContext) -> None:
    """The first SIGINT or SIGTERM asks for a clean stop (finish the step, save); the second one stops at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if context.signalled.is_set():
            raise StoppedNow
        context.signalled.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
