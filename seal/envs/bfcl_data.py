"""The files of the BFCL release as contract, tasks and quarantine; nothing here runs them."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import JsonValue, WithJsonSchema

from seal.envs.contract import Contract, Prose, Tool, build_tool, hint_of
from seal.envs.environment import Quarantined
from seal.errors import MissingExtra, missing_extra
from seal.models.fetch import WHEELS, Wheel, fetched
from seal.resources import resource_folder
from seal.types import Arguments, GoldCall, Split, Task, UserTurn

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
"""The four views of every scenario."""
LONG_CONTEXT = "long_context"
CLASSES: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Each API class, and the name that its module and its document share."""
REVEAL = "I have updated some more functions you can choose from. What about now?"
"""What the user of the official harness says when held-out functions appear."""

_SCENARIOS = 200
_NUMBER = Annotated[int | float, WithJsonSchema({"type": "number"})]
"""A number as it was written: as floats, integers would come back as 3.0 where BFCL answers 3."""
_JSON_TYPES = {"float": "number", "dict": "object"}


def package_folder() -> Path:
    """The folder `bfcl_eval` of the fetched data, else of an installed release of that version.

    Raises:
        MissingExtra: There is neither, or mpmath is not installed.
    """
    # Every world asks; where the cache is does not change without these.
    return _package_folder(os.environ.get("SEAL_CACHE"), os.environ.get("XDG_CACHE_HOME"))


@lru_cache(maxsize=4)
def _package_folder(*_places: str | None) -> Path:
    _require_mpmath()
    wheel = WHEELS["bfcl"]
    if folder := fetched("bfcl"):
        return folder / "bfcl_eval"
    if installed := _installed(wheel):
        return installed
    raise MissingExtra(
        f"The BFCL environment needs the BFCL data ({wheel.project} {wheel.version}), "
        "which is not in the cache.\nBring it with: seal fetch bfcl"
    )


def _installed(wheel: Wheel) -> Path | None:
    try:
        version = importlib.metadata.version(wheel.project)
    except importlib.metadata.PackageNotFoundError:
        return None
    spec = importlib.util.find_spec("bfcl_eval") if version == wheel.version else None
    return Path(spec.origin).parent if spec and spec.origin else None


@lru_cache(maxsize=1)
def _require_mpmath() -> None:
    if importlib.util.find_spec("mpmath") is None:
        raise missing_extra("The BFCL environment", "bfcl")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


@lru_cache(maxsize=2)
def documents(package: Path) -> Mapping[str, tuple[dict[str, Any], ...]]:
    """The documented tools of each class, in the order of the release."""
    folder = package / "data" / "multi_turn_func_doc"
    return {name: tuple(_lines(folder / f"{stem}.json")) for name, stem in CLASSES.items()}


@lru_cache(maxsize=2)
def classes_of_tools(package: Path) -> Mapping[str, str]:
    """The class that each tool belongs to."""
    found = documents(package).items()
    return {doc["name"]: name for name, docs in found for doc in docs}


@lru_cache(maxsize=2)
def contract(package: Path) -> Contract:
    """The contract of all tools, with the release's own descriptions as prose."""
    docs = [doc for docs in documents(package).values() for doc in docs]
    return Contract({doc["name"]: _tool(doc) for doc in docs})


def _tool(doc: Mapping[str, Any]) -> Tool:
    properties: Mapping[str, Mapping[str, Any]] = doc["parameters"]["properties"]
    required = doc["parameters"]["required"]
    fields = {
        name: (_hint(schema), ... if name in required else _default(schema))
        for name, schema in properties.items()
    }
    prose = Prose(" ".join(doc["description"].split()), dict(_prose(properties, "")))
    # Nothing in the release says which tools only read, and some that seem to (a speed, an outside
    # temperature) draw from the world's random numbers.
    return build_tool(doc["name"], fields, prose=prose, mutates=True)


