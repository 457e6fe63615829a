"""A run on disk: a folder of TOML and JSONL that is the event log and the resume point.

The first line of every JSONL file says the schema version. A process may be killed at any point: a
torn last line is cut off when the file is next opened for appending, and whole files appear by
rename, so that a reader sees the old or the new one and never half of it.
"""

import errno
import fcntl
import json
import os
import re
import shutil
import threading
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from seal.errors import ConfigError, StorageFailure
from seal.types import Candidate, Record, Rollout, content_hash

SCHEMA = 1
_PARTIAL = re.compile(r"\.(json|jsonl|toml)\.\d+\.partial$")
R = TypeVar("R", bound=Record)


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    """Say in one sentence what the disk would not do."""
    try:
        yield
    except OSError as cause:
        full = cause.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StorageFailure(
            f"{path}: {'no space left' if full else cause.strerror or cause}.\n"
            "What was written before is kept.\n"
            + (
                "Free some space and run the same command again: it resumes."
                if full
                else "Make the folder writable, or copy the run to one that is."
            )
        ) from cause


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in one sentence why a file of a run cannot be read."""
    try:
        yield
    except OSError as cause:
        raise ConfigError(
            f"{path}: cannot be read: {cause.strerror or cause}.\nMake it readable, or restore it."
        ) from cause


def write_text(path: Path, text: str) -> None:
    """Write a whole file by rename, so that it is never half there."""
    with _storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def write_json(path: Path, value: object) -> None:
    """Write one JSON value, keys in their order."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _check_schema(path: Path, found: object) -> None:
    if found != SCHEMA:
        raise ConfigError(
            f"{path}: schema version {found!r}; this SEAL reads version {SCHEMA}.\n"
            "Read it with the SEAL that wrote it, or make the run again with another --out."
        )


_WRITTEN = (
    "rollouts.jsonl",
    "rollouts.before.jsonl",
    "diagnoses.jsonl",
    "generations.jsonl",
    "proposals.jsonl",
    "base.json",
    "checkpoints.jsonl",
    "steps.jsonl",
    "grpo.jsonl",
    "stages.jsonl",
    "trainer",
    "adapter",
    "result.json",
    "profile.json",
    "report.html",
    "candidates",
)
"""What the commands write into a run folder, beside its settings."""


