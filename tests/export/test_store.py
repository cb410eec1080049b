"""Products under the hash of what they were made from: whole or not there, found again, replaced by none."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ada_tui.export.store import Store, key, place, sha256


def test_made_once(tmp_path: Path) -> None:
    store, calls = Store(tmp_path / "s"), []

    def build(path: Path) -> None:
        calls.append(path)
        path.write_text("x")

    first = store.make("a-1", build)
    assert store.make("a-1", build) == first == store.find("a-1")
    assert len(calls) == 1
    assert first.read_text() == "x"


def test_half_made_never_has_its_name(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def build(path: Path) -> None:
        path.mkdir()
        (path / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.make("a-1", build)
    assert list(tmp_path.iterdir()) == []


def test_keep_only_removes_what_a_killed_job_left(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("a", "b", ".making-x"):
        (tmp_path / name).mkdir()
    store.keep_only(["b"])
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_hash_is_of_the_content(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    file = tmp_path / "w"
    file.write_bytes(b"1")
    one = store.hash_of([file])
    assert store.hash_of([file]) == one
    file.write_bytes(b"22")
    assert store.hash_of([file]) != one
    (tmp_path / "s" / "hashes.json").write_text("broken")
    file.write_bytes(b"1")
    assert store.hash_of([file]) == one
    assert key("f16", one, 1) != key("f16", one, 2)


def test_sha256_and_place(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"x" * 9_000_000)
    seen: list[int] = []
    assert sha256(source, seen.append) == hashlib.sha256(source.read_bytes()).hexdigest()
    assert seen[-1] == 9_000_000
    target.write_text("old")
    place(source, target)
    assert target.samefile(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
