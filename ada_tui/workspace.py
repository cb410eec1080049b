"""A workspace is a folder with ada.toml, data/, my_rewards/ and checkpoints/; this file finds, makes and resolves it.

Nothing is ever written outside the workspace and the cache folder. Anybody may import it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ada_tui.errors import BadInput
from ada_tui.settings import Settings, load

ADA_TOML = """\
# What ada-tui works with in this folder. Every setting: docs/settings.md.

[model]
base = "embedded"        # the small model that comes with the install; or a folder, or Qwen/Qwen2.5-3B-Instruct
adapter = ""             # folder of your SFT LoRA

[data]
chats = ["data/ada/conversations.jsonl"]
persona = "data/ada/persona.toml"
"""

OWN_REWARDS_README = """\
A Python file here with one function `reward(prompt, completion, row, config, *, truncated=False)` that returns
`rewards.Result(score)` is a reward of your own: weighted, charted and trained like the built-in ones.
"""


def cache_dir() -> Path:
    """Where the embedded model is unpacked (ADA_CACHE overrides it)."""
    override = os.environ.get("ADA_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("ada-tui", appauthor=False))


def bundled_data() -> Path:
    """The data/ folder that ships with the package: inside the wheel, or the checkout's own."""
    packaged = Path(__file__).parent / "_bundled"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "data"


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace folder. Paths in ada.toml are relative to `root`."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def settings(self, overrides: dict[str, dict[str, object]] | None = None) -> Settings:
        """Raises BadInput."""
        return load(self.root, overrides)

    def resolve(self, path: str) -> Path:
        """`path` of ada.toml: absolute, ~, or relative to the workspace; data/ falls back to the bundled one."""
        candidate = self.root / Path(path).expanduser()
        if not candidate.exists() and path.startswith("data/"):
            bundled = bundled_data() / path.removeprefix("data/")
            if bundled.exists():
                return bundled
        return candidate


def init(root: Path) -> Workspace:
    """Lay out a workspace in `root`; what exists already is left as it is.

    Raises:
        BadInput: the folder cannot be made or written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        for name in ("my_rewards", "checkpoints"):
            (root / name).mkdir(exist_ok=True)
        _write_new(root / "ada.toml", ADA_TOML)
        _write_new(root / "my_rewards" / "README.md", OWN_REWARDS_README)
        (root / "data").mkdir(exist_ok=True)
        for source in bundled_data().iterdir():
            if source.is_dir() and source.name != "rows" and not (root / "data" / source.name).exists():
                _copy(source, root / "data" / source.name)
    except OSError as error:
        raise BadInput(
            f"{root}: cannot lay out a workspace here ({error.strerror}); choose a folder you may write"
        ) from None
    return Workspace(root.resolve())


def _copy(source: Path, target: Path) -> None:
    """A whole folder, or nothing under its name."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial, ignore=shutil.ignore_patterns("*.bak", "__pycache__"))
    partial.rename(target)


def _write_new(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")
