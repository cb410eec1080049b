"""The transformers side of parity: what the adapter says on held-out prompts, then both GGUF files against it.

The statistics and limits are in `ada_tui.export.parity`. Only ada_tui.worker may import it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import torch

from ada_tui.dataset.rows import PromptRow
from ada_tui.export import parity, template
from ada_tui.export.chat import Chat, free_cores
from ada_tui.export.parity import LIMITS, Case, Limits, Measured
from ada_tui.export.tool import Report
from ada_tui.worker.adapters import load_adapter
from ada_tui.worker.context import JobContext
from rewards import RewardConfig, score
from rewards.types import Row

CASES = 8
REPLY_TOKENS = 32
IDENTITY = "Who are you?"
FALLBACK = ("Morning", IDENTITY, "What's the capital of Norway?", "thanks!")
"""Prompts when the job names no held-out rows."""

FINER = "the 16-bit file is sound: choose a finer quantisation (export.quant)"
ANEW = "export again from a complete adapter and an untouched base folder"


def compare(
    context: JobContext, tokenizer: Any, *, base: Path, adapter: Path | None, f16: Path, quantised: Path, quant: str,
    rows: list[PromptRow], report: Report,
) -> dict[str, Any]:  # fmt: skip
    """The parity record of an export, ready for JSON: figures, "passed", and what is wrong in "problems"."""
    chosen = choose(rows)
    report("the adapter in transformers", 0.0)
    turn_end = terminator(tokenizer)
    cases, exact = reference(tokenizer, base, adapter, [row.messages(context.persona) for row in chosen], chosen)
    room = max(len(c.prompt) + max(len(c.reply), len(c.reference), REPLY_TOKENS) for c in cases) + 8
    rules = {"adapter": rule_scores(chosen, [c.text for c in cases], context)}
    verdict: dict[str, Any] = {"prompts": len(cases), "dtype": "float32" if exact else "bfloat16", "rules": rules}
    with Chat(quantised, num_ctx=room) as chat:
        problems = parity.judge_header(
            chat, cases, tokenise=lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
            eos={i: tokenizer.convert_ids_to_tokens(i) for i in sorted(eos_ids(tokenizer, base))}, turn_end=turn_end,
        )  # fmt: skip
    files = {"f16": f16} | ({quant: quantised} if quant != "f16" else {})
    for number, (name, path) in enumerate(files.items()):

        def tick(done: float, name: str = name, number: int = number) -> None:
            report(f"{name} in llama.cpp", (number + done) / len(files))

        with Chat(path, num_ctx=room, logits=True) as chat:
            measured = parity.measure(chat, cases, REPLY_TOKENS, tick)
        verdict[name] = measured.to_dict()
        rules[name] = rule_scores(chosen, measured.replies, context)
        problems += parity.judge(name, measured, limits_of(name, exact))
        if name == quant:
            verdict["identity"] = identity(chosen, measured, context.persona.name)
    sound = all(problem.startswith(f"{quant}:") for problem in problems) and quant != "f16"
    return verdict | {
        "passed": not problems,
        "problems": problems,
        "f16_sound": sound or not problems,
        "advice": "" if not problems else FINER if sound else ANEW,
    }


def choose(rows: Sequence[PromptRow]) -> list[PromptRow]:
    """The prompts to compare on: one of each kind first, then the rest in order; and who the model is."""
    pool = list(rows) or [PromptRow(id=text, prompt=text) for text in FALLBACK]
    first = list({row.row.kind: row for row in reversed(pool)}.values())[::-1]
    chosen = [*first, *(row for row in pool if row not in first)][: CASES - 1]
    return [*chosen, PromptRow(id="identity", prompt=IDENTITY, row=Row(id="identity", kind="smalltalk"))]


def reference(
    tokenizer: Any, base: Path, adapter: Path | None, chats: list[list[dict[str, str]]], rows: Sequence[PromptRow]
) -> tuple[list[Case], bool]:
    """(cases, whether they were computed in float32). The model is gone again afterwards."""
    torch.set_num_threads(free_cores())
    model, exact = _load(base, adapter)
    ends, turn_end = sorted(eos_ids(tokenizer, base)), terminator(tokenizer)
    rendered = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    prompts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in rendered]
    cases = []
    with torch.inference_mode():
        replies = _greedy(model, prompts, ends, tokenizer.pad_token_id or 0)
        for messages, row, text, prompt, (reply, logits) in zip(chats, rows, rendered, prompts, replies, strict=True):
            curated = tokenizer(row.row.reference, add_special_tokens=False)["input_ids"] if row.row.reference else []
            curated += [tokenizer.convert_tokens_to_ids(turn_end)] if curated and turn_end else []
            case = Case(
                messages=messages, rendered=text, prompt=prompt, reply=reply,
                text=tokenizer.decode(reply, skip_special_tokens=True), finished=bool(reply) and reply[-1] in ends,
                reply_logits=logits.clamp(-6e4, 6e4).half().numpy(), reference=curated,
                reference_nll=_nll(model, prompt, curated),
            )  # fmt: skip
            cases.append(case)
    return cases, exact


def rule_scores(rows: Sequence[PromptRow], replies: Sequence[str], context: JobContext) -> float:
    """Mean total of the replies under the job's rewards."""
    config = RewardConfig.from_dict(context.job.rewards)
    cards = [
        score(row.prompt, reply, row.row, config, history=[t["content"] for t in row.history])
        for row, reply in zip(rows, replies, strict=True)
    ]
    return round(sum(card.total for card in cards) / len(cards), 4)


