"""Does the GGUF say what the adapter says? Measures its next-token distributions against a reference, and judges.

The reference comes from transformers (`ada_tui.worker.parity`) as plain arrays. The 16-bit file and the quantised one
are measured apart: an error of the conversion shows in both, the loss of quantising only in the second. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ada_tui.export.chat import Chat, Messages, Reply

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

AWKWARD = (
    "it's 12:45 on 2024-01-31", "Grüße, 你好, \N{WAVING HAND SIGN}", "a  b\t c\n\n\nd ", "def f(x):\n    return x**2",
    "<|im_start|>user\nhi<|im_end|>\n", "\u202eabc\u202c \ufeff x",
)  # fmt: skip
"""Texts on which two tokenisers that are not quite the same part. No decomposed accents: Qwen's tokeniser composes
them first and llama.cpp does not, a difference that people's text does not show."""

TIE = 0.1
"""Nats within which two tokens count as equally likely: which of them is first then says nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file must reach."""

    agreement: float
    """Least share of positions at which both rank the same token first (`TIE` apart)."""
    kl: float
    """Highest mean KL divergence, in nats per token."""
    perplexity: float
    """Highest ratio of perplexities on the references (file to adapter)."""


LIMITS: dict[str, Limits] = {
    "f16": Limits(agreement=0.96, kl=0.01, perplexity=1.03),
    "q8_0": Limits(agreement=0.94, kl=0.02, perplexity=1.04),
    "q6_k": Limits(agreement=0.92, kl=0.04, perplexity=1.06),
    "q5_k_m": Limits(agreement=0.82, kl=0.18, perplexity=1.25),
    "q4_k_m": Limits(agreement=0.80, kl=0.20, perplexity=1.25),
}
"""Set with room above what the embedded model shows; its q5_k_m is refused, for the reason in docs/export.md."""

LOWER_REFERENCE = 0.02
"""Added to the KL limit when the reference itself ran in bfloat16 (no memory for float32)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt, what the adapter in transformers made of it, and the curated reply."""

    messages: Messages
    rendered: str
    prompt: list[int]
    """Token ids up to the reply."""
    reply: list[int]
    """Greedy reply of the adapter, the end token included when it came."""
    text: str
    finished: bool
    reply_logits: npt.NDArray[np.float16]
    """(len(reply), vocabulary): what the adapter thought before each token of `reply`."""
    reference: list[int]
    """The curated reply and the end token; [] = none known."""
    reference_nll: float
    """Sum over `reference` of -log p, in nats, by the adapter."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One file against the adapter."""

    agreement: float
    kl: float
    kl_worst: float
    """99th percentile over positions."""
    perplexity: float | None
    """On the references; None = there were none."""
    perplexity_adapter: float | None
    same_replies: float
    """Share of greedy replies that are equal to the letter."""
    tokens_per_s: float
    replies: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {k: round(v, 5) if isinstance(v, float) else v for k, v in asdict(self).items()}


def measure(chat: Chat, cases: Sequence[Case], max_tokens: int, tick: Callable[[float], None]) -> Measured:
    """Run `cases` through the file behind `chat` (made with `logits=True` and room for the longest case)."""
    import numpy as np

    agree, divergence, nll, count = [], [], 0.0, 0
    replies: list[Reply] = []
    for number, case in enumerate(cases):
        if case.reply:
            start = len(case.prompt) - 1
            mine = log_softmax(chat.scores(case.prompt + case.reply[:-1])[start:])
            theirs = log_softmax(case.reply_logits.astype(np.float32))
            width = min(mine.shape[1], theirs.shape[1])  # padded embeddings: one side may have rows no token uses
            mine, theirs = mine[:, :width], theirs[:, :width]
            first = np.take_along_axis(theirs, mine.argmax(1)[:, None], axis=1)[:, 0]
            agree += (first >= theirs.max(1) - TIE).tolist()
            divergence += (np.exp(theirs) * (theirs - mine)).sum(1).tolist()
        if case.reference:
            start = len(case.prompt) - 1
            scores = log_softmax(chat.scores(case.prompt + case.reference[:-1])[start:])
            nll -= float(scores[np.arange(len(case.reference)), case.reference].sum())
            count += len(case.reference)
        replies.append(chat.reply(case.messages, max_tokens=max_tokens))
        tick((number + 1) / len(cases))
    spoken = sum(reply.tokens for reply in replies)
    return Measured(
        agreement=float(np.mean(agree)) if agree else 0.0,
        kl=float(np.mean(divergence)) if divergence else math.inf,
        kl_worst=float(np.percentile(divergence, 99)) if divergence else math.inf,
        perplexity=_exp(nll / count) if count else None,
        perplexity_adapter=_exp(sum(case.reference_nll for case in cases) / count) if count else None,
        same_replies=float(np.mean([r.text.strip() == c.text.strip() for r, c in zip(replies, cases, strict=True)])),
        tokens_per_s=spoken / max(1e-9, sum(reply.seconds for reply in replies)),
        replies=[reply.text for reply in replies],
    )


def judge(name: str, measured: Measured, limits: Limits) -> list[str]:
    """What is wrong with a file, one line each; [] = it says what the adapter says. NaN never passes."""
    found = []
    if not measured.agreement >= limits.agreement:
        found.append(f"{name}: {measured.agreement:.1%} of the tokens agree, wanted {limits.agreement:.0%}")
    if not measured.kl <= limits.kl:
        found.append(f"{name}: KL to the adapter {measured.kl:.4f} nats per token, at most {limits.kl}")
    if measured.perplexity is not None and measured.perplexity_adapter is not None:
        ratio = measured.perplexity / measured.perplexity_adapter
        if not ratio <= limits.perplexity:
            found.append(
                f"{name}: perplexity on the references {ratio:.2f} times the adapter's, at most {limits.perplexity}"
            )
    return found


def judge_header(
    chat: Chat, cases: Sequence[Case], tokenise: Callable[[str], list[int]], eos: Mapping[int, str], turn_end: str
) -> list[str]:
    """What is wrong with tokeniser, chat template and end token of a file, one line each.

    Args:
        tokenise: text -> ids, as training did.
        eos: the model's end tokens, id -> text.
        turn_end: text that ends an assistant turn in the training template.
    """
    found = []
    for text in [*AWKWARD, *(case.rendered for case in cases)]:
        if (mine := chat.tokenize(text)) != (theirs := tokenise(text)):
            found.append(f"tokeniser: {text[:40]!r} is {mine[:8]}... in the file and {theirs[:8]}... in training")
            break
    for case in cases:
        if (shown := chat.render(case.messages)) != case.rendered:
            found.append(f"chat template: {shown[-60:]!r} in the file, {case.rendered[-60:]!r} in training")
            break
    stated = chat.metadata.get("tokenizer.ggml.eos_token_id")
    if not eos:
        found.append(
            "end token: the model names none, so replies would never end; set eos_token in its tokenizer files"
        )
    elif stated is None or int(stated) not in eos:
        found.append(f"end token: the file says {stated}, the model {', '.join(f'{i} {t}' for i, t in eos.items())}")
    elif turn_end and turn_end not in eos.values():
        found.append(f"end token: the template ends a turn with {turn_end}, which is none of the model's end tokens")
    return found


def log_softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Row-wise, in float32; shape kept."""
    import numpy as np

    shifted = logits - logits.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float32] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
