"""The checkpoints of a training run: which are whole, and what of ours they keep.

Transformers writes a checkpoint file by file. Ours is the last, so that a folder in which it stands
is whole, and one that a killed process left behind is told apart. It has a hash of every other
file: Transformers goes on without an optimizer or random state that has got lost, to other weights.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seal.errors import ConfigError, StorageFailure
from seal.records import write_json
from seal.train.advantage import DynamicRho

KEPT = 2
"""Checkpoints that stay: while one is being written, the one before it is needed."""
_FILE = "seal.json"
_NAME = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint."""

    folder: Path
    updates: int
    """Optimizer steps that came before it."""
    rho: DynamicRho
    files: dict[str, str]
    """A hash of each other file, by its path in the folder."""


def seal_checkpoint(folder: Path, rho: DynamicRho, settings: dict[str, Any]) -> None:
    """Mark a checkpoint as whole, and keep what Transformers does not know of.

    Args:
        folder: The checkpoint, all else of it being written.
        rho: The weights of the labels in force.
        settings: What decides the training; a run with others must not go on from here.
    """
    kept = {"rho": rho.model_dump(), "settings": settings, "files": _hashes(folder)}
    write_json(folder / _FILE, kept)


def _hashes(folder: Path) -> dict[str, str]:
    """Of every file in a checkpoint but ours, by its path there."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / _FILE:
            with path.open("rb") as stream:
                name = path.relative_to(folder).as_posix()
                found[name] = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    return found


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Say in one sentence that a folder could not be written, whoever was writing it."""
    try:
        yield
    except Exception as cause:
        # Torch and safetensors have errors of their own for a full disk.
        if type(cause).__name__ not in ("OSError", "RuntimeError", "SafetensorError"):
            raise
        said = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
        raise StorageFailure(
            f"{folder}: {said.splitlines()[0] if said else type(cause).__name__}.\n"
            "What was saved before is kept.\n"
            "Free some space and run the same command again: it resumes."
        ) from cause


def newest_checkpoint(folder: Path, settings: dict[str, Any]) -> Checkpoint | None:
    """The whole checkpoint with the most updates behind it; None if there is none.

    Checkpoints that are not whole are removed, since others would be removed for their sake.

    Raises:
        ConfigError: The checkpoints are of other settings, cannot be read, or have been damaged.
    """
    found: list[Checkpoint] = []
    for path in sorted(folder.glob("checkpoint-*")):
        name = _NAME.fullmatch(path.name)
        if name is None:
            continue
        if not (path / _FILE).is_file():
            shutil.rmtree(path)
            continue
        found.append(Checkpoint(path, int(name[1]), *_read(path / _FILE, settings)))
    newest = max(found, key=lambda checkpoint: checkpoint.updates, default=None)
    if newest:
        _refuse_damage(newest)
    return newest


def _refuse_damage(checkpoint: Checkpoint) -> None:
    now = _hashes(checkpoint.folder)
    for name, content in checkpoint.files.items():
        if now.get(name) != content:
            what = "it is not as it was written" if name in now else "it is missing"
            raise ConfigError(
                f"{checkpoint.folder / name}: {what}, and training cannot go on from here.\n"
                f"Restore it, or {_without(checkpoint.folder)}"
            )


def _without(folder: Path) -> str:
    return (
        f"remove {folder}: the same command then goes on from the checkpoint before, or from the "
        "start, with the rollouts that are kept."
    )


def _read(path: Path, settings: dict[str, Any]) -> tuple[DynamicRho, dict[str, str]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rho, kept = DynamicRho.model_validate(content["rho"]), dict(content["settings"])
        files = dict(content["files"])
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as cause:
        raise ConfigError(
            f"{path}: this is not what a checkpoint of ours keeps ({cause}).\n"
            f"Restore it, or {_without(path.parent)}"
        ) from cause
    wanted = json.loads(json.dumps(settings))
    differs = sorted(key for key in kept.keys() | wanted.keys() if kept.get(key) != wanted.get(key))
    if differs:
        key = differs[0]
        raise ConfigError(
            f"{path.parent}: made with other settings "
            f"({key}: {kept.get(key)!r} there, {wanted.get(key)!r} now).\n"
            "Choose another folder with --out, or start this one over with --fresh."
        )
    return rho, files
