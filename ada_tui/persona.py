"""The persona: one object that sampling, training and the Modelfile share. Anybody may import it."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ada_tui.errors import BadInput


@dataclass(frozen=True, slots=True)
class Persona:
    """Who speaks. `system` is rendered as the system turn of every chat that brings none of its own."""

    name: str = "Ada"
    system: str = ""
    sampling: dict[str, float] = field(default_factory=dict)
    """Ollama parameter names: temperature, top_p, repeat_penalty, ..."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Persona:
        return cls(name=data.get("name", "Ada"), system=data.get("system", ""), sampling=data.get("sampling", {}))

    def messages(self, history: list[dict[str, str]], prompt: str) -> list[dict[str, str]]:
        """The chat up to the reply: system (unless `history` brings one), earlier turns, the last user turn."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        if history and history[0]["role"] == "system":
            system = []
        return [*system, *history, {"role": "user", "content": prompt}]


def load(path: Path) -> Persona:
    """Raises BadInput when the file is missing, no TOML, or a field has the wrong type."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot read the persona ({error.strerror}); set data.persona in ada.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not valid TOML: {error}") from None
    sampling = data.get("sampling", {})
    if not isinstance(data.get("system", ""), str) or not isinstance(data.get("name", ""), str):
        raise BadInput(f"{path}: name and system must be text")
    if not isinstance(sampling, dict) or not all(isinstance(v, int | float) for v in sampling.values()):
        raise BadInput(f"{path}: [sampling] must hold numbers")
    return Persona(name=data.get("name", "Ada"), system=data.get("system", "").strip(), sampling=sampling)
