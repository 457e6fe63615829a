"""One live set of BFCL's API objects: our own instances, fresh for every world.

The official executor evaluates call strings and keeps its instances in module globals. Here a call
is a method of an instance that this world owns, with arguments that the contract has checked.
"""

import decimal
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from seal.envs.bfcl_data import CLASSES
from seal.envs.bfcl_errors import API_FOLDER, EXECUTION, error_code, masked, stable
from seal.envs.environment import SCALARS, copied
from seal.errors import ToolError
from seal.types import Arguments

_OURS = f"{__name__}_api"
"""Where our modules of the release stand, which are changed here: its own stay as they are."""
_STATELESS = "MathAPI"
_WEATHER = "get_outside_temperature_from_google"
"""With long context it writes its answer into a table of its module before it returns it."""

_DEPTH = 100
_ENTRIES = 5000
"""Beyond these a directory is shown as cut off. Directories can be made to hold themselves, and no
gold state comes near."""
_COPIED = 10_000
"""Entries one copy may hold: copies share what they hold, so each could double a directory."""
_DIGITS = 10_000
"""Digits of precision or places that a calculation may ask for; more would hold up every world."""
_PRINTED_BITS = 14_284
"""Python prints no integer above 4,300 digits, so BFCL answers such a power with an error."""

_importing = threading.Lock()
_shared = threading.Lock()
"""Held around calls that go through state of the whole process."""


@lru_cache(maxsize=32)
def _api_class(package: Path, name: str) -> type[Any]:
    """An API class of the release, without whatever else the release can do."""
    file = package.joinpath(*API_FOLDER, f"{CLASSES[name]}.py")
    spec = importlib.util.spec_from_file_location(f"{_OURS}.{CLASSES[name]}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importing:
        sys.path.insert(0, str(package.parent))
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(package.parent))
    if hasattr(module, "deepcopy"):
        # Every scenario begins with a copy of all defaults.
        vars(module)["deepcopy"] = copied
    found: type[Any] = getattr(module, name)
    return found


@contextmanager
def _precision() -> Iterator[None]:
    import mpmath

    with _shared, mpmath.workdps(15), decimal.localcontext(decimal.DefaultContext):
        yield


class ApiWorld:
    """The instances of one task, and how their answers read."""

    def __init__(
        self,
        package: Path,
        classes: Mapping[str, str],
        config: Mapping[str, Any],
        *,
        long_context: bool,
    ) -> None:
        """Set the instances up.

        Args:
            package: The folder of the release.
            classes: The class of each tool that may be called.
            config: The scenario of each class, which becomes the world's own; classes without one
                have their own defaults.
            long_context: Whether the answers come with the release's padding.
        """
        self._package = package
        self._classes = classes
        self._long_context = long_context
        self._instances = {
            name: self._instance(package, name, config.get(name, {}))
            for name in dict.fromkeys(classes.values())
        }
        self._seen: dict[str, dict[str, JsonValue]] = {}
        """The state of each instance that no call has reached since."""

    def _instance(self, package: Path, name: str, scenario: Mapping[str, Any]) -> Any:  # noqa: ANN401
        instance = _api_class(package, name)()
        if name == _STATELESS:
            return instance
        instance._load_scenario(scenario, long_context=self._long_context)
        if self._long_context and name == "TravelAPI":
            # The padding comes by reference: a booking would lower a balance in every world.
            instance.credit_card_list = copied(instance.credit_card_list)
            instance.booking_record = copied(instance.booking_record)
        return instance

    def call(self, tool: str, arguments: Arguments) -> str:
        """The official result text of one call.

        Raises:
            ToolError: The API answered with an error or raised an exception.
        """
        name = self._classes[tool]
        instance = self._instances[name]
        self._seen.pop(name, None)
        values: Arguments = copied(arguments)
        if tool == "post_tweet":
            # Python's one default list would carry mentions into later worlds.
            values = {"tags": [], "mentions": [], **values}
        _refuse_excess(tool, values, instance)
        try:
            if name == _STATELESS:
                # Precision is the process's: one such call at a time, each from the same start.
                with _precision():
                    error, text = _answer(getattr(instance, tool), values)
            elif tool == _WEATHER:
                with _shared:
                    error, text = _answer(getattr(instance, tool), values)
            else:
                error, text = _answer(getattr(instance, tool), values)
        except Exception as cause:  # noqa: BLE001 - what the official executor answers with
            raise self._refusal("execution_error", f"{EXECUTION}{cause}", arguments) from None
        if error is not None:
            raise self._refusal(error_code(error), error, arguments)
        return text

    def _refusal(self, code: str, message: str, arguments: Arguments) -> ToolError:
        """What an API says of an error, as a tool of ours would say it."""
        said = masked(self._package, message)
        argument = said.argument(arguments)
        return ToolError(code, stable(message), argument=argument, masked=said.text)

    def state(self) -> dict[str, JsonValue]:
        """Every public attribute of every instance, as `Class.attribute`."""
        state: dict[str, JsonValue] = {}
        for name, instance in self._instances.items():
            if name not in self._seen:
                self._seen[name] = {
                    f"{name}.{attribute}": value if type(value) in SCALARS else plain(value)
                    for attribute, value in vars(instance).items()
                    if attribute[0] != "_"
                }
            state.update(self._seen[name])
        return state


