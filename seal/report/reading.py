"""The whole-file JSON of a run folder, with a clear message where it cannot be read."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seal.diagnose.profile import Profile
from seal.errors import ConfigError
from seal.evolve.run import Evolution
from seal.records import SCHEMA, RunFolder


def read_run_result(folder: RunFolder) -> dict[str, Any] | None:
    """The summary of a finished `seal run`, None while it is unfinished.

    Raises:
        ConfigError: It is no JSON object.
    """
    return _object(folder.path / "result.json")


def read_evolution(folder: RunFolder) -> Evolution | None:
    """The result of a finished `seal evolve`, None while it is unfinished.

    Raises:
        ConfigError: It is something else, or of another version of SEAL.
    """
    path = folder.path / "result.json"
    content = _object(path)
    try:
        return None if content is None else Evolution.model_validate(content)
    except ValidationError as cause:
        raise _unreadable(path, "result of `seal evolve`", cause) from cause


def read_profile(folder: RunFolder) -> Profile | None:
    """What `profile.json` says, None if there is none.

    Raises:
        ConfigError: It is no profile, or of another schema version.
    """
    path = folder.path / "profile.json"
    content = _object(path)
    if content is None:
        return None
    version = content.pop("seal", None)
    if version != SCHEMA:
        raise ConfigError(
            f"{path}: schema version {version!r}; this SEAL reads version {SCHEMA}.\n"
            f"Make it anew with: seal diagnose {folder.path}"
        )
    try:
        return Profile.model_validate(content)
    except ValidationError as cause:
        raise _unreadable(path, "profile", cause) from cause


def _object(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise _unreadable(path, "JSON", cause) from cause
    if not isinstance(content, dict):
        raise _unreadable(path, "JSON object", TypeError(f"found {type(content).__name__}"))
    return content


def _unreadable(path: Path, what: str, cause: Exception) -> ConfigError:
    first = str(cause).splitlines()[0]
    return ConfigError(
        f"{path}: no {what} can be read here ({first}).\n"
        "Restore the file, or make the run again with --fresh."
    )
