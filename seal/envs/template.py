"""An environment template: contract, words, tasks and verifier of one environment folder."""

import importlib
import importlib.util
import inspect
import json
import random
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from seal.envs.contract import Contract, contract_of
from seal.envs.environment import Conventions, Environment
from seal.envs.render import Renderer
from seal.errors import EnvironmentFailure, TemplateError, blame, did_you_mean
from seal.records import to_toml
from seal.types import (
    SPLITS,
    Candidate,
    Limits,
    Record,
    SlotKind,
    Split,
    Task,
    content_hash,
)

SCENARIOS: dict[Split, int] = {"train": 240, "gate": 240, "validation": 120, "test": 200}
"""Scenarios a split of a generated environment."""
_SHARES: dict[Split, float] = {"train": 0.3, "gate": 0.3, "validation": 0.15, "test": 0.25}


class Manifest(Record):
    """What `env.toml` may say."""

    name: str
    description: str
    version: str = "1"
    licence: str = ""
    entry: str = "env.py"
    """A file of the folder, or the dotted name of an installed module."""
    limits: Limits = Limits()
    slots: dict[SlotKind, int] = Field(default_factory=dict)
    """Character budget of each slot kind."""


@dataclass(frozen=True, eq=False)
class EnvironmentTemplate:
    """One environment under one convention seed; use `seal.load_environment` to get one."""

    folder: Path
    manifest: Manifest
    world: type[Environment]
    convention_seed: int
    conventions: Conventions
    contract: Contract
    renderer: Renderer
    original: Candidate
    """Candidate 0: the author's own slot texts."""

    @property
    def name(self) -> str:
        """The name with its convention seed, as a user types it."""
        seed = f"@{self.convention_seed}" if self.convention_seed else ""
        return f"{self.manifest.name}{seed}"

    @property
    def limits(self) -> Limits:
        """What a turn and a call may cost."""
        return self.manifest.limits

    def new_world(self, task: Task) -> Environment:
        """A fresh world, set up for a task.

        Raises:
            EnvironmentFailure: The environment's own `reset` raised something.
        """
        with blame(EnvironmentFailure, f"{self.name}: reset for task {task.id}"):
            world = self.world(self.conventions)
            world.reset(task)
        return world

    def tasks(self, split: Split | None) -> tuple[Task, ...]:
        """The tasks of a split, or of all splits; the same at every call."""
        if split is None:
            return tuple(task for one in SPLITS for task in self.tasks(one))
        if split not in self._task_cache:
            self._task_cache[split] = tuple(self._tasks(split))
        return self._task_cache[split]

    @cached_property
    def _task_cache(self) -> dict[Split, tuple[Task, ...]]:
        return {}

    def _tasks(self, split: Split) -> Iterable[Task]:
        path = self.folder / "tasks.jsonl"
        if path.is_file():
            return [task for task in read_tasks(path, self.contract) if task.split == split]
        if imported := self.world.imported_tasks(split):
            return imported
        return (task for index in range(SCENARIOS[split]) for task in self.scenario(split, index))

    @cached_property
    def generated(self) -> bool:
        """Whether fresh scenarios can be drawn without end."""
        return not (self.folder / "tasks.jsonl").is_file() and not any(
            self.world.imported_tasks(split) for split in SPLITS
        )

    def scenario(self, split: Split, index: int) -> Iterator[Task]:
        """The tasks of one generated scenario; any index gives a fresh one."""
        rng = random.Random(f"{self.name}/{split}/{index}")
        with blame(EnvironmentFailure, f"{self.name}: generate scenario {split}-{index}"):
            tasks = list(self.world.generate(self.conventions, rng))
        for number, task in enumerate(tasks):
            suffix = f"-{number}" if len(tasks) > 1 else ""
            scenario = f"{split}-{index:03d}"
            yield task.model_copy(
                update={"id": f"{scenario}{suffix}", "scenario": scenario, "split": split}
            )

    @cached_property
    def contract_parts(self) -> dict[str, Any]:
        """What the contract hash covers, but for the outputs of the gold replays."""
        return {
            "tools": self.contract.declared(),
            "tasks": content_hash([task.model_dump() for task in self.tasks(None)]),
            "world": _source_hash(self.world),
        }


