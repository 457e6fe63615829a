"""The README's demo block is what the demo prints, line by line, with cuts marked by `...`."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_readme_shows_what_the_demo_prints():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```console\n\$ make demo\n(.*?)```", readme, re.DOTALL)
    assert block
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"\$\(BIN\)/seal ((?:check|evolve) .*)", makefile)
    assert len(commands) == 2
    printed: list[str] = []
    for command in commands:
        seal = [sys.executable, "-c", "import seal.cli, sys; sys.exit(seal.cli.main())"]
        ran = subprocess.run([*seal, *command.split()], capture_output=True, text=True, check=True)
        printed += [line.rstrip() for line in ran.stdout.splitlines()]
    at = 0
    for line in block[1].splitlines():
        if line and line != "...":
            assert line in printed[at:], f"the demo does not print, in this order: {line}"
            at = printed.index(line, at) + 1
