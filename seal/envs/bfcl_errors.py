"""What BFCL's APIs say of errors: a code, and their words with all values masked.

Their messages quote arguments and state. What of a message stands in the release's own source is
the author's prose; only that may reach a rewriter, and whatever else a message holds is masked.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from seal.envs.bfcl_data import CLASSES

API_FOLDER = ("eval_checker", "multi_turn_eval", "func_source_code")
"""Where in the release the sources of its APIs are."""
VALUE = "…"
"""Stands for a value."""
EXECUTION = "Error during execution: "
"""What the official executor puts in front of an exception's text."""
_LISTED = "Error: "
"""What an API puts in front of an error that it returns in a list."""

_CODES = (
    ("Not a file or directory", "no_such_file"),
    ("No such file", "no_such_file"),
    ("No such directory", "no_such_file"),
    ("File exists", "file_exists"),
    ("Invalid character", "invalid_character"),
    ("Is a directory", "is_a_directory"),
    ("Not a directory", "not_a_directory"),
    ("Directory not empty", "directory_not_empty"),
    ("Unsupported path", "path_not_allowed"),
    ("path not allowed", "path_not_allowed"),
    ("already the root", "already_at_root"),
    ("not authenticated", "not_logged_in"),
    ("No user is currently logged in", "not_logged_in"),
    ("Token not initialized", "not_logged_in"),
    ("Token expired", "token_expired"),
    ("Invalid access token", "invalid_token"),
    ("already registered", "already_exists"),
    ("already exists", "already_exists"),
    ("is already", "already_done"),
    ("No available route", "no_route"),
    ("departure airport", "unknown_airport"),
    ("destination airport", "unknown_airport"),
    ("Invalid stock symbol", "not_found"),
    ("not found", "not_found"),
    ("not registered", "not_found"),
    ("Insufficient funds", "insufficient_funds"),
    ("budget limit", "over_budget"),
    ("Market is closed", "market_closed"),
    ("doors must be locked", "doors_unlocked"),
    ("Brake pedal needs", "brake_not_pressed"),
    ("press the brake fully", "brake_not_pressed"),
    ("Start the engine", "engine_off"),
    ("Fuel tank is empty", "no_fuel"),
    ("tank capacity", "tank_full"),
    ("must be between", "out_of_range"),
    ("must be positive", "out_of_range"),
    ("cannot be negative", "out_of_range"),
    ("negative number", "out_of_range"),
    ("Invalid speed", "out_of_range"),
    ("Cannot divide by zero", "zero"),
    ("cannot be zero", "zero"),
    ("empty list", "empty_list"),
    ("too large to represent", "too_large"),
    ("not supported", "unsupported_conversion"),
    ("must be a number", "not_a_number"),
    ("must be numbers", "not_a_number"),
    ("Invalid date format", "invalid_date"),
    ("Invalid travel class", "invalid_class"),
    ("Invalid fields", "invalid_field"),
    ("nvalid mode", "invalid_mode"),
    ("headlight mode", "invalid_mode"),
    ("ignition mode", "invalid_mode"),
    ("Invalid option", "invalid_mode"),
    ("404", "unavailable"),
)
"""What a message says once values are masked, and the code for it; the first that fits."""

_FIELDS = "Invalid fields for update: "


def error_code(message: str) -> str:
    """The code of an API's error message; codes come from a fixed list, so they carry no values."""
    return _coded(message)[1]


def _coded(message: str) -> tuple[str, str]:
    """The first part of the list that a message has outside of quotes, and its code."""
    unquoted = re.sub(r"'[^']*'", f"'{VALUE}'", message)
    return next((one for one in _CODES if one[0] in unquoted), ("", "refused"))


def stable(message: str) -> str:
    """The message with its sets in order: theirs differs from process to process."""
    if message.startswith(_FIELDS):
        return _FIELDS + ", ".join(sorted(message.removeprefix(_FIELDS).split(", ")))
    return re.sub(
        r"\{('[^{}']*'(?:, '[^{}']*')*)\}",
        lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}",
        message,
    )


@dataclass(frozen=True, slots=True)
class Masked:
    """A message without its values."""

    text: str
    """What the release's source says, with `…` for everything else."""
    values: tuple[str, ...] = ()
    """What stood where the source has one value each."""

    def argument(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """The one argument whose value the message names, None if there is none or are several."""
        named = [name for name, value in arguments.items() if str(value) in self.values]
        return named[0] if len(named) == 1 else None


def masked(package: Path, message: str) -> Masked:
    """What an error message says, as far as the source of the release says it too.

    Args:
        package: The folder of the release.
        message: What an API answered, or the executor in its place.
    """
    if message.startswith(EXECUTION):
        cause = masked(package, message.removeprefix(EXECUTION))
        return Masked(EXECUTION + cause.text, cause.values)
    for parts in _sayings(package):
        values = _values_between(parts, message)
        if values is not None:
            return Masked(VALUE.join(parts), tuple(values))
    part, _ = _coded(message)
    return Masked(f"{VALUE}{part}{VALUE}" if part else VALUE)


def _values_between(parts: Sequence[str], message: str) -> list[str] | None:
    """What a message has between the parts of a saying; None: it says something else."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return [] if message == first else None
    inside = len(message) - len(first) - len(last)
    if inside < 0 or not (message.startswith(first) and message.endswith(last)):
        return None
    rest = message[len(first) : len(first) + inside]
    values = []
    for part in parts[1:-1]:
        value, found, rest = rest.partition(part)
        if not found:
            return None
        values.append(value)
    return [*values, rest]


@lru_cache(maxsize=8)
def _sayings(package: Path) -> tuple[tuple[str, ...], ...]:
    """All that the APIs can say of errors: the fixed parts of each, those that fix most first."""
    folder = package.joinpath(*API_FOLDER)
    found = {
        parts
        for stem in CLASSES.values()
        for node in ast.walk(ast.parse((folder / f"{stem}.py").read_text("utf-8")))
        for said in _said(node)
        if any(map(str.isalnum, "".join(parts := tuple(_parts(said)))))
    }
    return tuple(sorted(found, key=lambda parts: (-len("".join(parts)), parts)))


def _said(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a node whose values are errors."""
    match node:
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "error":
                    yield value
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="error"))]):
            yield node.value
        case ast.Raise(exc=ast.Call(args=[said, *_])):
            yield said
        case ast.List(elts=[ast.Constant(value=str(text))]) if text.startswith(_LISTED):
            yield ast.Constant(text.removeprefix(_LISTED))


def _parts(said: ast.expr) -> list[str]:
    """The fixed parts of a text, a value between each and the next."""
    match said:
        case ast.Constant():
            return [str(said.value)]
        case ast.JoinedStr():
            pieces = said.values
        case ast.BinOp(op=ast.Add()):
            pieces = [said.left, said.right]
        case _:
            return ["", ""]
    parts = [""]
    for piece in pieces:
        first, *others = _parts(piece)
        parts[-1] += first
        parts += others
    return parts
