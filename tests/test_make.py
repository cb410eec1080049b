"""`make` names what the system lacks before it starts anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "check_tools.sh"


def check(path: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("sh")
    assert shell
    environment = {"PATH": str(path), "PYTHON": python}
    return subprocess.run([shell, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for name in ("cmake", "c++"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    return tmp_path


def test_a_machine_that_has_everything(tools: Path) -> None:
    done = check(tools)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("gone", "package"), [("cmake", "cmake"), ("c++", "g++")])
def test_a_missing_tool_is_named_with_its_package(tools: Path, gone: str, package: str) -> None:
    (tools / gone).unlink()
    done = check(tools)
    assert done.returncode == 1
    assert f"sudo apt install {package}" in done.stderr


def test_no_python(tools: Path) -> None:
    done = check(tools, python="python3.99")
    assert done.returncode == 1
    assert "python3.99 is not there" in done.stderr


def test_an_old_python(tools: Path) -> None:
    old = tools / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = check(tools, python=str(old))
    assert done.returncode == 1
    assert "Python 3.9.2 is not supported" in done.stderr
