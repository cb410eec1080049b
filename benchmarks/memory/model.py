"""A model folder with random weights and a byte tokenizer, for a preset of the planner. No download."""

from __future__ import annotations

import sys
from pathlib import Path

from ada_tui.planner.shapes import PRESETS, Shape, to_config

CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"


def write(shape: Shape, folder: Path) -> None:
    """Random bf16 weights in `folder`, as safetensors, with config and tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    fields = to_config(shape)
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    config.bos_token_id, config.eos_token_id, config.pad_token_id = 256, 257, 258
    model.generation_config = transformers.GenerationConfig(eos_token_id=257, pad_token_id=258, do_sample=True)
    model.save_pretrained(folder)
    alphabet = {token: i for i, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|im_start|>", eos_token="<|im_end|>", pad_token="<|endoftext|>",
        model_max_length=4096,
    )  # fmt: skip
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    write(PRESETS[sys.argv[1]], Path(sys.argv[2]))