def _source_hash(world: type[Environment]) -> str:
    """The text of the module that holds world and verifier."""
    path = inspect.getsourcefile(world)
    return content_hash(Path(path).read_text(encoding="utf-8") if path else world.__qualname__)


def load_template(folder: Path, defaults: Path, convention_seed: int = 0) -> EnvironmentTemplate:
    """The environment in a folder, under a convention seed.

    Raises:
        TemplateError: A file of the folder is wrong; all problems of one file are said at once.
    """
    manifest = _read_manifest(folder / "env.toml")
    world = _load_world(folder, manifest)
    with blame(TemplateError, f"{folder}: draw(rng) of {world.__name__}"):
        conventions = world.draw(random.Random(f"{manifest.name}@{convention_seed}"))
        contract = contract_of_world(world, conventions)
    description = manifest.description
    renderer = Renderer(folder, defaults, contract, conventions, description, manifest.slots)
    return EnvironmentTemplate(
        folder=folder,
        manifest=manifest,
        world=world,
        convention_seed=convention_seed,
        conventions=conventions,
        contract=contract,
        renderer=renderer,
        original=Candidate(texts=_seed_texts(folder / "slots.toml", renderer)),
    )


def contract_of_world(world: type[Environment], conventions: Conventions) -> Contract:
    """The contract an adapter imports, or the one its `@tool` methods make up."""
    contract = world.imported_contract() or contract_of(world, conventions)
    if not contract.tools:
        raise TemplateError(
            f"{inspect.getsourcefile(world)}: {world.__name__} has no tools.\n"
            "Mark methods with @tool."
        )
    return contract


def _read_manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as cause:
        raise TemplateError(f"{path}: cannot be read ({cause.strerror}).") from cause
    except ValidationError as cause:
        known = [*Manifest.model_fields, *(f"limits.{n}" for n in Limits.model_fields)]
        lines = []
        for error in cause.errors():
            where = ".".join(str(part) for part in error["loc"])
            close = did_you_mean(where, known) if error["type"] == "extra_forbidden" else ""
            lines.append(f"{path}: {where}: {error['msg']}.{close}")
        raise TemplateError("\n".join(lines)) from cause
    except ValueError as cause:
        raise TemplateError(f"{path}: not TOML: {cause}.") from cause


def _load_world(folder: Path, manifest: Manifest) -> type[Environment]:
    entry = manifest.entry
    where = str(folder / entry) if entry.endswith(".py") else entry
    with blame(TemplateError, f"{where}: cannot be imported"):
        if entry.endswith(".py"):
            module = _import_file(folder / entry)
        else:
            module = importlib.import_module(entry)
    worlds = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Environment)
        and member.__module__ == module.__name__
    ]
    if len(worlds) != 1:
        raise TemplateError(
            f"{where}: {len(worlds)} subclasses of Environment here; there must be one."
        )
    return worlds[0]


def _import_file(path: Path) -> Any:  # noqa: ANN401 - a module
    if not path.is_file():
        raise TemplateError(f"{path}: no such file.\nenv.toml's `entry` names it.")
    name = f"seal_environment_{content_hash([str(path.resolve()), path.read_text('utf-8')])}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TemplateError(f"{path}: no Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _seed_texts(path: Path, renderer: Renderer) -> dict[str, str]:
    """The author's slot texts, empty where slots.toml has none."""
    texts = dict.fromkeys(renderer.slots, "")
    if path.is_file():
        try:
            seeds = dict(_flatten(tomllib.loads(path.read_text(encoding="utf-8")), ""))
        except ValueError as cause:
            raise TemplateError(f"{path}: not TOML: {cause}.") from cause
        if problems := renderer.problems_of(seeds):
            raise TemplateError("\n".join(f"{path}: {problem}" for problem in problems))
        texts |= seeds
    return texts


