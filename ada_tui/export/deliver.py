"""Put a finished export on the device, try it there, and only then let it be `ada:latest`. And the way back.

Two ways: Ollama's HTTP API (http://HOST:11434), or ssh (USER@HOST): a resumable copy, `ollama create` there, the API
through a forwarded port. Until the smoke test has passed nothing that runs there changes; a model that fails it is
removed again. What was done is appended to checkpoints/deliveries.jsonl.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson

from ada_tui.errors import BadInput
from ada_tui.export import gguf, hosts, ollama, ssh
from ada_tui.export.modelfile import Modelfile
from ada_tui.export.ollama import Ollama
from ada_tui.export.store import sha256
from ada_tui.export.tool import Report, silent
from ada_tui.jobs import JobDir, read_lines

HISTORY = "deliveries.jsonl"
KEEP = 2
"""Versions kept on the device: the one in use and the one before it."""

FOLDER = "ada-tui"
"""Below the home directory of the device, where ssh copies to."""

SMOKE_TOKENS = 96
SLOW = 1.0
"""Tokens per second below which an answer is no use to anybody."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One prompt, answered by the device and (at export) by this PC."""

    prompt: str
    device: str
    pc: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a delivery, or a rollback, did."""

    tag: str
    host: str
    promoted: bool
    export: str = ""
    """Id of the export job."""
    address: str = ""
    found_by: str = ""
    """How the address was found: as given, resolver, windows, saved, by your ssh config."""
    version: str = ""
    """Ollama's version there."""
    processor: str = ""
    """As `ollama ps` puts it: "100% GPU", "37%/63% CPU/GPU"."""
    context: int = 0
    tokens_per_s: float = 0.0
    memory_left: int | None = None
    """Bytes available there with the model loaded; None = not to be read over HTTP."""
    free: int | None = None
    """Bytes free on its disk afterwards; None = not to be read over HTTP."""
    named: bool = False
    """Asked who it is, it gave its name."""
    replies: list[Reply] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Older versions that made room."""
    seconds: float = 0.0
    time: float = 0.0


@dataclass(slots=True)
class Device:
    """An open way to a device."""

    api: Ollama
    host: str
    address: str
    found_by: str
    shell: ssh.Ssh | None = None
    """None = only HTTP."""


def deliver(export: JobDir, target: str, tag: str, report: Report = silent, *, allow_cpu: bool = False) -> Delivery:
    """Deliver `export` to `target` as `tag`:<run>-<step>, try it, and move `tag`:latest to it.

    Args:
        target: "http://HOST[:PORT]" or an ssh destination.
        allow_cpu: promote also when the device runs it on its CPU.

    Raises:
        BadInput: with cause and fix; what was in use on the device still is.
    """
    began = time.monotonic()
    report("checking the file", None)
    found, model = read_export(export)
    file = export.path / model.gguf
    version = f"{tag}:{version_of(export)}"
    checkpoints = _checkpoints(export)
    with connect(target, saved_address(checkpoints, target)) as device:
        server = device.api.version()
        known = device.api.tags()
        if device.shell is None:
            report("uploading", 0.0)
            device.api.upload(file, found["sha256"], lambda sent: report("uploading", sent / found["size"]))
            device.api.create(model.create(version, f"sha256:{found['sha256']}"), lambda said: report(said, None))
        else:
            _by_ssh(device.shell, file, found, model, version, report)
        try:
            name = str(export.job().persona.get("name", tag))
            tried = smoke(device.api, version, name, found["answers"], report)
            problems = judge(tried, model, allow_cpu=allow_cpu)
            if problems:
                raise BadInput(f"{target}: {version} is not promoted: {'; '.join(problems)}")
        except BaseException:
            if version not in known:
                device.api.delete(version)
            raise
        before = _promoted(checkpoints, target)
        device.api.copy(version, f"{tag}:latest")
        removed = _prune(device.api, tag, [version, *before])
        delivery = Delivery(
            tag=version, host=target, promoted=True, export=export.id, address=device.address, found_by=device.found_by,
            version=server, removed=removed, **tried, **_room(device.shell),
            seconds=round(time.monotonic() - began, 1), time=time.time(),
        )  # fmt: skip
    _remember(checkpoints, delivery)
    return delivery


def rollback(checkpoints: Path, target: str, tag: str, report: Report = silent) -> Delivery:
    """Move `tag`:latest back to the version before the one in use.

    Raises:
        BadInput: there is none, or it is no longer on the device.
    """
    before = _promoted(checkpoints, target)
    with connect(target, saved_address(checkpoints, target)) as device:
        there = device.api.tags()
        older = [version for version in before[1:] if version in there]
        if not older:
            raise BadInput(f"{target}: no earlier version of {tag} is there; it holds {', '.join(there) or 'nothing'}")
        report(f"{tag}:latest is {older[0]} again", None)
        device.api.copy(older[0], f"{tag}:latest")
        delivery = Delivery(
            tag=older[0], host=target, promoted=True, address=device.address, found_by=device.found_by,
            version=device.api.version(), time=time.time(),
        )  # fmt: skip
    _remember(checkpoints, delivery)
    return delivery


def history(checkpoints: Path) -> list[Delivery]:
    """Every delivery and rollback, oldest first; unreadable lines are passed over."""
    names, found = {f.name for f in fields(Delivery)}, []
    for _, line in read_lines(checkpoints / HISTORY):
        try:
            data = orjson.loads(line)
            data["replies"] = [Reply(**reply) for reply in data.get("replies", [])]
            found.append(Delivery(**{name: value for name, value in data.items() if name in names}))
        except (orjson.JSONDecodeError, TypeError, AttributeError):
            continue
    return found


def read_export(export: JobDir) -> tuple[dict[str, Any], Modelfile]:
    """(export.json, the Modelfile) of a finished export whose file is still what parity was measured on.

    Raises:
        BadInput: the export is not finished, or its file was changed since.
    """
    path = export.path / "export.json"
    try:
        found = orjson.loads(path.read_bytes())
        model = Modelfile(**found.pop("ollama"))
    except OSError:
        raise BadInput(f"{export.path}: not a finished export; run `ada-tui export` first") from None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadInput(f"{path}: cannot be read; export the run again") from None
    file = export.path / model.gguf
    if "/" in model.gguf or "\\" in model.gguf:
        raise BadInput(f"{path}: the file name {model.gguf!r} leaves its folder; export the run again")
    gguf.check(file)
    if sha256(file) != found["sha256"]:
        raise BadInput(f"{file}: changed since it was exported; export the run again")
    return found, model


def version_of(export: JobDir) -> str:
    """The part of the tag behind the colon: run and step, e.g. "grpo-1-120"."""
    job = export.job()
    run = job.parent or export.path.parent.parent.name
    step = re.search(r"step-0*(\d+)", str(job.data.get("adapter", "")))
    return re.sub(r"[^A-Za-z0-9._-]", "-", run + (f"-{step[1]}" if step else ""))[:80]


@contextmanager
def connect(target: str, saved: str = "") -> Iterator[Device]:
    """An open way to `target`; `saved` is the address that worked last time. Raises BadInput."""
    if target.startswith(("http://", "https://")):
        host, port = ollama.parse(target)
        address = hosts.find(host, saved)
        yield Device(Ollama(address.ip, port), target, address.ip, address.how)
        return
    shell = ssh.connect(target, saved)
    there = shell.run('printf %s "${OLLAMA_HOST:-127.0.0.1}"', what="connecting")
    host, port = ollama.parse(there)
    with shell.tunnel("127.0.0.1" if host in ("0.0.0.0", "::") else host, port) as local:
        yield Device(Ollama("127.0.0.1", local), target, saved, shell.how, shell)


def smoke(api: Ollama, version: str, name: str, answers: list[dict[str, Any]], report: Report) -> dict[str, Any]:
    """Load `version` there and ask it what the PC was asked; the measured fields of a `Delivery`."""
    replies, tokens, nanoseconds, named = [], 0, 0, False
    for number, answer in enumerate(answers):
        prompt = str(answer["prompt"])
        report(f"asking: {prompt}", number / len(answers))
        said = api.chat(version, [{"role": "user", "content": prompt}], {"seed": 0, "num_predict": SMOKE_TOKENS})
        text = str(said["message"]["content"]).strip()
        replies.append(Reply(prompt, text, str(answer["reply"])))
        tokens += int(said.get("eval_count", 0))
        nanoseconds += int(said.get("eval_duration", 0))
        if "who are you" in prompt.lower():
            named = name.lower() in text.lower()
    running = api.running(version) or {}
    return {
        "replies": replies, "named": named, "processor": processor(running),
        "context": int(running.get("context_length", 0)),
        "tokens_per_s": round(tokens / (nanoseconds / 1e9), 1) if nanoseconds else 0.0,
    }  # fmt: skip


def processor(running: dict[str, Any]) -> str:
    """What `ollama ps` shows in its column PROCESSOR, from the sizes the API gives; "" = not loaded."""
    size, on_gpu = int(running.get("size", 0)), int(running.get("size_vram", 0))
    if not size:
        return ""
    if on_gpu >= size:
        return "100% GPU"
    if not on_gpu:
        return "100% CPU"
    share = round(100 * (size - on_gpu) / size)
    return f"{share}%/{100 - share}% CPU/GPU"


def judge(tried: dict[str, Any], model: Modelfile, *, allow_cpu: bool) -> list[str]:
    """Why a model that was tried must not be promoted; [] = it may."""
    found = []
    if not tried["processor"]:
        found.append(
            "it is not loaded after five answers; the device is short of memory: a finer fit is a smaller num_ctx"
        )
    elif tried["processor"] != "100% GPU" and not allow_cpu:
        found.append(
            f"it runs on {tried['processor']}: use the JetPack build of Ollama (JETSON_JETPACK=6), a smaller num_ctx, "
            "or --allow-cpu"
        )
    if tried["context"] and tried["context"] < model.num_ctx:
        found.append(
            f"its context is {tried['context']} instead of {model.num_ctx}: OLLAMA_CONTEXT_LENGTH there, or memory"
        )
    if empty := [reply.prompt for reply in tried["replies"] if not reply.device]:
        found.append(f"no answer to {empty[0]!r}")
    if tried["tokens_per_s"] < SLOW:
        found.append(f"{tried['tokens_per_s']} tokens/s")
    return found


def saved_address(checkpoints: Path, target: str) -> str:
    """The address that worked last time for `target`, "" when there was none."""
    return next((d.address for d in reversed(history(checkpoints)) if d.host == target and d.address), "")


def _by_ssh(shell: ssh.Ssh, file: Path, found: dict[str, Any], model: Modelfile, version: str, report: Report) -> None:
    size = int(found["size"])
    free = shell.free(FOLDER)
    if free < 2 * size:  # the copy, and Ollama's own
        raise BadInput(
            f"{shell.target}: {free / 1e9:.1f} GB free, {2 * size / 1e9:.1f} GB are needed; remove models there"
        )
    shell.copy(file, FOLDER, found["sha256"], lambda sent: report("copying", sent / size))
    shell.write(model.text(), FOLDER, "Modelfile")
    report("ollama create", None)
    shell.run(f"cd {FOLDER} && ollama create {version} -f Modelfile && rm -f {file.name}", what="ollama create")


def _room(shell: ssh.Ssh | None) -> dict[str, Any]:
    """Memory and disk left on the device, where a shell can read them."""
    if shell is None:
        return {}
    available = shell.run("awk '/^MemAvailable/ {print $2}' /proc/meminfo", what="reading memory")
    return {"memory_left": int(available) * 1024, "free": shell.free(FOLDER)}


def _promoted(checkpoints: Path, target: str) -> list[str]:
    """Versions that were in use on `target`, the newest first, each once. A rollback drops what it went back from."""
    order: list[str] = []
    for entry in history(checkpoints):
        if entry.host != target or not entry.promoted:
            continue
        if entry.tag in order and not entry.export:
            order = order[: order.index(entry.tag)]
        order = [tag for tag in order if tag != entry.tag] + [entry.tag]
    return order[::-1]


def _prune(api: Ollama, tag: str, newest: list[str]) -> list[str]:
    """Remove the versions of `tag` beyond the last `KEEP`; only versions that this program delivered are touched."""
    keep, there = list(dict.fromkeys(newest))[:KEEP], api.tags()
    old = [version for version in dict.fromkeys(newest) if version not in keep and version in there]
    for version in old:
        if version.startswith(f"{tag}:"):
            api.delete(version)
    return old


def _remember(checkpoints: Path, delivery: Delivery) -> None:
    with (checkpoints / HISTORY).open("ab") as file:
        file.write(orjson.dumps(asdict(delivery)) + b"\n")


def _checkpoints(export: JobDir) -> Path:
    """<checkpoints>/<run>/exports/<export>."""
    return export.path.parent.parent.parent