def _hint(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a type
    """The type of a documented argument."""
    if schema["type"] == "float":
        return _NUMBER
    if schema["type"] == "array":
        return list[_hint(schema["items"])]  # type: ignore[misc]
    if "properties" in schema:
        # The tool itself answers to fields that it does not know.
        shown = {
            name: {"type": _JSON_TYPES.get(inner["type"], inner["type"])}
            for name, inner in schema["properties"].items()
        }
        declared = {"type": "object", "properties": shown}
        return Annotated[dict[str, JsonValue], WithJsonSchema(declared)]
    return hint_of(schema)


def _default(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a JSON value
    """The documents spell a missing value as the text "None"."""
    default = schema.get("default")
    return None if default == "None" else default


def _prose(properties: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[tuple[str, str]]:
    for name, schema in properties.items():
        yield f"{prefix}{name}", " ".join(str(schema.get("description", "")).split())
        yield from _prose(schema.get("properties", {}), f"{prefix}{name}.")


def split_numbers() -> dict[Split, tuple[int, ...]]:
    """The scenario numbers of each split, in drawn order.

    The 100 numbers that train, gate and validation share are those that published work trains on;
    all four views of a number are always in one split.
    """
    order = list(range(_SCENARIOS))
    random.Random(42).shuffle(order)
    return {
        "train": tuple(order[:30]),
        "gate": tuple(order[30:90]),
        "validation": tuple(order[90:100]),
        "test": tuple(order[100:]),
    }


def tasks(package: Path, split: Split) -> Iterator[Task]:
    """The tasks of a split but for the broken ones, all views of a scenario together."""
    broken = {one.task for one in quarantine() if one.status == "broken"}
    for number in split_numbers()[split]:
        for category in CATEGORIES:
            task = _task(package, category, number)
            if task.id not in broken:
                yield task.model_copy(update={"split": split})


def broken_tasks(package: Path) -> Iterator[Task]:
    """The tasks that are kept out of all splits, for whoever wants to see why."""
    for one in quarantine():
        if one.status == "broken":
            category, _, number = one.task.rpartition("_")
            yield _task(package, category, int(number))


@lru_cache(maxsize=8)
def _entries(package: Path, category: str) -> tuple[tuple[dict[str, Any], list[list[str]]], ...]:
    """Each entry of a category with its reference calls."""
    data, name = package / "data", f"BFCL_v4_multi_turn_{category}.json"
    answers = {line["id"]: line["ground_truth"] for line in _lines(data / "possible_answer" / name)}
    return tuple((line, answers[line["id"]]) for line in _lines(data / name))


def _task(package: Path, category: str, number: int) -> Task:
    entry, gold = _entries(package, category)[number]
    held_out = {int(turn): names for turn, names in entry.get("missed_function", {}).items()}
    turns = tuple(
        UserTurn(
            user="\n".join(message["content"] for message in said) if said else REVEAL,
            gold=tuple(parse_call(package, call) for call in calls),
            hidden=tuple(
                name for turn, names in held_out.items() if turn > index for name in names
            ),
        )
        for index, (said, calls) in enumerate(zip(entry["question"], gold, strict=True))
    )
    docs = documents(package)
    return Task(
        id=f"{category}_{number}",
        scenario=str(number),
        group=category,
        turns=turns,
        state=entry["initial_config"],
        tools=tuple(doc["name"] for name in entry["involved_classes"] for doc in docs[name]),
    )


def parse_call(package: Path, text: str) -> GoldCall:
    """A reference call, read as literals and never evaluated.

    Raises:
        ValueError: It is no call of a known tool, or an argument is no literal.

    """
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"no call: {text}")
    tool = node.func.id
    order = contract(package)[tool].arguments
    arguments: Arguments = {}
    for name, value in zip(order, node.args, strict=False):
        arguments[name] = _literal(value)
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError(f"no literal: {text}")
        arguments[keyword.arg] = _literal(keyword.value)
    return GoldCall(tool=tool, arguments=arguments)


def _literal(node: ast.expr) -> JsonValue:
    value: JsonValue = json.loads(json.dumps(ast.literal_eval(node)))
    return value


def quarantine() -> tuple[Quarantined, ...]:
    """The tasks with a known defect, one record a task, in the order of the file."""
    path = resource_folder("env_templates") / "bfcl" / "quarantine.toml"
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["quarantined"]
    return tuple(_records(groups))


def _records(groups: Sequence[Mapping[str, Any]]) -> Iterable[Quarantined]:
    for group in groups:
        shared = {key: group[key] for key in ("status", "reason", "source")}
        for task in group["tasks"]:
            yield Quarantined(task=task, **shared)
