"""ada.toml: defaults, environment, errors with file and key; the workspace that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ada_tui import persona, settings, workspace
from ada_tui.errors import BadInput
from ada_tui.settings import DEMO_PROFILE, Section, Settings
from ada_tui.workspace import Workspace


def test_no_file_means_defaults(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path)
    assert loaded == Settings()
    assert (loaded.lora.rank, loaded.lora.alpha) == (64, 128)


def test_environment_over_overrides_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ada.toml").write_text("[grpo]\nsteps = 5\ngroup = 4\nbeta = 0.5\n")
    monkeypatch.setenv("ADA_GRPO__STEPS", "7")
    loaded = settings.load(tmp_path, {"grpo": {"steps": 6, "group": 16}})
    assert (loaded.grpo.steps, loaded.grpo.group, loaded.grpo.beta) == (7, 16, 0.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[grpo]\nstepps = 5\n", "grpo.stepps: unknown setting"),
        ("[grpo]\ngroup = 1\n", "grpo.group: Input should be greater than or equal to 2"),
        ("[model]\nbits = 8\n", "model.bits"),
        ("[sft\n", "not valid TOML"),
        ("steps = 3\n", "steps: unknown setting"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "ada.toml").write_text(text)
    with pytest.raises(BadInput) as caught:
        settings.load(tmp_path)
    assert says in str(caught.value)
    assert str(tmp_path / "ada.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_setting_is_documented() -> None:
    for name, section in Settings.model_fields.items():
        assert section.annotation is not None
        assert issubclass(section.annotation, Section)
        for field, info in section.annotation.model_fields.items():
            assert info.description, f"{name}.{field} has no docstring"


def test_the_demo_profile_names_real_settings() -> None:
    assert settings.load(Path("/nonexistent"), {k: dict(v) for k, v in DEMO_PROFILE.items()}).grpo.prompts_per_step >= 4


def test_init_lays_out_and_keeps_what_exists(tmp_path: Path) -> None:
    (tmp_path / "ada.toml").write_text("[grpo]\nsteps = 3\n")
    made = workspace.init(tmp_path)
    assert made.settings().grpo.steps == 3
    for name in (
        "data/ada/conversations.jsonl",
        "data/ada/persona.toml",
        "data/rewards/weights.toml",
        "my_rewards",
        "checkpoints",
    ):
        assert (tmp_path / name).exists(), name
    (tmp_path / "data" / "ada" / "persona.toml").write_text("name = 'Bo'\n")
    workspace.init(tmp_path)
    assert persona.load(tmp_path / "data/ada/persona.toml").name == "Bo"


def test_init_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "ws").write_text("a file")
    with pytest.raises(BadInput, match="cannot lay out a workspace"):
        workspace.init(tmp_path / "ws")


def test_data_falls_back_to_the_bundled(tmp_path: Path) -> None:
    here = Workspace(tmp_path)
    assert here.resolve("data/ada/persona.toml").is_file()
    assert here.resolve("data/other.jsonl") == tmp_path / "data/other.jsonl"


def test_the_bundled_persona() -> None:
    ada = persona.load(workspace.bundled_data() / "ada" / "persona.toml")
    assert ada.name == "Ada"
    assert "\n" not in ada.system
    assert persona.Persona.from_dict(ada.to_dict()) == ada
    messages = ada.messages([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey"}], "Morning")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    own = ada.messages([{"role": "system", "content": "Be Bo."}], "Morning")
    assert [message["content"] for message in own] == ["Be Bo.", "Morning"]


@pytest.mark.parametrize("text", ["name = 3\n", "[sampling]\ntemperature = 'hot'\n", "system = [\n"])
def test_a_bad_persona_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "persona.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"persona\.toml"):
        persona.load(path)
