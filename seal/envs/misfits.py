"""What an author's data and code get wrong, in our own words."""

import inspect
import json
import traceback
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from seal.envs.time_limit import OutOfPatience, TimeIsUp, TookTooLong
from seal.errors import SealError, ToolError, did_you_mean
from seal.types import GoldCall, Rule, Task, UserTurn

_RECORDS = {record.__name__: record for record in (Task, UserTurn, GoldCall, Rule)}
_SHOWN = 60
"""Characters of a value that does not fit."""


def misfits(cause: ValidationError, record: type[BaseModel] | None = None) -> list[str]:
    """Where and why values do not fit a record, one text a problem.

    Args:
        cause: What pydantic found.
        record: The record that was wanted, whose keys are listed where one is unknown; None: the
            one that an author writes and the error names, if it is one.
    """
    record = record or _RECORDS.get(cause.title)
    errors = cause.errors(include_url=False)
    places = [error["loc"] for error in errors]
    said = []
    for error in errors:
        place = error["loc"]
        inside = any(len(p) > len(place) and p[: len(place)] == place for p in places)
        # Items that do not fit also make a list too short; that is no problem of its own.
        if error["type"] == "too_short" and inside:
            continue
        # The options of a union stand in the place of an error, by their types.
        where = ".".join(str(part) for part in place if "[" not in str(part))
        text = _unknown_key(record, place) if error["type"] == "extra_forbidden" else _text(error)
        said.append(f"{where}: {text}" if where else text)
    return list(dict.fromkeys(said))


def _text(error: Any) -> str:  # noqa: ANN401 - pydantic's own dict
    if error["type"] == "missing":
        return f"{error['msg']}."
    found = json.dumps(error["input"], ensure_ascii=False, default=str)
    shown = found if len(found) <= _SHOWN else f"{found[: _SHOWN - 1]}…"
    # Neither TOML nor JSON has tuples.
    wanted = "Input should be a list" if error["type"] == "tuple_type" else error["msg"]
    return f"{wanted}, found {shown}."


def _unknown_key(record: type[BaseModel] | None, place: tuple[int | str, ...]) -> str:
    owner = _record_at(record, place[:-1])
    if owner is None:
        return "no such key."
    known = list(_fields(owner))
    return f"no such key.\nKeys: {', '.join(known)}.{did_you_mean(str(place[-1]), known)}"


def _record_at(
    record: type[BaseModel] | None, place: tuple[int | str, ...]
) -> type[BaseModel] | None:
    """The record that a place in another one holds."""
    for part in place:
        if isinstance(part, str) and record is not None:
            field = _fields(record).get(part)
            record = _record_in(field.annotation) if field else None
    return record


def _fields(record: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the names that data gives them."""
    return {field.alias or name: field for name, field in record.model_fields.items()}


def _record_in(annotation: object) -> type[BaseModel] | None:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    found = (_record_in(option) for option in typing.get_args(annotation))
    return next((record for record in found if record), None)


class author_code:  # noqa: N801 - reads as a word of a `with`
    """Turn whatever an author's code raises into `error`; `sys.exit()` would end more than it.

    Args:
        error: Whose fault it is.
        what: What was being done.
        path: The author's file; the message then begins with the line in it.
        speech: Whether a `ToolError` is the code's to raise, as a tool's is; it passes through.
    """

    # As `blame`: every call of a tool goes through this.
    __slots__ = ("_error", "_path", "_speech", "_what")

    def __init__(
        self,
        error: type[SealError],
        what: str,
        path: Path | str | None = None,
        *,
        speech: bool = False,
    ) -> None:
        self._error, self._what, self._path, self._speech = error, what, path, speech

    def __enter__(self) -> None:
        """Begin to watch."""

    def __exit__(self, _kind: object, cause: BaseException | None, _trace: object) -> None:
        """Say whose fault it was, and where."""
        if cause is None or (said := self._said(cause)) is None:
            return
        origin = cause.__cause__ if isinstance(cause, self._error) else cause
        line = _line_of(self._path, origin) if self._path and origin else None
        if line is not None:
            raise self._error(f"{self._path}:{line}: {said}") from origin
        if self._path and cause is origin:
            raise self._error(f"{self._path}: {said}") from origin
        if not isinstance(cause, self._error):
            raise self._error(said) from cause

    def _said(self, cause: BaseException) -> str | None:
        """What the error says; None if the exception passes through as it is."""
        what = self._what
        if isinstance(cause, self._error):
            return str(cause)
        if isinstance(cause, ValidationError):
            return f"{what}: {cause.title}: {'; '.join(misfits(cause))}"
        if isinstance(cause, ToolError):
            refused = f"{what}: it raises ToolError({cause.code!r}); only a tool may refuse."
            return None if self._speech else refused
        if isinstance(cause, SystemExit):
            return f"{what}: it ends the program ({cause!r})."
        if isinstance(cause, SealError | KeyboardInterrupt | TimeIsUp | OutOfPatience):
            return None
        kind = [] if isinstance(cause, TookTooLong) else [type(cause).__name__]
        return ": ".join(part for part in [what, *kind, _text_of(cause)] if part)


def _text_of(cause: BaseException) -> str:
    """What an exception says; an author's own may not even say that."""
    try:
        return str(cause)
    except Exception:  # noqa: BLE001 - it is the author's code once more
        return ""


def _line_of(path: Path | str, cause: BaseException) -> int | None:
    """The last line of a file that an exception came through."""
    names = (str(path), str(Path(path).absolute()))
    if isinstance(cause, SyntaxError) and cause.filename in names:
        return cause.lineno
    frames = traceback.extract_tb(cause.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename in names]
    return lines[-1] if lines else None
