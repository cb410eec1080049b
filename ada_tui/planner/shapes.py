"""What the planner knows of a model: the sizes in its config.json. Presets for common models, any other from its file.

Not here: weights, tokenizers, downloads. Anybody may import it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ada_tui.errors import BadInput

LIMIT = 10**9
"""No size in a config.json is plausibly larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder-only transformer with gated MLP (Llama, Qwen, Gemma, SmolLM and their like)."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool = True
    """Input embedding and output head are one matrix."""
    qkv_bias: bool = False
    family: str = "llama"
    """model_type of config.json."""

    def linears(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each linear of one layer, by the name that LoRA targets use."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": (self.hidden, q),
            "k_proj": (self.hidden, kv),
            "v_proj": (self.hidden, kv),
            "o_proj": (q, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def linear_parameters(self) -> int:
        """Parameters in the linears of all layers: what 4-bit quantises."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears().values())

    @property
    def other_parameters(self) -> int:
        """Embedding, untied head, norms and biases: what stays in 16 bit."""
        biases = (self.heads + 2 * self.kv_heads) * self.head_dim if self.qkv_bias else 0
        norms = (2 * self.layers + 1) * self.hidden
        return self.vocab * self.hidden * (1 if self.tied else 2) + norms + self.layers * biases

    @property
    def parameters(self) -> int:
        return self.linear_parameters + self.other_parameters

    def lora_parameters(self, rank: int, targets: tuple[str, ...] = ()) -> int:
        """Parameters of an adapter of `rank` on `targets` (empty = every linear)."""
        chosen = [size for name, size in self.linears().items() if not targets or name in targets]
        return self.layers * rank * sum(inputs + outputs for inputs, outputs in chosen)

    @property
    def kv_bytes_per_token(self) -> int:
        """Key and value of all layers for one token of one sequence, in 16 bit."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2


def _qwen(name: str, hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, **more: Any) -> Shape:
    values: dict[str, Any] = {"vocab": 151_936, "family": "qwen2", "qkv_bias": True, "head_dim": hidden // heads}
    return Shape(
        name=name, hidden=hidden, intermediate=intermediate, layers=layers, heads=heads, kv_heads=kv_heads,
        **{**values, **more},
    )  # fmt: skip


def _llama(name: str, hidden: int, intermediate: int, layers: int, heads: int, kv_heads: int, **more: Any) -> Shape:
    values: dict[str, Any] = {"vocab": 128_256, "head_dim": hidden // heads}
    return Shape(
        name=name, hidden=hidden, intermediate=intermediate, layers=layers, heads=heads, kv_heads=kv_heads,
        **{**values, **more},
    )  # fmt: skip


PRESETS: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        _qwen("qwen2.5-0.5b", 896, 4864, 24, 14, 2),
        _qwen("qwen2.5-1.5b", 1536, 8960, 28, 12, 2),
        _qwen("qwen2.5-3b", 2048, 11008, 36, 16, 2),
        _qwen("qwen2.5-7b", 3584, 18944, 28, 28, 4, vocab=152_064, tied=False),
        _llama("llama-3.2-1b", 2048, 8192, 16, 32, 8),
        _llama("llama-3.2-3b", 3072, 8192, 28, 24, 8),
        _llama("smollm2-135m", 576, 1536, 30, 9, 3, vocab=49_152),
        _llama("smollm2-360m", 960, 2560, 32, 15, 5, vocab=49_152),
        _llama("smollm2-1.7b", 2048, 8192, 24, 32, 32, vocab=49_152),
        _llama("gemma-2-2b", 2304, 9216, 26, 8, 4, head_dim=256, vocab=256_000, family="gemma2"),
        _llama("gemma-3-1b", 1152, 6912, 26, 4, 1, head_dim=256, vocab=262_144, family="gemma3_text"),
    )
}
"""By the name that `--model` takes. Instruct and base variants have the same sizes."""

EMBEDDED_PRESET = "smollm2-135m"


def resolve(model: str) -> Shape:
    """The shape of `model`: a preset, a hub id of a preset, a model folder, or a config.json.

    Raises:
        BadInput: no preset and no such file, or a config.json that lacks what is needed.
    """
    if model == "embedded":
        return PRESETS[EMBEDDED_PRESET]
    path = Path(model).expanduser()
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return from_config_file(path)
    short = model.rsplit("/", 1)[-1].lower()
    for suffix in ("-bnb-4bit", "-unsloth", "-instruct", "-it"):
        short = short.removesuffix(suffix)
    if short in PRESETS:
        return PRESETS[short]
    raise BadInput(
        f"--model {model!r}: neither a known model nor a folder with config.json; known: {', '.join(PRESETS)}"
    )


def from_config_file(path: Path) -> Shape:
    """The shape in a Hugging Face config.json. Raises BadInput."""
    try:
        config = orjson.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{path}: not valid JSON ({error}); give a Hugging Face config.json") from None
    if not isinstance(config, dict):
        raise BadInput(f"{path}: a JSON {type(config).__name__}, not an object; give a Hugging Face config.json")
    return from_config(config, where=str(path))


def from_config(config: Mapping[str, Any], *, where: str = "config.json") -> Shape:
    """The shape that the fields of a config.json describe. Raises BadInput naming the field."""
    if isinstance(config.get("text_config"), dict):
        config = config["text_config"]

    def size(field: str, default: int | None = None) -> int:
        value = config.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= LIMIT:
            problem = "missing" if value is None else f"not a plausible size ({value!r:.40})"
            raise BadInput(f"{where}: {field} is {problem}; the planner needs a decoder-only Hugging Face config.json")
        return value

    heads, hidden = size("num_attention_heads"), size("hidden_size")
    family = str(config.get("model_type", "llama"))
    return Shape(
        name=str(config.get("_name_or_path") or Path(where).parent.name or "model")[:80],
        hidden=hidden,
        intermediate=size("intermediate_size"),
        layers=size("num_hidden_layers"),
        heads=heads,
        kv_heads=size("num_key_value_heads", heads),
        head_dim=size("head_dim", max(1, hidden // heads)),
        vocab=size("vocab_size"),
        tied=bool(config.get("tie_word_embeddings", True)),
        qkv_bias=bool(config.get("attention_bias", family == "qwen2")),
        family=family,
    )


def to_config(shape: Shape) -> dict[str, Any]:
    """The fields of a Hugging Face config.json for `shape`: what a benchmark builds random weights from."""
    plain = dataclasses.asdict(shape)
    return {
        "model_type": shape.family,
        "hidden_size": plain["hidden"],
        "intermediate_size": plain["intermediate"],
        "num_hidden_layers": plain["layers"],
        "num_attention_heads": plain["heads"],
        "num_key_value_heads": plain["kv_heads"],
        "head_dim": plain["head_dim"],
        "vocab_size": plain["vocab"],
        "tie_word_embeddings": plain["tied"],
        "max_position_embeddings": 4096,
    }
