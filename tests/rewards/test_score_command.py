"""`ada-tui score`: JSON lines as documented, marks that explain, one line per error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ada_tui.commands.score import marked, score
from ada_tui.errors import BadInput
from ada_tui.workspace import Workspace

ROWS = [
    {"id": "a", "prompt": "Morning", "completion": "Morning! Sleep ok?"},
    {
        "id": "b",
        "prompt": "Why?",
        "completion": "Great question! [/bold] \u202e Light scatters.",
        "kind": "howto",
        "truncated": True,
    },
    {
        "id": "c",
        "prompt": [{"role": "user", "content": "Capital of France?"}],
        "completion": "Paris.",
        "gold": ["Paris"],
    },
]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(tmp_path / "rows.jsonl", [json.dumps(row) for row in ROWS])


def run(*arguments: str, root: Path, stdin: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(score, list(arguments), obj=Workspace(root), input=stdin)
    if isinstance(done.exception, BadInput):
        return 2, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_json_has_every_documented_key(rows: Path, tmp_path: Path) -> None:
    code, out, _ = run(str(rows), "--json", root=tmp_path)
    cards = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [card["id"] for card in cards] == ["a", "b", "c"]
    for card in cards:
        assert {"id", "total", "rewards", "guard", "gated", "substance", "kind", "kind_by", "spans"} <= set(card)
    assert cards[0]["total"] == 1.0
    assert cards[1]["guard"] == -0.5
    assert cards[1]["spans"][0] == {
        "start": 0, "end": 14, "rule": "filler", "text": "Great question", "category": "flattery", "delta": -0.59,
    }  # fmt: skip
    assert cards[2]["kind_by"] == "default"


def test_explain_marks_the_spans_and_gives_reasons(rows: Path, tmp_path: Path) -> None:
    code, out, _ = run(str(rows), "--explain", root=tmp_path)
    assert code == 0
    assert "[1 Great question]" in out
    assert "in the opening (flattery): -0.59" in out
    assert "\u202e" not in out
    assert marked("abcd", [(0, 2), (1, 3)]) == "[1 a[2 b]c]d"


def test_plain_output_is_two_lines_a_row(rows: Path, tmp_path: Path) -> None:
    code, out, _ = run(str(rows), root=tmp_path)
    assert code == 0
    assert len(out.splitlines()) == 6


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "is no JSON"),
        ("[1]", "is no JSON object"),
        ('{"prompt": "Hi"}', "'completion' is missing"),
        ('{"prompt": 3, "completion": "x"}', "'prompt' must be"),
        ('{"prompt": "Hi", "completion": "x", "kind": "monday"}', "'kind' has 'monday'"),
        ('{"prompt": "Hi", "completion": "x", "truncated": "yes"}', "'truncated'"),
        ('{"prompt": "Hi", "completion": "x", "gold": 3}', "'gold'"),
    ],
)
def test_bad_rows_are_named_with_their_line(line: str, what: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [json.dumps(ROWS[0]), line])
    code, out, err = run(str(path), "--json", root=tmp_path)
    assert code == 1
    assert len(out.splitlines()) == 1
    assert f"{path}:2: " in err
    assert what in err
    assert len(err.strip().splitlines()) == 1
    code, _, message = run(str(write(tmp_path / "bad.jsonl", [line])), root=tmp_path)
    assert code == 2
    assert "no row could be scored" in message


def test_weights_of_a_file_or_a_folder(rows: Path, tmp_path: Path) -> None:
    weights = write(
        tmp_path / "mine.toml",
        ["[weights]", "length = 0", "filler = 0", "tone = 0", "uncertainty = 0", "unsolicited = 0"],
    )
    code, out, _ = run(str(rows), "--json", "--weights", str(weights), root=tmp_path)
    assert code == 0
    assert [json.loads(line)["total"] for line in out.splitlines()] == [0.0, -0.5, 0.0]
    weights.write_text("[weights]\nlength = 'x'\n")
    code, _, message = run(str(rows), "--weights", str(weights), root=tmp_path)
    assert (code, f"{weights}:2:" in message) == (2, True)
    assert run(str(rows), "--weights", str(tmp_path / "no.toml"), root=tmp_path)[0] == 2
    assert run(str(tmp_path / "missing.jsonl"), root=tmp_path)[0] == 2


def test_own_rewards_of_the_workspace_count(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "my_rewards").mkdir()
    (tmp_path / "my_rewards" / "loud.py").write_text(
        "def reward(prompt, completion, row, config, *, truncated=False):\n    return 0.5\n"
    )
    assert "loud" not in json.loads(run(str(rows), "--json", root=tmp_path)[1].splitlines()[0])["rewards"]
    (tmp_path / "ada.toml").write_text("")
    (tmp_path / "my_rewards" / "bad.py").write_text("1/0")
    code, out, err = run(str(rows), "--json", root=tmp_path)
    assert code == 0
    assert json.loads(out.splitlines()[0])["rewards"]["loud"] == 0.5
    assert "bad.py" in err


def test_standard_input(tmp_path: Path) -> None:
    code, out, _ = run("-", "--json", root=tmp_path, stdin=json.dumps(ROWS[0]))
    assert code == 0
    assert json.loads(out)["id"] == "a"
