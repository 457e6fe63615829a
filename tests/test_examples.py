"""Every example runs as it stands, offline, from any folder, and shows what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
SHOWS = {
    "01": r"length: How long\. Give it in minutes\.",
    "02": r"gold +score 1\.00 .*\nsim:novice +score 0\.\d\d (.|\n)*fault: ",
    "03": r"gate, bundle of \d+: accepted (.|\n)*difference \+0\.\d\d, 95% \+0",
    "04": r"gold +as written +100%\nsim:novice as written +\d\d%\nsim:novice told the rules +\d\d%",
}


def test_the_examples_are_numbered_from_one():
    assert [path.name[:3] for path in EXAMPLES] == [f"{key}_" for key in SHOWS]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_what_it_promises(path: Path, tmp_path: Path):
    # Without a key and without a network: proxies that nobody answers would stop any request.
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environment |= {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(SHOWS[path.name[:2]], done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"
