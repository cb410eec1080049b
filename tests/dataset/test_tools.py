"""Big and hostile files, fixing, lengths, preferences, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from ada_tui.dataset import PromptRow, check, fix, preferences, probe
from ada_tui.dataset.assemble import MAX_LINE
from ada_tui.errors import BadInput
from ada_tui.persona import Persona
from ada_tui.picks import Pick
from ada_tui.protocol import Completion, Group
from rewards import RewardConfig
from rewards.types import Row

CORPUS = Path(__file__).parents[1] / "data" / "formats"
GOOD = b'{"prompt": "Name a tree", "completion": "Oak."}\n'


def codes(report):
    return [problem.code for problem in report.problems]


def test_places_that_hold_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    places = [tmp_path, tmp_path / "none.jsonl", "nul\0name", tmp_path / "pipe"]
    assert [codes(check([place])) for place in places] == [
        ["directory"], ["missing-file"], ["missing-file"], ["unreadable-file"],
    ]  # fmt: skip


def test_a_line_too_long_is_refused_with_its_size_and_the_rest_is_read(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(GOOD)
        file.write(b'{"prompt": "')
        file.seek(200_000_000, os.SEEK_CUR)  # a hole: nothing is written, 200 MB are there
        file.write(b'"}\n')
        file.write(b'{"prompt": "Name a bird", "completion": "Wren."}\n')
    code = (
        "import resource, sys; from ada_tui.dataset import check\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "report = check(sys.argv[1:]); problem = report.problems[0]\n"
        "print(report.ok, problem.line, problem.code, problem.message, sep='|')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert said.startswith("2|2|long-line|the line has 200 MB")
    assert int(grown) / 1024 < 3.5 * (MAX_LINE >> 20)


def test_many_alike_problems_are_counted_but_every_skipped_row_is_listed(tmp_path):
    path = tmp_path / "many.jsonl"
    kept = [b'{"prompt": "question %d"}' % n for n in range(1500)]
    path.write_bytes(b"\n".join(kept) + b"\n" + b"{broken}\n" * 1500)
    report = check([path])
    assert report.counts["no-reference"] == 1500
    assert codes(report).count("no-reference") == 1000
    assert codes(report).count("broken-json") == 1500
    assert (report.rows, report.ok) == (3000, 1500)


def test_fix_never_writes_over_a_source(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(GOOD)
    with pytest.raises(BadInput, match="source file"):
        fix([path], path)
    with pytest.raises(BadInput, match="nothing to fix"):
        fix([CORPUS / "no-turns.jsonl", CORPUS / "empty.jsonl"][1:], tmp_path / "out.jsonl")
    assert {file.name for file in tmp_path.iterdir()} == {"chats.jsonl"}


def test_fix_keeps_fields_it_does_not_know(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(orjson.dumps({"prompt": "Name a tree ", "completion": "Oak.</s>", "id": 4, "mood": {"a": 1}}))
    fixed = fix([path], tmp_path / "out.jsonl")
    assert orjson.loads(fixed.out.read_bytes()) == {
        "id": "4", "mood": {"a": 1},
        "messages": [{"role": "user", "content": "Name a tree"}, {"role": "assistant", "content": "Oak."}],
    }  # fmt: skip
    assert [(change["code"], change["turn"]) for change in fixed.changes] == [("special-token", 2)]


def test_lengths_by_a_real_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"[UNK]": 0, "a": 1}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rows = [PromptRow(str(n), "a a", row=Row(reference="a " * n)) for n in range(1, 101)]
    measured = probe(rows, tmp_path, Persona(system="a a a"))
    around = 2  # "<|im_start|>user" and "<|im_end|>" are a word each for this tokenizer
    assert measured.prompts.longest == 3 + 2 + 3 * around
    assert (measured.references.p95, measured.references.longest) == (96, 101)
    assert measured.cap == 125
    assert sum(count for _, count in measured.references.histogram) == 100
    with pytest.raises(BadInput, match="no such tokenizer"):
        probe(rows, tmp_path / "nowhere", Persona())
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be read as a tokenizer"):
        probe(rows, tmp_path, Persona())


def _group(*scores):
    raw = [
        {"rewards": {"length": s}, "guard": 0.0, "gated": False, "substance": None, "kind": "factual"} for s in scores
    ]
    replies = [Completion(text=f"reply {n}", raw=one) for n, one in enumerate(raw)]
    return Group(id="g1", prompt="Name a tree", completions=replies)


@pytest.mark.parametrize(
    ("pick", "expected"),
    [
        (None, ("reply 1", "reply 2", "rules")),
        (Pick("g1", 0), ("reply 0", "reply 2", "person")),
        (Pick("g1", 2), ("reply 2", "reply 0", "person")),
        (Pick("g1", 2, 1), ("reply 2", "reply 1", "person")),
        (Pick("g1", rejected=1), ("reply 0", "reply 1", "person")),
        (Pick("g1", 9), ("reply 1", "reply 2", "person")),
        (Pick("g1", tie=True), None),
    ],
)
def test_preference_pairs(pick, expected):
    verdicts = {"g1": pick} if pick else {}
    config = RewardConfig(weights={"length": 1.0})
    found = list(preferences([_group(0.5, 1.0, 0.2)], verdicts, config, Persona(system="Be Ada.")))
    if expected is None:
        assert found == []
        return
    (record,) = found
    assert (record["chosen"][0]["content"], record["rejected"][0]["content"], record["by"]) == expected
    assert [turn["role"] for turn in record["prompt"]] == ["system", "user"]
    kto = list(preferences([_group(0.5, 1.0, 0.2)], verdicts, config, Persona(), form="kto"))
    assert [(record["completion"][0]["content"], record["label"]) for record in kto] == [
        (expected[0], True), (expected[1], False),
    ]  # fmt: skip


def test_a_flat_group_is_no_preference():
    config = RewardConfig(weights={"length": 1.0})
    assert list(preferences([_group(0.5, 0.55)], {}, config, Persona())) == []


def ada(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "ada_tui", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_check_command(tmp_path):
    done = ada("data", "check", str(CORPUS / "mojibake.jsonl"), "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (done.returncode, document["rows"], document["ok"], document["skipped"]) == (1, 2, 2, 0)
    assert document["formats"] == {"sharegpt": 2}
    assert {"file", "line", "turn", "code", "message"} == set(document["problems"][0])
    assert ada("data", "check", str(CORPUS / "array.json"), cwd=tmp_path).returncode == 0
    hostile = ada("data", "check", str(CORPUS / "control-characters.jsonl"), cwd=tmp_path)
    assert hostile.returncode == 1
    assert "\x1b" not in hostile.stdout


@pytest.mark.parametrize("name", ["empty.jsonl", "binary.jsonl", "no-such-file.jsonl", "."])
def test_nothing_usable_is_exit_2_and_one_line(name, tmp_path):
    done = ada("data", "check", str(CORPUS / name), "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["ok"] == 0
    assert len(done.stderr.splitlines()) == 1


def test_fix_and_convert_commands(tmp_path):
    done = ada(
        "data", "check", str(CORPUS / "special-tokens.jsonl"), "--fix", "-o", "out.jsonl", "--json", cwd=tmp_path
    )
    assert json.loads(done.stdout)["written"] == 3
    done = ada("data", "convert", "out.jsonl", "-o", "rows", "--held-out", "0.4", "--sft", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert document["clusters"] == 3
    assert sum(document["kinds"].values()) == 3
    assert (tmp_path / document["train"]).is_file()
    assert (tmp_path / document["sft"]).is_file()
    assert ada("data", "check", "out.jsonl", "--fix", cwd=tmp_path).returncode == 2
