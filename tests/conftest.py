"""What holds for every test: an empty folder to work in, no network, and plain output."""

import difflib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

# Two workers with two threads each would wait for one another on a machine of two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
from hypothesis import settings

# A deadline would make tests depend on what else the machine does.
settings.register_profile("seal", deadline=None)
settings.load_profile("seal")

GOLDEN = Path(__file__).parent / "golden"
_LOOPBACK = ("127.", "::1", "localhost")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write golden files anew.")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, caches of prompts and the like land in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    connect = socket.socket.connect

    def only_loopback(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "127."
        if not str(host).startswith(_LOOPBACK):
            pytest.fail(f"a test reached for the network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_loopback)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name under tests/golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        kept = path.read_text(encoding="utf-8") if path.is_file() else ""
        if kept != text:
            lines = difflib.unified_diff(
                kept.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            shown = "\n".join(lines)
            pytest.fail(f"{shown}\nIf this is meant: pytest --update-golden", pytrace=False)

    return compare
