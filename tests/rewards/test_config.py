"""Lists on disk: what is accepted, what is refused (with file and line), what a save keeps."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path

import pytest

from rewards import ConfigError, FillerEntry, RewardConfig, Row, score
from rewards.config import CATEGORIES
from rewards.files import format_filler, parse_filler
from rewards.hits import clean_sample, hit_counts, refuse_if_common
from rewards.phrases import check_regex

CONFIG = RewardConfig.default()


def test_the_packaged_lists_are_ample() -> None:
    counts = Counter(entry.category for entry in CONFIG.fillers)
    assert set(counts) == set(CATEGORIES)
    assert sum(counts.values()) >= 140
    assert len({entry.id for entry in CONFIG.fillers}) == len(CONFIG.fillers)


def test_no_entry_fires_often_in_a_clean_sample() -> None:
    sample = clean_sample()
    assert len(sample) >= 100
    worst = max(hit_counts(CONFIG.fillers, sample).values())
    assert worst <= 0.05 * len(sample)


def test_json_round_trip_is_complete() -> None:
    data = json.loads(json.dumps(CONFIG.to_dict()))
    again = RewardConfig.from_dict(data)
    assert again == CONFIG
    assert again.fingerprint() == CONFIG.fingerprint()
    assert CONFIG.with_weight("length", 3).fingerprint() != CONFIG.fingerprint()
    assert RewardConfig.from_dict({"weights": {"length": 2}}).fillers == CONFIG.fillers
    assert pickle.loads(pickle.dumps(CONFIG)) == CONFIG


@pytest.mark.parametrize(
    "bad", [{"weights": {"length": "much"}}, {"aggregation": "mean"}, {"fillers": [{"what": 1}]}, {"focus": {"x": {}}}]
)
def test_damaged_configurations_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        RewardConfig.from_dict({**CONFIG.to_dict(), **bad})


def test_save_and_load_keep_everything_and_comments(tmp_path: Path) -> None:
    CONFIG.save(tmp_path)
    assert RewardConfig.load(tmp_path) == CONFIG
    path = tmp_path / "fillers" / "flattery.txt"
    path.write_text(
        "# my own words\n" + path.read_text() + "\n1.00 any   flattery        what a star you are  # hers\n"
    )
    edited = RewardConfig.load(tmp_path)
    assert len(edited.fillers) == len(CONFIG.fillers) + 1
    less = edited.with_fillers([e for e in edited.fillers if e.pattern != "great question"]).with_weight("tone", 0.75)
    less.save(tmp_path)
    text = path.read_text()
    assert text.startswith("# my own words")
    assert "what a star you are  # hers" in text
    assert "flattery        great question\n" not in text
    assert "great question\n" in path.with_name("flattery.txt.bak").read_text()
    assert RewardConfig.load(tmp_path).fingerprint() == less.fingerprint()
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".")]


def test_a_saved_file_that_did_not_change_is_left_alone(tmp_path: Path) -> None:
    CONFIG.save(tmp_path)
    CONFIG.save(tmp_path)
    assert not list(tmp_path.rglob("*.bak"))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1.00 open flattery", "too few columns"),
        ("2.00 open flattery good one", "weight"),
        ("heavy open flattery good one", "no weight"),
        ("1.00 start flattery good one", "position"),
        ("1.00 open praise good one", "category"),
        ("1.00 any hype re:(a+)+", "quantifier"),
        ("1.00 any hype re:a*", "empty"),
        ("1.00 any hype re:(unclosed", "no valid"),
        ("1.00 any hype re:" + "x" * 300, "200"),
        ("1.00 open flattery great question", "already in"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, line: str, what: str) -> None:
    folder = tmp_path / "fillers"
    folder.mkdir()
    (folder / "mine.txt").write_text(f"# mine\n1.00 open flattery great question\n{line}\n")
    with pytest.raises(ConfigError, match=what) as caught:
        RewardConfig.load(tmp_path)
    assert f"{folder / 'mine.txt'}:3:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[weights]\nlength = 'x'\n", 2, "not a number"),
        ("[weights]\nlength = -1\n", 2, "number from 0"),
        ("\n[weights\n", 2, "TOML"),
        ("[wieghts]\n", 1, "unknown"),
        ("[bands]\nack = [9, 2]\n", 2, "swap"),
        ("[focus.monday]\nlength = 2\n", 1, "unknown kind"),
        ('aggregation = "mean"\n', 1, "aggregation"),
    ],
)
def test_errors_in_weights_toml(tmp_path: Path, text: str, line: int, what: str) -> None:
    (tmp_path / "weights.toml").write_text(text)
    with pytest.raises(ConfigError, match=what) as caught:
        RewardConfig.load(tmp_path)
    assert f"weights.toml:{line}:" in str(caught.value)


def test_a_partial_folder_is_filled_from_the_default(tmp_path: Path) -> None:
    (tmp_path / "weights.toml").write_text("[weights]\nlength = 2.5\n[bands]\nack = [1, 6]\n")
    config = RewardConfig.load(tmp_path)
    assert config.weights["length"] == 2.5
    assert config.weights["filler"] == CONFIG.weights["filler"]
    assert config.parameters["band.ack.hi"] == 6
    assert config.fillers == CONFIG.fillers


@pytest.mark.parametrize(
    "entry",
    [
        FillerEntry.make("great stuff", 0.5, "close", "hype", note="a # note"),
        FillerEntry.make(r"hope (?:this|that) (?:\w+ )?helps", 1.0, "any", "closing", regex=True, enabled=False),
        FillerEntry.make("✨", 0.25, "any", "structure"),
    ],
)
def test_a_line_reads_back_as_the_entry(entry: FillerEntry) -> None:
    assert parse_filler(format_filler(entry)) == entry


def test_muted_entries_do_not_count() -> None:
    entry = FillerEntry.make("bananas galore", 1.0, "any", "hype", enabled=False)
    config = CONFIG.with_fillers([*CONFIG.fillers, entry])
    assert score("So?", "It's bananas galore here.", Row(kind="factual"), config).raw.rewards["filler"] == 1


@pytest.mark.parametrize("pattern", ["(a+)+", "(?:a|b*)*", "(x{2,5}){3,}", "a*", "", "a?", ".*.*.*x", "(", "y" * 201])
def test_dangerous_regexes_are_refused(pattern: str) -> None:
    assert check_regex(pattern)


@pytest.mark.parametrize("pattern", ["hope (?:this|that) helps", r"(?:\w+ )?great idea", "[a-c]lright then"])
def test_useful_regexes_are_accepted(pattern: str) -> None:
    assert check_regex(pattern) is None


def test_an_entry_that_fires_everywhere_is_refused() -> None:
    assert refuse_if_common(FillerEntry.make("the", 1.0, "any", "hype"))
    assert refuse_if_common(FillerEntry.make("a rich tapestry of", 1.0, "any", "hype")) is None
