"""Nothing in the package knows a shipped environment: no tool, argument or convention by name."""

import ast
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from seal.envs.registry import load_environment
from seal.envs.template import EnvironmentTemplate
from seal.errors import RULE_KEYS
from seal.models.fetch import fetched

ROOT = Path(__file__).resolve().parent.parent
ADAPTER = re.compile(r"seal/(envs/bfcl\w*|models/fetch)\.py")
"""The adapter of one benchmark, and what fetches its data, know that benchmark by design."""

GENERIC = {
    "parts of a rule": RULE_KEYS,
    "keys of JSON schema": ("description", "title", "number", "pattern"),
    "roles and fields of a chat request": ("user", "message", "messages", "content", "temperature"),
    "ends of a model's answer": ("length",),
    "words of our own messages and word lists": (
        *("add", "base", "folder", "mean", "name", "path", "power", "value", "whole", "zone"),
    ),
    "what our own messages count in": ("seconds",),
    "our own commands, and one of the shell that we advise": ("diff", "ls"),
    "a filter of the report's": ("amount",),
}


def knows(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a module that can decide something: all but its docstrings."""
    tree = ast.parse(source)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documentation = {
        id(line.value)
        for node in ast.walk(tree)
        if isinstance(node, owners)
        for line in node.body
        if isinstance(line, ast.Expr)
    }
    for node in ast.walk(tree):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if text and id(node) not in documentation:
            yield node.lineno, node.value


def names_of(template: EnvironmentTemplate) -> set[str]:
    """Tools, arguments, and every text in conventions and rules; single letters left out."""
    contracts = [tool.contract for tool in template.contract.tools.values()]
    found = {contract.name for contract in contracts}
    found |= {argument for contract in contracts for argument in contract.arguments}
    found |= set(texts_in(dict(template.conventions)))
    for contract in contracts:
        for rule in (contract.rule, *contract.rules.values()):
            for value in rule.stated().values():
                found |= set(texts_in(value))
    return {name for name in found if len(name) > 1}


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts_in(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from texts_in(inner)


def found_in_package(names: set[str]) -> list[str]:
    generic = {word for words in GENERIC.values() for word in words}
    found = []
    for path in sorted((ROOT / "seal").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if not ADAPTER.fullmatch(where):
            for line, text in strings_of(path.read_text(encoding="utf-8")):
                found += [f"{where}:{line}: {n}" for n in names - generic if knows(text, n)]
    return found


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("home", {"set_light", "start_time", "tenths of degrees", "nursery"}),
        ("orders", {"refund_order", "order_no", "refund_needs", "cents"}),
        ("rooms", {"book_room", "portions", "check_first", "minutes"}),
    ],
)
def test_no_string_of_the_package_names_what_is_in_an_environment(name, some):
    names = set()
    for seed in range(12):
        names |= names_of(load_environment(f"{name}@{seed}"))
    assert some <= names
    assert len(names) > 80
    assert found_in_package(names) == []


@pytest.mark.bfcl
def test_no_string_of_the_package_names_what_is_in_bfcl():
    if fetched("bfcl") is None or importlib.util.find_spec("mpmath") is None:
        missing = "the BFCL data (seal fetch bfcl) or the bfcl extra is not here"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    names = names_of(load_environment("bfcl"))
    assert len(names) > 200
    assert found_in_package(names) == []


def test_a_name_in_a_string_would_be_found():
    source = '"""book_room, explained."""\nTOOL = "book_room"\nOTHER = f"call {TOOL} of rooms_7"\n'
    assert [line for line, text in strings_of(source) if knows(text, "book_room")] == [2]
    assert not any(knows(text, "rooms") for _, text in strings_of(source))
