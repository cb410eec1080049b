"""`ada-tui plan` as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ada_tui.planner.shapes import PRESETS, to_config

CARD = ("--model", "qwen2.5-3b", "--gpu-gb", "24", "--reserve-gb", "0.6")


def call(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "ADA_CACHE": str(tmp_path / "cache"), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "ada_tui", "-w", str(tmp_path), "plan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def answer(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    done = call(tmp_path, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_the_document_has_what_it_promises(tmp_path: Path) -> None:
    data = answer(tmp_path, *CARD)
    assert {"fits", "peak_gib", "torch_peak_gib", "parts", "max_group", "advice"} <= set(data)
    assert data["request"]["backend"] == "trl"
    assert data["request"]["beta"] == 0
    assert data["request"]["prompt"] == 86
    assert data["request"]["at_once"] == data["request"]["group"]
    assert data["request"]["rank"] == 64
    assert data["calibrated"] is False
    assert data["step_seconds"] is None  # no card of this size was measured


def test_a_plan_that_does_not_fit_is_still_an_answer(tmp_path: Path) -> None:
    data = answer(tmp_path, *CARD, "--group", "64", "--completion", "1024")
    assert data["fits"] is False
    assert data["left_gib"] < 0
    assert data["max_group"] < 64


def test_words_for_people(tmp_path: Path) -> None:
    done = call(tmp_path, *CARD, "--group", "16")
    assert "fits: " in done.stdout
    assert "largest group at 256 tokens" in done.stdout
    assert "estimated" in done.stdout


def test_a_folder_with_a_hostile_name_in_its_config(tmp_path: Path) -> None:
    config = {**to_config(PRESETS["smollm2-135m"]), "_name_or_path": "\x1b]0;x\x07[/bold]\u202e"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = call(tmp_path, "--model", str(tmp_path), "--gpu-gb", "8")
    assert done.returncode == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)


def test_the_board(tmp_path: Path) -> None:
    data = answer(tmp_path, "--model", "qwen2.5-3b", "--deploy")
    assert data["estimated"] is True
    assert data["sources"]
    assert {option["quant"] for option in data["options"] if option["fits"]} >= {"q4_k_m", "q8_0"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--group", "1"), "--group 1: must be from 2"),
        (("--group", "100000"), "--group 100000"),
        (("--group", "x"), "x"),
        (("--model", "nope"), "neither a known model"),
        (("--rank", "-4"), "--rank -4"),
        (("--gpu-gb", "nan"), "--gpu-gb nan"),
        (("--calibrate",), "--calibrate needs runs"),
        (("--calibrate", "grpo-9"), "no run 'grpo-9'"),
        (("grpo-9",), "runs go with --calibrate"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = call(tmp_path, "--model", "qwen2.5-3b", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