class JsonLines:
    """One JSONL file of records of one type; appends are whole lines from any thread."""

    def __init__(self, path: Path, record: type[R]) -> None:
        self.path = path
        self.record: type[Any] = record
        self._lock = threading.Lock()

    def read(self) -> Iterator[Any]:
        """The records, in the order they were written; a torn last line is left out.

        Raises:
            ConfigError: The file cannot be read or is of another schema version, or a line is no
                such record.
        """
        with _reading(self.path):
            if not self.path.exists():
                return
            with self.path.open("rb") as lines:
                yield from self._records(lines)

    def _records(self, lines: Iterable[bytes]) -> Iterator[Any]:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            yield from self._parse(number, line)

    def _parse(self, number: int, line: bytes) -> Iterator[Any]:
        try:
            if number > 1:
                yield self.record.model_validate_json(line)
                return
            header = json.loads(line)
        except (ValueError, RecursionError) as cause:
            raise ConfigError(
                f"{self.path}:{number}: this line is no {self.record.__name__}.\n"
                f"{_why(cause)}\n"
                "Restore the file, or make the run again with --fresh."
            ) from cause
        _check_schema(self.path, header.get("seal") if isinstance(header, dict) else None)

    def append(self, *records: Record) -> None:
        """Add records, each as one line that reaches the disk before this returns."""
        with self._lock, _storage(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                keep = self._whole_lines(file)
                if keep == 0:
                    file.write(json.dumps({"seal": SCHEMA}).encode() + b"\n")
                lines = b"".join(record.model_dump_json().encode() + b"\n" for record in records)
                file.write(lines)
                file.flush()

    def rewrite(self, records: Iterable[Record]) -> None:
        """Put other records in place of all, by rename: a reader sees the old or the new ones."""
        lines = [json.dumps({"seal": SCHEMA}), *(record.model_dump_json() for record in records)]
        with self._lock:
            write_text(self.path, "".join(f"{line}\n" for line in lines))

    @staticmethod
    def _whole_lines(file: Any) -> int:  # noqa: ANN401 - a binary file object
        """Cut a torn last line off; the length that is left."""
        size: int = file.seek(0, os.SEEK_END)
        if size == 0:
            return 0
        file.seek(size - 1)
        if file.read(1) == b"\n":
            return size
        file.seek(0)
        size = file.read().rfind(b"\n") + 1
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        return size


class RunFolder:
    """One run: its settings, its records, its result."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def settings_path(self) -> Path:
        """The resolved settings of the command that made this run."""
        return self.path / "run.toml"

    def lines(self, name: str, record: type[R]) -> JsonLines:
        """The JSONL file `name` of this run."""
        return JsonLines(self.path / f"{name}.jsonl", record)

    def settings(self) -> dict[str, Any]:
        """What `run.toml` says.

        Raises:
            ConfigError: There is no run here, or it is of another schema version.
        """
        with _reading(self.settings_path):
            content = self.settings_path.read_bytes() if self.settings_path.is_file() else None
        if content is None:
            raise ConfigError(
                f"{self.path}: no run here (there is no run.toml).\n"
                "Runs are folders that `seal run`, `seal evolve` or `seal train` wrote.\n"
                "See yours with: ls runs"
            )
        try:
            found = tomllib.loads(content.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
            raise ConfigError(f"{self.settings_path}: not TOML: {cause}.") from cause
        _check_schema(self.settings_path, found.pop("seal", None))
        return found

    def result(self) -> dict[str, Any] | None:
        """The summary of a finished run; None while it is unfinished."""
        path = self.path / "result.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @property
    def finished(self) -> bool:
        """Whether a summary is here."""
        return (self.path / "result.json").is_file()

    def finish(self, result: dict[str, Any]) -> None:
        """Mark the run finished, with its summary."""
        write_json(self.path / "result.json", result)

    def rollouts(self) -> list[Rollout]:
        """The last record of each rollout; one that broke gives way to one that did not."""
        found: dict[tuple[str, str, str], Rollout] = {}
        for rollout in self.lines("rollouts", Rollout).read():
            key = (rollout.policy_version, rollout.candidate, rollout.id)
            if key not in found or rollout.failure is None or found[key].failure:
                found[key] = rollout
        return list(found.values())

    def save_candidate(self, candidate: Candidate) -> None:
        """Keep a candidate under its id; one that is kept stays as it is."""
        path = self.path / "candidates" / f"{candidate.id}.json"
        if not path.is_file():
            write_json(path, {"seal": SCHEMA, "id": candidate.id, **candidate.model_dump()})

    def candidate(self, candidate_id: str) -> Candidate:
        """The candidate of this id, or of the one id that starts so."""
        folder = self.path / "candidates"
        known = sorted(path.stem for path in folder.glob("*.json"))
        found = [name for name in known if name.startswith(candidate_id)]
        if len(found) != 1 or not candidate_id:
            raise ConfigError(
                f"{self.path}: {'no' if not found else 'more than one'} candidate "
                f"'{candidate_id}'.\nCandidates here: {', '.join(known) or 'none'}."
            )
        return read_candidate(folder / f"{found[0]}.json")

    @contextmanager
    def opened(self, settings: dict[str, Any], *, fresh: bool = False) -> Iterator[None]:
        """Hold the folder for one command: created, resumed, or started over.

        Raises:
            ConfigError: Another process holds it, or it belongs to other settings.
        """
        if (self.path / "env.toml").exists():
            raise ConfigError(
                f"{self.path}: this is an environment, and no folder for a run.\n"
                "Choose another with --out."
            )
        with _storage(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as cause:
                raise ConfigError(
                    f"{self.path}: another process is writing this run.\n"
                    "Wait for it, or make another run with --out."
                ) from cause
            if fresh:
                self._set_aside()
            self._sweep()
            self._adopt(settings)
            yield

    def _adopt(self, settings: dict[str, Any]) -> None:
        if not self.settings_path.is_file():
            write_text(self.settings_path, to_toml({"seal": SCHEMA, **settings}))
            return
        found = self.settings()
        # As a TOML file would give them back: without what is None, and lists for tuples.
        settings = tomllib.loads(to_toml(settings))
        if differs := _first_difference(found, settings):
            raise ConfigError(
                f"{self.path}: a run with other settings is here ({differs}).\n"
                "Choose another folder with --out, or start this one over with --fresh."
            )

    def _sweep(self) -> None:
        """Remove the files that a killed process had not yet renamed."""
        for folder in (self.path, self.path / "candidates"):
            for path in folder.glob("*.partial"):
                if _PARTIAL.search(path.name):
                    path.unlink(missing_ok=True)

    def _set_aside(self) -> None:
        """Move what a run wrote here into `previous/`, and touch nothing else that may lie here.

        Starting over is no reason to lose rollouts that were paid for: one run back is kept.
        """
        if not self.settings_path.is_file():
            return
        previous = self.path / "previous"
        with _storage(previous):
            shutil.rmtree(previous, ignore_errors=True)
            previous.mkdir()
            for name in (*_WRITTEN, self.settings_path.name):
                if (self.path / name).exists():
                    (self.path / name).rename(previous / name)


def _why(cause: Exception) -> str:
    """The first thing wrong with a record, in one sentence."""
    if not isinstance(cause, ValidationError):
        return f"{cause}."
    first = cause.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}." if where else f"{first['msg']}."


def _first_difference(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> str:
    """The first setting that differs, by its dotted name; empty if none does."""
    for key in sorted(found.keys() | wanted.keys()):
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := _first_difference(old, new, f"{prefix}{key}."):
                return inner
        elif old != new:
            return f"{prefix}{key}: {old!r} there, {new!r} now"
    return ""


def read_candidate(path: Path) -> Candidate:
    """A candidate from its JSON file.

    Raises:
        ConfigError: The file is no candidate, or is of another schema version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        _check_schema(path, content.pop("seal", None))
        stamped = content.pop("id", None)
        candidate = Candidate.model_validate(content)
    except (OSError, ValueError, TypeError, AttributeError) as cause:
        raise ConfigError(f"{path}: no candidate can be read here ({cause}).") from cause
    if stamped not in (None, candidate.id):
        raise ConfigError(
            f"{path}: its texts are not those of candidate {stamped}; it was edited.\n"
            "For words of your own, leave the id out, or write a slots.toml."
        )
    return candidate


def default_folder(command: str, environment: str, settings: dict[str, Any]) -> Path:
    """`runs/<command>-<env>-<hash of the settings>`: the same command finds its run again."""
    name = environment.replace("/", "-").replace("@", "-")
    return Path("runs") / f"{command}-{name}-{content_hash(settings, 8)}"


def to_toml(table: dict[str, Any], prefix: str = "") -> str:
    """TOML of plain values and nested tables; `None` values are left out."""
    simple = {k: v for k, v in table.items() if not isinstance(v, dict) and v is not None}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in simple.items()]
    text = "\n".join(lines) + "\n" if lines else ""
    for key, value in table.items():
        if isinstance(value, dict):
            name = f"{prefix}{_toml_key(key)}"
            text += f"\n[{name}]\n{to_toml(value, f'{name}.')}"
    return text


def _toml_key(key: str) -> str:
    bare = key.replace("_", "").replace("-", "")
    return key if bare.isascii() and bare.isalnum() else _toml_text(key)


def _toml_text(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: object) -> str:
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