def _answer(method: Callable[..., object], values: Arguments) -> tuple[str | None, str]:
    """What a call's result says of an error, and the result as text if it is none."""
    result = method(**values)
    error = _error_of(result)
    return error, "" if error is not None else _text(result)


def _text(result: object) -> str:
    """A result as the official executor writes it."""
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError, RecursionError):
            return str(result)
    return str(result)


def _error_of(result: object) -> str | None:
    """What an API's error result says, None if it is no error."""
    if isinstance(result, list) and len(result) == 1:
        only = result[0]
        if isinstance(only, str) and only.startswith("Error: "):
            return only.removeprefix("Error: ")
        if isinstance(only, dict) and only.keys() == {"error"}:
            result = only
    return str(result["error"]) if isinstance(result, dict) and "error" in result else None


def _refuse_excess(tool: str, values: Arguments, instance: Any) -> None:  # noqa: ANN401
    """Refuse the few calls that could run, or grow, without end."""
    for name in ("precision", "decimal_places"):
        asked = values.get(name)
        if isinstance(asked, int) and abs(asked) > _DIGITS:
            raise _too_large(f"At most {_DIGITS} digits.", name)
    if tool == "power":
        base, exponent = values.get("base"), values.get("exponent")
        if (
            isinstance(base, int)
            and isinstance(exponent, int)
            and exponent * (abs(base).bit_length() - 1) > _PRINTED_BITS
        ):
            raise _too_large("The result is too large to represent.")
    if tool == "cp":
        source = instance._current_dir.contents.get(values.get("source"))
        if source is not None and _count(source, _COPIED) >= _COPIED:
            raise _too_large(f"cp: more than {_COPIED} entries.", "source")


def _too_large(message: str, argument: str | None = None) -> ToolError:
    """A refusal of ours, which names no value."""
    return ToolError("too_large", message, argument=argument, masked=message)


def _count(item: Any, enough: int) -> int:  # noqa: ANN401 - a file or a directory
    """The entries below a directory, counted no further than needed."""
    waiting, seen = [item], 0
    while waiting and seen < enough:
        inner = getattr(waiting.pop(), "contents", {})
        seen += len(inner)
        waiting.extend(inner.values())
    return seen


_TEXTS = frozenset({str})


def plain(value: Any, depth: int = 0) -> JsonValue:  # noqa: ANN401 - what an API keeps
    """A copy in JSON's types, equal to another exactly when the originals are equal."""
    kind = type(value)
    simple: JsonValue = value if kind in SCALARS else "…"
    if kind in SCALARS or depth > _DEPTH:
        return simple
    if kind is dict:
        return dict(value) if _row(value) else _table(value, depth)
    if kind is list:
        scalars = SCALARS.issuperset(map(type, value))
        return list(value) if scalars else [plain(item, depth + 1) for item in value]
    if kind is set:
        return sorted((plain(item, depth + 1) for item in value), key=repr)
    return {value.name: _tree(value, [_ENTRIES], depth)}


def _row(value: dict[Any, Any]) -> bool:
    """Whether a copy needs no look at each entry, as for most."""
    return (
        SCALARS.issuperset(map(type, value.values()))
        and _TEXTS.issuperset(map(type, value))
        and "#" not in "".join(value)
    )


def _table(value: dict[Any, Any], depth: int) -> dict[str, JsonValue]:
    return {
        key if type(key) is str and key[:1] != "#" else _key(key): (
            item if type(item) in SCALARS else plain(item, depth + 1)
        )
        for key, item in value.items()
    }


def _key(key: object) -> str:
    """A number as a key, which must not meet the text of the same digits."""
    return f"#{key}" if isinstance(key, str) else f"#{key!r}"


def _tree(directory: Any, left: list[int], depth: int) -> JsonValue:  # noqa: ANN401
    """A directory as names to texts and directories; parents are not followed.

    Names need no place of their own: an entry always stands under its name.
    """
    if depth > _DEPTH or left[0] < 0:
        return "…"
    left[0] -= len(directory.contents)
    return {
        name: _tree(item, left, depth + 1) if hasattr(item, "contents") else item.content
        for name, item in directory.contents.items()
    }