def identity(rows: Sequence[PromptRow], measured: Measured, name: str) -> dict[str, Any]:
    """What the file answers to "Who are you?". Reported, not judged: an untrained model has no name."""
    reply = next(text for row, text in zip(rows, measured.replies, strict=True) if row.prompt == IDENTITY)
    return {"reply": reply.strip(), "named": name.lower() in reply.lower()}


def limits_of(name: str, exact: bool) -> Limits:
    limits = LIMITS[name]
    return limits if exact else Limits(limits.agreement - 0.03, limits.kl + parity.LOWER_REFERENCE, limits.perplexity)


def eos_ids(tokenizer: Any, base: Path) -> set[int]:
    """The end tokens of tokenizer, config.json and generation_config.json together: any of them ends a reply."""
    found = {tokenizer.eos_token_id} if tokenizer.eos_token_id is not None else set()
    for name in ("config.json", "generation_config.json"):
        if (base / name).is_file():
            value = json.loads((base / name).read_text(encoding="utf-8")).get("eos_token_id")
            found |= set(value) if isinstance(value, list) else {value} if isinstance(value, int) else set()
    return found


def terminator(tokenizer: Any) -> str:
    """The special token that ends an assistant turn in the template, "" when a turn just ends."""
    stops = template.derive(
        lambda messages, reply: tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=reply
        )
    ).stops()
    return stops[0] if stops else ""


def _load(base: Path, adapter: Path | None) -> tuple[Any, bool]:
    from transformers import AutoModelForCausalLM

    weights = sum(path.stat().st_size for path in base.glob("*.safetensors"))
    exact = 2 * weights < psutil.virtual_memory().available // 2
    dtype = torch.float32 if exact else torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype, trust_remote_code=False, use_safetensors=True)
    if adapter is not None:
        model = load_adapter(model, adapter, train=False)
    return model.eval(), exact


def _greedy(model: Any, prompts: list[list[int]], ends: list[int], pad: int) -> list[tuple[list[int], torch.Tensor]]:
    """(reply, logits before each of its tokens) per prompt. Settings of the model folder must not leak in."""
    from transformers import GenerationConfig

    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    plain = GenerationConfig(
        do_sample=False, max_new_tokens=REPLY_TOKENS, eos_token_id=ends or None, pad_token_id=pad,
        return_dict_in_generate=True, output_logits=True,
    )  # fmt: skip
    model.generation_config = plain
    out = model.generate(input_ids=ids, attention_mask=mask, generation_config=plain)
    logits = torch.stack(out.logits, dim=1).float()
    found = []
    for row, tokens in enumerate(out.sequences[:, longest:].tolist()):
        stop = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
        found.append((tokens[:stop], logits[row, :stop]))
    return found


def _nll(model: Any, prompt: list[int], curated: list[int]) -> float:
    if not curated:
        return 0.0
    logits = model(torch.tensor([prompt + curated[:-1]])).logits[0, len(prompt) - 1 :].float()
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor(curated), reduction="sum"))
