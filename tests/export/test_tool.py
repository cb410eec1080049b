"""Tools of llama.cpp as processes: their progress is heard, their failure is one line, a checkout can stand in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ada_tui.errors import BadInput
from ada_tui.export import gguf, preflight, quantise, tool


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_lines_are_heard_carriage_returns_too() -> None:
    lines: list[str] = []
    tool.run(python(r"print('a'); print('1%\r2%\r3%')"), what="x", on_line=lines.append)
    assert lines == ["a", "1%", "2%", "3%"]


def test_a_failure_is_its_telling_line() -> None:
    code = "import sys; print('ValueError: bad tensor'); print('bye'); sys.exit(3)"
    with pytest.raises(BadInput, match=r"x failed \(exit code 3\): ValueError: bad tensor"):
        tool.run(python(code), what="x", on_line=lambda line: None)


def test_an_abort_is_named() -> None:
    with pytest.raises(BadInput, match=r"x failed \(killed by signal 6\): GGML_ASSERT"):
        tool.run(
            python("import os; print('GGML_ASSERT: error', flush=True); os.abort()"),
            what="x",
            on_line=lambda line: None,
        )


def test_a_missing_program() -> None:
    with pytest.raises(BadInput, match="cannot be started"):
        tool.run(["/no/such/tool"], what="x", on_line=lambda line: None)


def test_the_child_dies_with_whoever_stops_listening() -> None:
    class Enough(Exception):
        pass

    def hear(line: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        tool.run(python("print('x', flush=True); import time; time.sleep(600)"), what="x", on_line=hear)


def test_a_checkout_stands_in(tmp_path: Path) -> None:
    (tmp_path / "build" / "bin").mkdir(parents=True)
    script = tmp_path / "convert_hf_to_gguf.py"
    script.write_text(
        "import sys; print('Writing:  50%'); open(sys.argv[sys.argv.index('--outfile') + 1], 'wb').write(b'GGUF')"
    )
    binary = tmp_path / "build" / "bin" / "llama-quantize"
    binary.write_text("#!/bin/sh\nif [ $# -gt 1 ]; then echo '[   1/   2] x'; cp $1 $2; echo $3 $4 > $2.asked; fi\n")
    binary.chmod(0o755)
    heard: list[tuple[str, float | None]] = []
    gguf.convert(tmp_path, tmp_path / "f16", llama_cpp=str(tmp_path), report=lambda *said: heard.append(said))
    quantise.quantise(
        tmp_path / "f16", tmp_path / "q4", "q4_k_m", llama_cpp=str(tmp_path), threads=2,
        report=lambda *said: heard.append(said),
    )  # fmt: skip
    assert ("writing tensors", 0.5) in heard
    assert ("tensor 1 of 2", 0.5) in heard
    assert (tmp_path / "q4.asked").read_text() == "Q4_K_M 2\n"
    assert str(binary) in preflight.check_tools(str(tmp_path))[1]


def test_a_checkout_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"must be a llama\.cpp checkout"):
        gguf.converter(str(tmp_path))


def test_nothing_is_imported_from_the_folder_we_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "convert_hf_to_gguf.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="is not a directory"):
        gguf.convert(tmp_path / "no-model", tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"<html>"])
def test_what_is_no_gguf(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(BadInput, match="not a GGUF"):
        quantise.quantise(tmp_path / "x", tmp_path / "y", "q4_k_m")
    with pytest.raises(BadInput, match="known are q4_k_m"):
        quantise.quantise(tmp_path / "x", tmp_path / "y", "q3")
