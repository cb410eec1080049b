"""What a training library must offer to run our jobs, and the choice between them.

A backend loads model, tokenizer and adapter, and says what it overrode. The job scripts build the TRL trainers
themselves: Unsloth patches those very classes. Only ada_tui.worker may import it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ada_tui.errors import BadInput
from ada_tui.worker.context import JobContext


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready for its job, and what the events say about it."""

    model: Any
    """A `PeftModel` when an adapter was given, else the base model."""
    tokenizer: Any
    """Left-padding, pad is not eos, with a chat template."""
    device: str
    dtype: str
    base: str
    """Folder or hub id of the base model."""
    reason: str
    """Why this device and dtype."""


class Backend(Protocol):
    """One way to load and train. Stateless."""

    name: str

    def load(self, context: JobContext, *, train: bool, adapter: str | None = None) -> Loaded:
        """Load what `context.job.model` names; `adapter` overrides its adapter ("" = none).

        `train` makes the adapter trainable and picks a dtype that trains well.

        Raises:
            BadInput: the model or adapter cannot be used; the message says why.
        """

    def trainer_args(self, loaded: Loaded) -> dict[str, Any]:
        """Keyword arguments of `transformers.TrainingArguments` that follow from the backend and the device."""


def choose(context: JobContext) -> tuple[Backend, str]:
    """(backend, why). Raises BadInput when the wanted one is not available."""
    from ada_tui.worker.backends.trl import TrlBackend

    wanted = context.job.model.get("backend", "auto")
    if wanted == "unsloth":
        raise BadInput('model.backend = "unsloth" is not available in this version; use "trl" or "auto" in ada.toml')
    return TrlBackend(), "asked for" if wanted == "trl" else "plain TRL: Unsloth is not available"
