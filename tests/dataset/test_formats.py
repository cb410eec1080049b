"""The corpus: one small file per kind of input, each with the problems it must give."""

from __future__ import annotations

import random
import re
from pathlib import Path

import orjson
import pytest

from ada_tui.dataset import CODES, Report, check, fix, rows_of_files, scan
from ada_tui.errors import BadInput

CORPUS = Path(__file__).parents[1] / "data" / "formats"
EXPECTED = orjson.loads((CORPUS / "expected.json").read_bytes())
FILES = sorted(EXPECTED)
GOOD = [name for name in FILES if EXPECTED[name]["ok"]]


def test_the_corpus_is_whole():
    assert len(FILES) >= 60
    assert {path.name for path in CORPUS.iterdir()} == {*FILES, "expected.json"}
    seen = {code for name in FILES for _, _, code in EXPECTED[name]["problems"]}
    # a folder, a missing, an unreadable file and a 64 MB line cannot lie in a repository
    assert set(CODES) - seen == {"directory", "missing-file", "unreadable-file", "long-line"}


def test_the_page_explains_every_code():
    page = (CORPUS.parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (?:the record|-) \| (.*) \|$", page, re.MULTILINE))
    assert rows == {code: meaning.remedy for code, meaning in CODES.items()}


@pytest.mark.parametrize("name", FILES)
def test_file(name):
    report = check([CORPUS / name])
    got = [[problem.line, problem.turn, problem.code] for problem in report.problems]
    assert {"rows": report.rows, "ok": report.ok, "problems": got} == EXPECTED[name]
    assert all(problem.file.endswith(name) and problem.message for problem in report.problems)


@pytest.mark.parametrize("name", GOOD)
def test_fixing_leaves_nothing_that_can_be_put_right_and_the_source_alone(name, tmp_path):
    from ada_tui.dataset.repair import REPAIRED

    before = (CORPUS / name).read_bytes()
    fixed = fix([CORPUS / name], tmp_path / "fixed.jsonl")
    again = check([fixed.out])
    assert again.ok == fixed.written == EXPECTED[name]["ok"]
    left = {problem.code for problem in again.problems}
    assert not left & (REPAIRED - {"mojibake"})
    repairable = [code for _, _, code in EXPECTED[name]["problems"] if code in REPAIRED]
    assert len(fixed.changes) >= len(repairable)
    assert orjson.loads(fixed.changes_file.read_bytes())["written"] == fixed.written
    assert (CORPUS / name).read_bytes() == before


@pytest.mark.parametrize("name", GOOD)
def test_rows_keep_their_ids_when_the_file_is_read_again(name):
    first, again = (rows_of_files([CORPUS / name]).rows for _ in range(2))
    assert [row.id for row in first] == [row.id for row in again]
    assert len({row.id for row in first}) == len(first) == EXPECTED[name]["ok"]


@pytest.mark.parametrize("name", [name for name in FILES if not EXPECTED[name]["ok"]])
def test_a_file_without_a_chat_is_refused_in_one_line(name):
    with pytest.raises(BadInput, match="no usable chat") as refusal:
        rows_of_files([CORPUS / name])
    assert name in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_all_files_at_once_lose_only_repetitions():
    files = [CORPUS / name for name in FILES]
    random.Random(1).shuffle(files)
    report = check(files)
    different = {
        (found.normal.system, tuple(found.normal.turns)) for name in GOOD for found in scan([CORPUS / name], Report())
    }
    assert report.ok == len(different)
    assert report.rows == sum(EXPECTED[name]["rows"] for name in FILES)


def test_repaired_text():
    texts = {
        (name, turn.content)
        for name in GOOD
        for found in scan([CORPUS / name], Report())
        for turn in found.normal.turns
    }
    assert ("mojibake.jsonl", "At the café, it’s nice.") in texts
    assert ("control-characters.jsonl", "Oak.") in texts
    assert ("special-tokens.jsonl", "Oak.") in texts
    assert ("not-alternating.jsonl", "hi\n\nname a tree") in texts
    assert ("windows-1252.jsonl", "At the café.") in texts
    assert ("raw-newline.jsonl", "two\nlines") in texts
    assert ("alpaca.jsonl", "Translate to German\n\ntree") in texts
    assert ("emoji-and-umlauts.jsonl", "Bear. Ñandú heißt rhea, naïve café.") in texts
