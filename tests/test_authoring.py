"""docs/authoring.md is run from top to bottom: files are written, commands run, lines printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "authoring.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_holds_from_top_to_bottom(tmp_path):
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(found) > 15
    (tmp_path / "bin").mkdir()
    seal = tmp_path / "bin" / "seal"
    start = "import sys; from seal.cli import main; sys.exit(main())"
    seal.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    seal.chmod(0o755)
    place = tmp_path / "work"
    place.mkdir()
    env = {**os.environ, "PATH": f"{seal.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    for language, name, text in found:
        if name:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
        if name.endswith("elsewhere.py"):
            said = run([sys.executable, "-W", "error", name], place, env)
            assert said.splitlines()[-1] == "0.0"
        if language == "console":
            follow(text, place, env)


def follow(block: str, place: Path, env: dict[str, str]) -> None:
    """Run a block's commands; the lines after a command must be in what it prints."""
    said = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            said = run(["sh", "-c", line[2:]], place, env)
        else:
            assert line in said


def run(command: list[str], place: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
