"""Delivery over HTTP against the contract server, over ssh against a real sshd on loopback; promotion, rollback."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from ada_tui import jobs
from ada_tui.commands.deliver import deliver as command
from ada_tui.errors import BadInput
from ada_tui.export import deliver, hosts, ssh
from ada_tui.export.modelfile import Modelfile
from ada_tui.export.ollama import Ollama, parse
from ada_tui.jobs import JobDir
from ada_tui.protocol import Job
from ada_tui.workspace import Workspace
from tests.export.ollama_server import OllamaServer
from tests.export.sshd import Sshd

MODEL = Modelfile(
    gguf="ada-q4_k_m.gguf", template="{{ .Prompt }}", system="You are Ada.", num_ctx=4096, stops=["<|im_end|>"],
    sampling={"temperature": 0.7},
)  # fmt: skip
ANSWERS = [{"prompt": "Morning", "reply": "Morning!"}, {"prompt": "Who are you?", "reply": "Ada."}]
Export = Callable[..., JobDir]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """(step, size) -> a finished export job with a file of that many random bytes."""

    def make(step: int = 120, size: int = 1000) -> JobDir:
        job = Job(
            kind="export", parent="grpo-1", data={"adapter": f"/x/adapters/step-{step:06}"}, persona={"name": "Ada"}
        )
        made = jobs.create(tmp_path / "checkpoints" / "grpo-1" / "exports", job)
        content = b"GGUF" + os.urandom(size)
        (made.path / MODEL.gguf).write_bytes(content)
        record = {
            "sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "answers": ANSWERS,
            "ollama": dataclasses.asdict(MODEL),
        }  # fmt: skip
        (made.path / "export.json").write_bytes(orjson.dumps(record))
        return made

    return make


def url(server: OllamaServer) -> str:
    return f"http://127.0.0.1:{server.port}"


# --- over HTTP --------------------------------------------------------------------------------------------------------


def test_upload_try_promote(export: Export, server: OllamaServer) -> None:
    done = deliver.deliver(export(), url(server), "ada")
    assert done.tag == "ada:grpo-1-120"
    assert done.promoted
    assert done.processor == "100% GPU"
    assert done.context == 4096
    assert done.tokens_per_s == 40.0
    assert done.named
    assert [reply.prompt for reply in done.replies] == ["Morning", "Who are you?"]
    assert server.state.models["ada:latest"]["system"] == "You are Ada."


def test_the_requests_are_the_documented_ones(export: Export, server: OllamaServer) -> None:
    job = export(size=5)
    deliver.deliver(job, url(server), "ada")
    digest = "sha256:" + hashlib.sha256((job.path / MODEL.gguf).read_bytes()).hexdigest()
    said = json.dumps(server.state.requests).replace(digest, "DIGEST")
    golden = Path(__file__).parent / "golden" / "requests.json"
    assert json.loads(said) == json.loads(golden.read_text(encoding="utf-8"))


def test_a_file_that_is_there_is_not_sent_again(export: Export, server: OllamaServer) -> None:
    job = export()
    deliver.deliver(job, url(server), "ada")
    deliver.deliver(job, url(server), "ada")
    assert len([r for r in server.state.requests if r[0] == "POST" and "blobs" in r[1]]) == 1


def test_only_the_last_two_are_kept_and_rollback_goes_to_the_one_before(export: Export, server: OllamaServer) -> None:
    checkpoints = export().path.parent.parent.parent
    jobs_ = [export(step) for step in (10, 20, 30)]
    for job in jobs_:
        last = deliver.deliver(job, url(server), "ada")
    assert last.removed == ["ada:grpo-1-10"]
    assert set(server.state.models) == {"ada:grpo-1-20", "ada:grpo-1-30", "ada:latest"}
    back = deliver.rollback(checkpoints, url(server), "ada")
    assert back.tag == "ada:grpo-1-20"
    assert server.state.models["ada:latest"] is server.state.models["ada:grpo-1-20"]
    with pytest.raises(BadInput, match="no earlier version"):
        deliver.rollback(checkpoints, url(server), "ada")
    assert [entry.tag for entry in deliver.history(checkpoints)][-1] == "ada:grpo-1-20"
    deliver.deliver(export(40), url(server), "ada")
    assert deliver.rollback(checkpoints, url(server), "ada").tag == "ada:grpo-1-20"


def test_models_of_other_people_are_left_alone(export: Export, server: OllamaServer) -> None:
    server.state.models["ada:mine"] = {"digest": "x"}
    server.state.models["qwen:3b"] = {"digest": "y"}
    for step in (1, 2, 3, 4):
        deliver.deliver(export(step), url(server), "ada")
    assert {"ada:mine", "qwen:3b"} < set(server.state.models)


BAD_DEVICES: dict[str, tuple[dict[str, Any], str]] = {
    "on the CPU": ({"gpu_share": 0.0}, "runs on 100% CPU.*JETSON_JETPACK"),
    "half on the CPU": ({"gpu_share": 0.63}, "37%/63% CPU/GPU"),
    "short context": ({"context": 2048}, "context is 2048 instead of 4096"),
    "no answer": ({"reply": "  "}, "no answer to 'Morning'"),
    "slow": ({"tokens_per_s": 0.2}, "0.2 tokens/s"),
}


@pytest.mark.parametrize("what", BAD_DEVICES)
def test_a_model_that_does_badly_there_is_not_promoted(export: Export, server: OllamaServer, what: str) -> None:
    deliver.deliver(export(1), url(server), "ada")
    before = dict(server.state.models)
    behaviour, says = BAD_DEVICES[what]
    for name, value in behaviour.items():
        setattr(server.state, name, value)
    with pytest.raises(BadInput, match=says):
        deliver.deliver(export(2), url(server), "ada")
    assert server.state.models == before


def test_the_cpu_may_be_allowed(export: Export, server: OllamaServer) -> None:
    server.state.gpu_share = 0.0
    assert deliver.deliver(export(), url(server), "ada", allow_cpu=True).processor == "100% CPU"


def test_a_full_disk_and_a_damaged_upload(export: Export, server: OllamaServer) -> None:
    server.state.disk_full = True
    with pytest.raises(BadInput, match="disk is full"):
        deliver.deliver(export(), url(server), "ada")
    server.state.disk_full = False
    job = export()
    with pytest.raises(BadInput, match="arrived damaged"):
        Ollama("127.0.0.1", server.port).upload(job.path / MODEL.gguf, "0" * 64, lambda sent: None)
    assert not server.state.blobs


@pytest.mark.parametrize("more", [{"adapters": {"a": "b"}}, {"quantize": "q4_K_M"}, {"parameters": {"heat": 1}}])
def test_the_server_is_strict(export: Export, server: OllamaServer, more: dict[str, Any]) -> None:
    job, api = export(), Ollama("127.0.0.1", server.port)
    digest = hashlib.sha256((job.path / MODEL.gguf).read_bytes()).hexdigest()
    api.upload(job.path / MODEL.gguf, digest, lambda sent: None)
    with pytest.raises(BadInput, match="refused"):
        api.create({**MODEL.create("ada:x", f"sha256:{digest}"), **more}, lambda said: None)


def test_nobody_listens(export: Export, server: OllamaServer) -> None:
    free = ssh._free_port()
    with pytest.raises(BadInput, match="ollama serve"):
        deliver.deliver(export(), f"http://127.0.0.1:{free}", "ada")


@pytest.mark.parametrize("bad", ["http://", "http://h:x", "https://h", "http://h/path", "ftp://h"])
def test_bad_addresses(bad: str) -> None:
    with pytest.raises(BadInput, match="not an Ollama address"):
        parse(bad)


def test_a_file_changed_since_the_export(export: Export, server: OllamaServer) -> None:
    job = export()
    with (job.path / MODEL.gguf).open("ab") as file:
        file.write(b"x")
    with pytest.raises(BadInput, match="changed since it was exported"):
        deliver.deliver(job, url(server), "ada")
    (job.path / "export.json").unlink()
    with pytest.raises(BadInput, match="not a finished export"):
        deliver.deliver(job, url(server), "ada")
    assert not server.state.requests


def test_an_export_record_cannot_name_a_file_elsewhere(export: Export, server: OllamaServer) -> None:
    job = export()
    record = json.loads((job.path / "export.json").read_text())
    record["ollama"]["gguf"] = "../../../../etc/passwd"
    (job.path / "export.json").write_text(json.dumps(record))
    with pytest.raises(BadInput, match="leaves its folder"):
        deliver.deliver(job, url(server), "ada")


def test_the_command(export: Export, server: OllamaServer) -> None:
    job = export()
    workspace = Workspace(job.path.parents[3])
    arguments = ["grpo-1/exports/export-1", "--to", url(server), "--json"]
    done = CliRunner().invoke(command, arguments, obj=workspace, catch_exceptions=False)
    document = json.loads(done.stdout)
    assert {"tag", "promoted", "processor", "tokens_per_s", "replies"} <= set(document)
    with pytest.raises(BadInput, match=r"export\.host"):
        CliRunner().invoke(command, ["x"], obj=workspace, catch_exceptions=False)


# --- finding the host -------------------------------------------------------------------------------------------------


def test_three_ways_to_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hosts.find("10.1.2.3") == hosts.Address("10.1.2.3", "as given")
    assert hosts.find("localhost").how == "resolver"
    windows = tmp_path / "powershell.exe"
    windows.write_text('#!/bin/sh\ncase "$4" in *jetson.invalid*) echo 192.168.7.7;; esac\n')
    windows.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert hosts.find("jetson.invalid") == hosts.Address("192.168.7.7", "windows")
    assert hosts.find("other.invalid", saved="10.0.0.9") == hosts.Address("10.0.0.9", "saved")
    with pytest.raises(BadInput, match="mirrored"):
        hosts.find("other.invalid")


# --- over ssh ---------------------------------------------------------------------------------------------------------


def test_copy_create_promote_over_ssh(export: Export, server: OllamaServer, to_sshd: Sshd) -> None:
    done = deliver.deliver(export(size=3_000_000), "device", "ada")
    assert done.tag == "ada:grpo-1-120"
    assert done.processor == "100% GPU"
    assert done.memory_left
    assert done.free
    assert server.state.models["ada:latest"]["system"] == "You are Ada."
    assert [path.name for path in (to_sshd.home / "ada-tui").iterdir()] == ["Modelfile"]


def test_an_interrupted_copy_goes_on(to_sshd: Sshd, tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(os.urandom(8 << 20))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()

    class CableOut(Exception):
        pass

    def pull(sent: int) -> None:
        if sent > 0.6 * source.stat().st_size:
            raise CableOut

    with pytest.raises(CableOut):
        ssh.Ssh("device").copy(source, "in", digest, pull)
    part = next((to_sshd.home / "in").iterdir())
    assert part.name.endswith(".part")
    sent = ssh.Ssh("device").copy(source, "in", digest, lambda sent: None)
    assert 0 < sent < source.stat().st_size  # what had arrived is not sent again
    assert (to_sshd.home / "in" / "model.gguf").read_bytes() == source.read_bytes()
    assert not part.exists()


def test_a_damaged_copy_never_gets_its_name(to_sshd: Sshd, tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(b"whole")
    with pytest.raises(BadInput, match="damaged"):
        ssh.Ssh("device").copy(source, "in", "0" * 64, lambda sent: None)
    assert list((to_sshd.home / "in").iterdir()) == []


def test_hostile_names_stay_words(to_sshd: Sshd, tmp_path: Path) -> None:
    source = tmp_path / "a b;touch pwned;'$(id).gguf"
    source.write_bytes(b"x")
    digest = hashlib.sha256(b"x").hexdigest()
    ssh.Ssh("device").copy(source, "a folder; touch pwned", digest, lambda sent: None)
    assert (to_sshd.home / "a folder; touch pwned" / source.name).read_bytes() == b"x"
    assert not list(to_sshd.home.rglob("pwned"))


def test_no_space(to_sshd: Sshd, export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh.Ssh, "free", lambda self, folder: 10)
    with pytest.raises(BadInput, match="GB are needed"):
        deliver.deliver(export(), "device", "ada")


def test_a_disk_that_fills_up_while_copying(to_sshd: Sshd, tmp_path: Path, small_disk: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(os.urandom(4 << 20))
    with pytest.raises(BadInput, match="its disk is full"):
        ssh.Ssh("device").copy(
            source, str(small_disk), hashlib.sha256(source.read_bytes()).hexdigest(), lambda sent: None
        )
    assert not (small_disk / "model.gguf").exists()


REFUSALS: dict[str, tuple[Callable[[Sshd], None], str]] = {
    "wrong key": (lambda sshd: sshd.forget_client_key(), "refuses your key; `ssh-copy-id"),
    "unknown host": (lambda sshd: sshd.known_hosts.write_text(""), "host key is not known here"),
    "changed host key": (lambda sshd: sshd.remember_another_host_key(), "host key has changed.*ssh-keygen -R"),
    "closed port": (lambda sshd: sshd.stop(), "no ssh server on that port"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_every_refusal_has_its_cause_and_fix(export: Export, to_sshd: Sshd, why: str) -> None:
    spoil, says = REFUSALS[why]
    spoil(to_sshd)
    before = to_sshd.known_hosts.read_text()
    with pytest.raises(BadInput, match=says) as caught:
        deliver.deliver(export(), "device", "ada")
    assert "\n" not in str(caught.value)
    assert to_sshd.known_hosts.read_text() == before


@pytest.mark.parametrize("target", ["", "-oProxyCommand=touch pwned", "a b", "no-such-host.invalid"])
def test_bad_destinations(target: str) -> None:
    with pytest.raises(BadInput):
        ssh.connect(target)
