"""docs/worth-it.md says what was measured, and that nothing was where nothing was."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

from ada_tui.errors import BadInput
from ada_tui.evaluate.evaluation import read
from ada_tui.jobs import JobDir
from benchmarks import _results
from benchmarks.worth_it import __main__ as command
from benchmarks.worth_it import docs, profiles
from benchmarks.worth_it.run import Wanted
from tests.evaluate import stored


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(_results, "RESULTS", folder)
    monkeypatch.setattr(docs, "RESULTS", folder)
    return folder


def store(tmp_path: Path, name: str, job: JobDir, profile: str = "gpu") -> None:
    wanted = Wanted(
        "", profile, ("sft", "grpo"), 3, 1, False, changes={"grpo": {"beta": 0.0}}, folder=tmp_path / "work"
    )  # fmt: skip
    _results.write_result(name, command.result(wanted, read(job)))


def test_the_page_is_current() -> None:
    assert docs.PAGE.read_text(encoding="utf-8") == docs.page(), "run `python -m benchmarks.worth_it --docs`"


def test_without_results_the_page_names_the_missing_run_and_claims_nothing(results: Path) -> None:
    answer = docs.page().partition("## How it is asked")[0]
    assert "Not answered yet" in answer
    assert docs.COMMAND in answer
    assert not re.search(r"\d\.\d", answer)


def test_the_answer_is_what_was_stored(results: Path, tmp_path: Path) -> None:
    sft = stored.trained(tmp_path, "sft", stored.rows(20, first=100))
    job = stored.evaluation(tmp_path, {"base": ("", 0.2), "sft": (str(sft), 0.9), "grpo": (str(sft), 0.4)}, audit=True)
    store(tmp_path, "worth_it", job)
    page = docs.page()
    assert "Grpo is worse than sft" in page
    assert "Gates failed: preferred" in page
    figures = json.loads((results / "worth_it.json").read_text(encoding="utf-8"))["figures"]
    assert f"{figures['evaluation']['arms']['grpo']['total']:.3f}" in page
    assert len(figures["per_prompt"]["sft"]) == 40
    assert figures["settings"]["grpo"]["beta"] == 0.0
    assert str(tmp_path) not in json.dumps(figures)
    assert "Variants" not in page


def test_a_cheat_is_the_headline(results: Path, tmp_path: Path) -> None:
    cheat = stored.trained(tmp_path, "grpo", stored.rows(40), rewards=stored.CONFIG.to_dict())
    store(tmp_path, "worth_it", stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": (str(cheat), 0.9)}))
    assert "**This comparison proves nothing" in docs.page()


def test_variants_are_listed_and_the_tiny_profile_never_is(results: Path, tmp_path: Path) -> None:
    job = stored.evaluation(tmp_path, {"sft": ("", 0.5), "grpo": ("", 0.9)})
    store(tmp_path, "worth_it_beta0", job)
    store(tmp_path, "worth_it_tiny", job, profile="tiny")
    page = docs.page()
    assert "| beta0 |" in page
    assert "| tiny |" not in page
    assert "Not answered yet" in page


def test_settings_from_the_command_line() -> None:
    assert doctest.testmod(command).failed == 0
    with pytest.raises(BadInput, match=r"SECTION\.KEY=VALUE"):
        command.changes(["beta=1"])


@pytest.mark.parametrize("profile", profiles.PROFILES)
def test_every_profile_is_a_valid_setting(profile: str, tmp_path: Path) -> None:
    wanted = Wanted("", profile, profiles.ARMS[profile], 3, 1, False, folder=tmp_path)
    settings = wanted.settings(wanted.workspace())
    assert settings.rewards.audit
    assert settings.grpo.steps == profiles.PROFILES[profile]["grpo"]["steps"]
    assert set(profiles.SEEDED) <= set(profiles.ARMS[profile])