def seed_texts_toml(candidate: Candidate) -> str:
    """A `slots.toml` that makes a candidate's texts the author's own."""
    tables: dict[str, dict[str, str]] = {}
    for slot, text in sorted(candidate.texts.items()):
        owner, _, rest = slot.partition(".")
        if text:
            tables.setdefault(owner, {})[rest] = text
    return "# The author's own slot texts (candidate 0).\n" + to_toml(dict(tables))


def _flatten(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def read_tasks(path: Path, contract: Contract) -> list[Task]:
    """The tasks of a file, each with its split.

    Raises:
        TemplateError: Lines are no tasks, name unknown tools, or repeat an id; all at once.
    """
    with blame(TemplateError, f"{path}: cannot be read"):
        # JSON's texts may hold what `splitlines` takes for the end of a line.
        lines = path.read_bytes().decode("utf-8").split("\n")
    tasks: dict[str, Task] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            task = Task.model_validate(json.loads(line))
        except ValidationError as cause:
            problems += [f"{path}:{number}: {problem}" for problem in _misfits(cause)]
            continue
        except (ValueError, RecursionError) as cause:
            problems.append(f"{path}:{number}: not JSON: {cause}.")
            continue
        if task.id in tasks:
            problems.append(f"{path}:{number}: a second task '{task.id}'; ids must differ.")
        problems += [f"{path}:{number}: {problem}" for problem in _unknown_names(task, contract)]
        tasks[task.id] = task
    if not tasks and not problems:
        problems.append(f"{path}: no tasks. Write one JSON object a line.")
    if problems:
        raise TemplateError("\n".join(problems))
    return _split(list(tasks.values()))


def _misfits(cause: ValidationError) -> Iterator[str]:
    """Where and why a line's JSON is no task."""
    for error in cause.errors():
        where = ".".join(str(part) for part in error["loc"])
        said = f"{where}: {error['msg']}." if where else f"{error['msg']}."
        unknown = error["type"] == "extra_forbidden"
        yield said + (did_you_mean(where.split(".")[-1], _task_words()) if unknown else "")


def _task_words() -> list[str]:
    return [*Task.model_fields, "user", "gold", "answer", "hidden", "tool", "arguments", "as_said"]


def _unknown_names(task: Task, contract: Contract) -> Iterator[str]:
    """Tools and arguments that a task speaks of and the contract does not have."""
    for index, turn in enumerate(task.turns):
        for call in turn.gold or ():
            if call.tool not in contract.tools:
                yield (
                    f"turn {index}: no tool '{call.tool}'.\nTools: {', '.join(contract.tools)}."
                    + did_you_mean(call.tool, contract.tools)
                )
                continue
            known = contract[call.tool].arguments
            for argument in [*call.arguments, *call.as_said]:
                if argument not in known:
                    yield (
                        f"turn {index}: {call.tool} has no argument '{argument}'.\n"
                        f"Arguments: {', '.join(known) or 'none'}.{did_you_mean(argument, known)}"
                    )
            for argument in sorted(call.as_said.keys() - call.arguments.keys()):
                yield (
                    f"turn {index}: {call.tool}: '{argument}' is in as_said and not in arguments.\n"
                    "Say there which value the tool takes."
                )
    for name in [*(task.tools or ()), *(name for turn in task.turns for name in turn.hidden)]:
        if name not in contract.tools:
            yield f"no tool '{name}'.{did_you_mean(name, contract.tools)}"


def _split(tasks: Sequence[Task]) -> list[Task]:
    """Tasks without a split of their own get one by scenario, in an order no author chose."""
    scenarios = sorted({t.scenario for t in tasks if t.split is None}, key=content_hash)
    assigned: dict[str, Split] = {}
    for place, scenario in enumerate(scenarios):
        reached = 0.0
        for split in SPLITS:
            reached += _SHARES[split]
            if place < reached * len(scenarios) - 1e-9:
                assigned[scenario] = split
                break
    return [
        task if task.split else task.model_copy(update={"split": assigned[task.scenario]})
        for task in tasks
    ]
