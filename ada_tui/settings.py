"""ada.toml and the environment as one typed tree; the docstring under a field is its documentation.

Not here: where the workspace is (`workspace.py`), reward weights (`data/rewards/`), live control (`protocol.Control`).
Anybody may import it. Environment variables win over ada.toml: ADA_GRPO__STEPS=50, ADA_MODEL__BASE=....
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from ada_tui.errors import BadInput

EMBEDDED = "embedded"
"""The name of the model that comes with the install (SmolLM2-135M-Instruct)."""


class Section(BaseModel):
    """One table of ada.toml. Unknown keys are errors: a misspelt setting must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


class ModelSettings(Section):
    """[model]: what is trained."""

    base: str = EMBEDDED
    """"embedded", a Hugging Face model folder, or a hub id such as Qwen/Qwen2.5-3B-Instruct."""
    adapter: str = ""
    """Folder of the SFT LoRA to start from; empty = none yet."""
    backend: Literal["auto", "trl", "unsloth"] = "auto"
    """auto takes Unsloth where CUDA and the package are present, plain TRL otherwise."""
    bits: Literal[4, 16] = 16
    """Bits of the base weights while training. 4 = NF4 (CUDA only); 16 = bf16 (float32 on a CPU that lacks bf16)."""
    trust_remote_code: bool = False
    """Let a model folder run its own Python. Leave it off unless you wrote that code."""


class DataSettings(Section):
    """[data]: the chats and who speaks in them."""

    chats: list[str] = Field(default=["data/ada/conversations.jsonl"])
    """Chat files; any of the formats that `ada-tui data check` knows."""
    persona: str = "data/ada/persona.toml"
    """The persona file: name, system prompt, sampling."""
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of topic clusters that is never trained on and only used to compare."""
    seed: int = 7
    """Seed of the split."""


class RewardSettings(Section):
    """[rewards]: where the rules' weights and phrase lists are."""

    folder: str = "data/rewards"
    """Folder with weights.toml, fillers/ and lexicons/."""
    own: str = "my_rewards"
    """Folder with Python files of your own rewards."""
    audit: bool = False
    """Withhold a quarter of the filler phrases from training, so that a comparison can count them."""


class LoraSettings(Section):
    """[lora]: the adapter that SFT makes. GRPO goes on with the adapter it is given, whatever its rank."""

    rank: int = Field(default=64, ge=1, le=1024)
    """LoRA rank r."""
    alpha: int = Field(default=128, ge=1)
    """LoRA alpha."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """LoRA dropout; 0 keeps Unsloth's fast path."""
    targets: Literal["all-linear"] | list[str] = "all-linear"
    """Modules that get an adapter."""


class SftSettings(Section):
    """[sft]: supervised fine-tuning on the chats."""

    epochs: float = Field(default=2.0, gt=0, le=100)
    """Passes over the training rows."""
    steps: int = Field(default=0, ge=0)
    """Optimiser steps; 0 = as many as `epochs` needs."""
    rows_per_step: int = Field(default=8, ge=1, le=4096)
    """Chats per optimiser step."""
    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    """Peak learning rate (cosine, 5 % warm-up)."""
    max_length: int = Field(default=2048, ge=16)
    """Longest chat in tokens; longer ones are cut."""
    seed: int = 7
    """Seed of shuffling and dropout."""


class GrpoSettings(Section):
    """[grpo]: reinforcement with the rules. There is no batch size: it follows from group and prompts_per_step."""

    steps: int = Field(default=100, ge=1)
    """Optimiser steps."""
    group: int = Field(default=8, ge=2, le=512)
    """Completions per prompt (G)."""
    prompts_per_step: int = Field(default=8, ge=1, le=4096)
    """Prompts per optimiser step."""
    max_completion: int = Field(default=0, ge=0)
    """Cap in tokens; 0 = 1.3 times the 95th percentile of the references."""
    learning_rate: float = Field(default=1e-5, gt=0, le=1)
    """Constant after a short warm-up. 1e-5 suits 3B with r 64."""
    beta: float = Field(default=0.04, ge=0, le=10)
    """Weight of the KL term against the SFT policy; 0 = none."""
    temperature: float = Field(default=1.0, gt=0, le=5)
    """Sampling temperature while training."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling while training."""
    loss: Literal["dapo", "dr_grpo", "bnpo", "grpo"] = "dapo"
    """TRL's loss_type. "grpo" favours short completions."""
    scale_rewards: Literal["batch", "group", "none"] = "batch"
    """What the advantages are divided by. "group" turns 0.90 against 0.91 into a large step."""
    aggregation: Literal["sum_then_normalize", "normalize_then_sum"] = "sum_then_normalize"
    """normalize_then_sum (GDPO) amplifies noise and does not allow live weights."""
    shuffle_rewards: bool = False
    """CONTROL, never for real training: deal out the totals of each group at random. A run with it must not improve."""
    iterations: int = Field(default=1, ge=1, le=16)
    """Optimiser passes per generation batch (TRL's num_iterations)."""
    save_every: int = Field(default=20, ge=1)
    """Steps between checkpoints."""
    seed: int = 7
    """Seed of prompts and sampling."""


