"""The model that ada.toml names: is it there, does it end its turns, is the persona's system prompt rendered?

Reads the JSON files of a model folder only; the worker checks again with the loaded tokenizer before it trains.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from ada_tui import persona
from ada_tui.doctor.finding import Finding
from ada_tui.errors import BadInput
from ada_tui.settings import EMBEDDED, Settings
from ada_tui.workspace import Workspace


def check(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    yield from _files(workspace, settings)
    base = settings.model.base
    if base == EMBEDDED:
        return
    folder = workspace.resolve(base)
    if not folder.is_dir():
        looks_like_hub = base.count("/") == 1 and not base.startswith((".", "/", "~"))
        detail = f"{base}: a hub id, downloaded at the first run" if looks_like_hub else f"{folder}: no such folder"
        yield Finding("model", looks_like_hub, detail, "" if looks_like_hub else "set model.base in ada.toml")
        return
    yield from judge(folder)
    if settings.model.adapter:
        yield adapter(workspace.resolve(settings.model.adapter), base)


def _files(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    try:
        yield Finding("persona", True, f"{persona.load(workspace.resolve(settings.data.persona)).name} speaks")
    except BadInput as error:
        yield Finding("persona", False, str(error), "set data.persona in ada.toml")
    for name in settings.data.chats:
        path = workspace.resolve(name)
        there = path.is_file()
        fix = "" if there else "set data.chats in ada.toml, then `ada-tui data check FILE`"
        yield Finding("chats", there, str(path) if there else f"{path}: not there", fix)


def judge(folder: Path) -> Iterator[Finding]:
    """Findings on a model folder: tokenizer, chat template, end of turn, pad token."""
    config, tokenizer = _json(folder / "config.json"), _json(folder / "tokenizer_config.json")
    if not config:
        yield Finding("model", False, f"{folder / 'config.json'}: missing or no JSON", "download the model again")
        return
    yield Finding("model", True, f"{folder} ({', '.join(config.get('architectures') or ['?'])})")
    has_tokenizer = any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json"))
    yield Finding(
        "tokenizer",
        has_tokenizer,
        "present" if has_tokenizer else "missing",
        "" if has_tokenizer else "copy the base model's tokenizer files",
    )
    template_file = folder / "chat_template.jinja"
    template = (
        template_file.read_text(encoding="utf-8", errors="replace")
        if template_file.is_file()
        else tokenizer.get("chat_template")
    )
    yield Finding(
        "chat template",
        bool(template),
        "present" if template else "missing: a base model, not an instruct one?",
        "" if template else "use the Instruct model; its template is what deployment renders too",
    )
    yield _end_of_turn(folder, config, tokenizer, str(template or ""))
    eos, pad = _token(tokenizer, "eos_token"), _token(tokenizer, "pad_token")
    ok = bool(pad) and pad != eos
    fix = "" if ok else "the worker takes an unused token instead; a pad equal to eos teaches never to stop"
    yield Finding("pad token", True if not pad or pad == eos else ok, f"{pad or 'none'} (eos is {eos or 'none'})", fix)


def _end_of_turn(folder: Path, config: dict[str, Any], tokenizer: dict[str, Any], template: str) -> Finding:
    generation = _json(folder / "generation_config.json")
    ids = {name: _ids(source.get("eos_token_id")) for name, source in (("config", config), ("generation", generation))}
    eos = _token(tokenizer, "eos_token")
    detail = f"config {sorted(ids['config'])}, generation {sorted(ids['generation'])}, tokenizer {eos or 'none'}"
    if "<|im_end|>" in template and eos != "<|im_end|>":
        return Finding("end of turn", True, f"{detail}; the template ends turns with <|im_end|>: both stop generation")
    return Finding(
        "end of turn", bool(eos), detail, "" if eos else "the tokenizer names no eos token: replies would not end"
    )


def adapter(folder: Path, base: str) -> Finding:
    """Whether `folder` is a LoRA that can be loaded safely."""
    config = _json(folder / "adapter_config.json")
    if not config:
        return Finding("adapter", False, f"{folder}: no adapter_config.json", "set model.adapter to a PEFT folder")
    if not (folder / "adapter_model.safetensors").is_file():
        return Finding(
            "adapter",
            False,
            f"{folder}: no safetensors",
            "save it again with safe_serialization=True; pickles are refused",
        )
    of = str(config.get("base_model_name_or_path") or "?")
    return Finding(
        "adapter", True, f"r {config.get('r')}, alpha {config.get('lora_alpha')}, made for {of} (base is {base})"
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        data = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return data if isinstance(data, dict) else {}


def _token(tokenizer: dict[str, Any], name: str) -> str:
    value = tokenizer.get(name)
    return str(value.get("content", "")) if isinstance(value, dict) else str(value or "")


def _ids(value: Any) -> set[int]:
    return set(value) if isinstance(value, list) else set() if value is None else {int(value)}
