"""What `seal check` is measured on: environments with one planted defect each, and sound ones.

Each is a sound environment with a few changes. A defect is caught if a check that is right about it
speaks: a false alarm of another one does not count.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from seal.envs import load_environment
from seal.envs.scaffold import FILES
from seal.errors import EnvironmentFailure, TemplateError
from seal.soundness import CHECKS, Facts, Finding, check_environment, unloadable
from tests.evolve import parcels
from tests.factories import SLOTS, TOML, TOOLS, WORLD, edited, lamp_tasks

Files = Mapping[str, str]
"""Texts by path; what is no UTF-8 stands in them as surrogates."""
Change = Callable[[dict[str, str]], None]
Row = dict[str, Any]


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


LAMP: Files = {
    "env.toml": TOML,
    "env.py": WORLD,
    "slots.toml": SLOTS,
    "tools/dim.jinja": TOOLS["dim"],
    "tasks.jsonl": _lines(lamp_tasks(24)),
}
DESK: Files = {"env.toml": parcels.TOML, "env.py": parcels.WORLD, "slots.toml": parcels.SLOTS}
HOUSE: Files = {
    name: Template(text).substitute(name="house", place="house") for name, text in FILES.items()
}
"""What `seal new house` writes."""


@dataclass(frozen=True)
class Case:
    """One environment of the corpus."""

    name: str
    base: Files | str
    """Files, or the name of a shipped environment."""
    changes: tuple[Change, ...] = ()
    claims: tuple[str, ...] = ()
    """Those that are broken; a finding about one of them is right. None: the case is sound."""
    seed: int = 0
    inside: bool = False
    """Whether the author checks it from inside its folder."""


def planted(name: str, base: Files, claims: str | tuple[str, ...], *changes: Change) -> Case:
    """A sound environment with one defect."""
    return Case(name, base, changes, (claims,) if isinstance(claims, str) else claims)


def sound(name: str, base: Files | str, *changes: Change, seed: int = 0) -> Case:
    """An environment in which nothing is to be found."""
    return Case(name, base, changes, seed=seed)


def edit(file: str, old: str, new: str) -> Change:
    """One passage of a file exchanged."""

    def change(files: dict[str, str]) -> None:
        files[file] = edited(files[file], old, new)

    return change


def put(file: str, text: str) -> Change:
    """A file written, or written anew."""

    def change(files: dict[str, str]) -> None:
        files[file] = text

    return change


def drop(*names: str) -> Change:
    """Files left out."""

    def change(files: dict[str, str]) -> None:
        for name in names:
            del files[name]

    return change


def rows(change_all: Callable[[list[Row]], object]) -> Change:
    """The rows of tasks.jsonl changed in place."""

    def change(files: dict[str, str]) -> None:
        made = [json.loads(line) for line in files["tasks.jsonl"].splitlines()]
        change_all(made)
        files["tasks.jsonl"] = _lines(made)

    return change


def every_row(change_one: Callable[[Row], object]) -> Change:
    """Each row of tasks.jsonl changed in place."""
    return rows(lambda made: [change_one(row) for row in made])


def row(number: int, change_one: Callable[[Row], object]) -> Change:
    """One row of tasks.jsonl changed in place."""
    return rows(lambda made: change_one(made[number]))


def world(old: str, new: str) -> Change:
    """One passage of env.py exchanged."""
    return edit("env.py", old, new)


def top(text: str) -> Change:
    """A line at the top of the lamp's module, below its docstring."""
    return world("from seal.envs import Environment", f"{text}\nfrom seal.envs import Environment")


def in_reset(line: str) -> Change:
    """A line more in the lamp's reset."""
    return world('        self.colour = ""\n', f'        self.colour = ""\n        {line}\n')


def method(text: str) -> Change:
    """A method more in the lamp's class."""
    return world("    @check\n", f"{text}\n    @check\n")


def gold(made: Row) -> list[Row]:
    """The gold calls of a row, those of all its turns."""
    return [call for turn in made["turns"] for call in turn.get("gold", ())]


def write(case: Case, folder: Path) -> None:
    """The case's environment in a new folder."""
    assert not isinstance(case.base, str)
    files = dict(case.base)
    for change in case.changes:
        change(files)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))


def problems(
    case: Case,
    folder: Path,
    checks: Sequence[Callable[..., Any]] = CHECKS,
    facts: Facts | None = None,
) -> Iterator[Finding]:
    """What `seal check` finds in a case, written into a new folder, as it finds it."""
    reference, place = str(folder), contextlib.nullcontext()
    if isinstance(case.base, str):
        reference = case.base
    else:
        write(case, folder)
    if case.inside:
        reference, place = ".", contextlib.chdir(folder)
    with place:
        try:
            template = load_environment(f"{reference}@{case.seed}" if case.seed else reference)
            template.tasks(None)
        except (TemplateError, EnvironmentFailure) as error:
            yield unloadable(error)
            return
        for finding in check_environment(template, facts, checks):
            if not finding.passed:
                yield finding