class DpoSettings(Section):
    """[dpo]: preference training on (best, worst) of a sampled group, by the rules."""

    epochs: float = Field(default=1.0, gt=0, le=100)
    """Passes over the pairs."""
    steps: int = Field(default=0, ge=0)
    """Optimiser steps; 0 = as many as `epochs` needs."""
    pairs_per_step: int = Field(default=8, ge=1, le=4096)
    """Pairs per optimiser step."""
    learning_rate: float = Field(default=5e-6, gt=0, le=1)
    """Peak learning rate (cosine, 5 % warm-up). 5e-6 suits 3B with r 64."""
    beta: float = Field(default=0.1, gt=0, le=10)
    """How close to the SFT policy it stays."""
    max_length: int = Field(default=1024, ge=16)
    """Longest prompt with reply in tokens; longer ones are cut."""
    save_every: int = Field(default=1000, ge=1)
    """Steps between checkpoints; the last step is always saved."""
    seed: int = 7
    """Seed of shuffling."""


class EvalSettings(Section):
    """[evaluate]: the comparison on held-out rows."""

    samples: int = Field(default=4, ge=1, le=256)
    """Completions per held-out prompt and arm."""
    prompts: int = Field(default=0, ge=0)
    """Held-out prompts to use; 0 = all."""
    temperature: float = Field(default=0.7, gt=0, le=5)
    """Sampling temperature: the one the model is deployed with."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling."""
    max_completion: int = Field(default=0, ge=0)
    """Cap in tokens; 0 = as in training."""
    seed: int = 1234
    """Fixed, so that arms are compared on equal terms."""
    probes: bool = True
    """Also measure perplexity, KL from the SFT adapter and the capability items (some seconds per arm on a GPU)."""
    regression: str = "data/ada/regression.jsonl"
    """The capability items: short questions with checkable answers that are never trained on."""
    neutral: str = "data/ada/neutral.txt"
    """A plain text that has nothing to do with the chats; its perplexity shows how much the model forgot."""


class ExportSettings(Section):
    """[export]: from adapter to a file that Ollama serves."""

    quant: Literal["q4_k_m", "q5_k_m", "q6_k", "q8_0", "f16"] = "q4_k_m"
    """Quantisation of the GGUF."""
    tag: str = "ada"
    """Model name on the device."""
    host: str = ""
    """Where `e` delivers to, e.g. user@jetson.local; empty = export only."""
    num_ctx: int = Field(default=0, ge=0)
    """Context in the Modelfile; 0 = sized from system prompt and history."""
    llama_cpp: str = ""
    """A llama.cpp checkout whose converter and llama-quantize are used instead of the packages."""


class WorkerSettings(Section):
    """[worker]: the process that trains."""

    python: str = ""
    """Interpreter of the worker, e.g. of your Unsloth environment; empty = the one that runs the app."""
    report_to: list[str] = Field(default=[])
    """Trackers that TRL reports to: tensorboard, wandb, trackio. Empty = nothing leaves this machine."""


class UiSettings(Section):
    """[ui]: how the app looks."""

    theme: str = "ada-dark"
    """ada-dark or ada-light."""


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix="ADA_", env_nested_delimiter="__", extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    rewards: RewardSettings = RewardSettings()
    lora: LoraSettings = LoraSettings()
    sft: SftSettings = SftSettings()
    grpo: GrpoSettings = GrpoSettings()
    dpo: DpoSettings = DpoSettings()
    evaluate: EvalSettings = EvalSettings()
    export: ExportSettings = ExportSettings()
    worker: WorkerSettings = WorkerSettings()
    ui: UiSettings = UiSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then ada.toml (given by `load`)."""
        return (env_settings, init_settings)


DEMO_PROFILE: dict[str, dict[str, Any]] = {
    "lora": {"rank": 16, "alpha": 32},
    "sft": {"epochs": 2.0, "rows_per_step": 8, "learning_rate": 1e-3, "max_length": 512},
    "grpo": {
        "steps": 10, "group": 8, "prompts_per_step": 4, "max_completion": 64,
        "learning_rate": 3e-4, "beta": 0.02, "save_every": 5,
    },
    "evaluate": {"samples": 4, "max_completion": 64, "probes": False},
}  # fmt: skip
"""What `ada-tui demo` sets: small enough for two CPU cores, real in every stage. ada.toml does not change it."""


def load(workspace: Path, overrides: dict[str, Any] | None = None) -> Settings:
    """Settings of `workspace`: environment over `overrides` over ada.toml over defaults. No ada.toml is fine.

    Raises:
        BadInput: ada.toml is no TOML, has an unknown key or an impossible value; the message names file and key.
    """
    path = workspace / "ada.toml"
    values: dict[str, Any] = {}
    if path.exists():
        try:
            values = TomlConfigSettingsSource(Settings, path)()
        except OSError as error:
            raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise BadInput(f"{path}: not valid TOML: {error}") from None
    for section, fields in (overrides or {}).items():
        values[section] = {**values.get(section, {}), **fields}
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = "unknown setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise BadInput(f"{path}: {where}: {problem}; see `ada-tui init --help` or docs/settings.md") from None
