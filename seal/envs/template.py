"""An environment template: contract, words, tasks and verifier of one environment folder."""

import importlib
import importlib.util
import inspect
import random
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from seal.envs.contract import Contract
from seal.envs.declared import contract_of, refuse_taken_names
from seal.envs.environment import (
    VERIFY_OPTIONS,
    Conventions,
    Environment,
    check_names,
    copied,
)
from seal.envs.files import author_text
from seal.envs.misfits import author_code, misfits
from seal.envs.render import Renderer
from seal.envs.tasks import problems_of_task, read_tasks
from seal.envs.time_limit import within
from seal.errors import EnvironmentFailure, TemplateError, blame, did_you_mean
from seal.records import to_toml
from seal.resources import resource_folder
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
_VIEWS = 1000
"""Tasks that one scenario may have."""


class Manifest(Record):
    """What `env.toml` may say."""

    name: str = Field(pattern=r"^[\w.-]+$")
    description: str
    version: str = "1"
    licence: str = ""
    entry: str = Field(default="env.py", min_length=1)
    """A file of the folder, or the dotted name of an installed module."""
    limits: Limits = Limits()
    slots: dict[SlotKind, Annotated[int, Field(ge=0, strict=True)]] = Field(default_factory=dict)
    """Character budget of each slot kind."""
    trusted: tuple[str, ...] = ()
    """Tasks that are not suspect, whatever speaks against them: a person has looked at gold."""


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
    def reference(self) -> str:
        """What finds the folder again from anywhere: the name of a shipped one, else its path."""
        shipped = resource_folder("env_templates")
        if self.folder.resolve().parent == shipped.resolve():
            return self.folder.name
        return str(self.folder.resolve())

    @property
    def limits(self) -> Limits:
        """What a turn and a call may cost."""
        return self.manifest.limits

    def new_world(self, task: Task) -> Environment:
        """A fresh world, set up for a task; whatever it does, the task stays as it is.

        Raises:
            EnvironmentFailure: The environment's own `reset` raised something.
        """
        # A world may keep parts of `task.state` and change them: they must be its own.
        own = task.model_copy(update={"state": copied(task.state)})
        with author_code(EnvironmentFailure, f"{self.name}: reset for task {task.id}"):
            return within(partial(_started, self.world, self.conventions, own))

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
        tasks = read_tasks(self._task_file, self.contract, check_names(self.world))
        if tasks is not None:
            return [task for task in tasks if task.split == split]
        if imported := self.world.imported_tasks(split):
            return imported
        return (task for index in range(SCENARIOS[split]) for task in self.scenario(split, index))

    @cached_property
    def generated(self) -> bool:
        """Whether fresh scenarios can be drawn without end."""
        return author_text(self._task_file) is None and not any(
            self.world.imported_tasks(split) for split in SPLITS
        )

    @property
    def _task_file(self) -> Path:
        return self.folder / "tasks.jsonl"

    def scenario(self, split: Split, index: int) -> Iterator[Task]:
        """The tasks of one generated scenario; any index gives a fresh one.

        Raises:
            EnvironmentFailure: The author's `generate` raised something.
            TemplateError: What it made are no tasks, or they do not fit the contract.
        """
        tasks = self._generated(split, index)
        for number, task in enumerate(tasks):
            suffix = f"-{number}" if len(tasks) > 1 else ""
            scenario = f"{split}-{index:03d}"
            yield task.model_copy(
                update={"id": f"{scenario}{suffix}", "scenario": scenario, "split": split}
            )

    def _generated(self, split: Split, index: int) -> list[Task]:
        rng = random.Random(f"{self.name}/{split}/{index}")
        source = inspect.getsourcefile(self.world)
        what = f"{self.name}: generate scenario {split}-{index}"
        with author_code(EnvironmentFailure, what, source):
            items, several = within(lambda: _items(self.world.generate(self.conventions, rng)))
        tasks = [item for item in items if isinstance(item, Task)]
        where = f"{source}: {self.world.__name__}.generate"
        if len(items) > _VIEWS:
            raise TemplateError(
                f"{where} yields more than {_VIEWS} tasks, and may not end.\n"
                "It is called once for every scenario: yield the tasks of one."
            )
        if not several or len(tasks) < len(items):
            wrong = next((item for item in items if not isinstance(item, Task)), items[0])
            shown = "a Task by itself" if isinstance(wrong, Task) else repr(wrong)[:80]
            raise TemplateError(
                f"{where} must yield Tasks; it gave {shown}.\n"
                "Write: yield Task(turns=..., state=...)"
            )
        checks = check_names(self.world)
        problems = [p for task in tasks for p in problems_of_task(task, self.contract, checks)]
        if problems:
            lines = dict.fromkeys(f"{source}: {what}: {problem}" for problem in problems)
            raise TemplateError("\n".join(lines))
        return tasks

    @cached_property
    def contract_parts(self) -> dict[str, Any]:
        """What the contract hash covers, but for the outputs of the gold replays."""
        return {
            "tools": self.contract.declared(),
            "tasks": content_hash([task.model_dump() for task in self.tasks(None)]),
            "world": _source_hash(self.world),
        }


def _started(world: type[Environment], conventions: Conventions, task: Task) -> Environment:
    made = world(conventions)
    made.reset(task)
    return made


def _items(made: object) -> tuple[list[object], bool]:
    """The first items of what an author made, and whether it was a collection."""
    # Records can be iterated over too: by their fields.
    if not isinstance(made, Iterable) or isinstance(made, Task | Mapping | str):
        return [made], False
    return list(islice(made, _VIEWS + 1)), True


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
    conventions = _draw(world, f"{manifest.name}@{convention_seed}")
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


def _draw(world: type[Environment], seed: str) -> Conventions:
    source = inspect.getsourcefile(world)
    with author_code(TemplateError, f"draw(rng) of {world.__name__}", source):
        drawn = within(lambda: world.draw(random.Random(seed)))
    if not isinstance(drawn, Mapping):
        raise TemplateError(
            f"{source}: draw(rng) of {world.__name__} returned {drawn!r}; return a dict."
        )
    return drawn


def contract_of_world(world: type[Environment], conventions: Conventions) -> Contract:
    """The contract an adapter imports, or the one its `@tool` methods make up."""
    with blame(TemplateError, f"{inspect.getsourcefile(world)}: the contract"):
        contract = world.imported_contract() or contract_of(world, conventions)
    if not contract.tools:
        raise TemplateError(
            f"{inspect.getsourcefile(world)}: {world.__name__} has no tools.\n"
            "Mark methods with @tool."
        )
    return contract


def _read_manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate(tomllib.loads(author_text(path) or ""))
    except ValidationError as cause:
        lines = [f"{path}: {problem}" for problem in misfits(cause, Manifest)]
        raise TemplateError("\n".join(lines)) from cause
    except ValueError as cause:
        raise TemplateError(f"{path}: not TOML: {cause}.") from cause


def _load_world(folder: Path, manifest: Manifest) -> type[Environment]:
    entry = manifest.entry
    where = str(folder / entry) if entry.endswith(".py") else entry
    if entry.endswith(".py"):
        module = _import_file(folder / entry)
    else:
        with author_code(TemplateError, f"{where}: cannot be imported"):
            module = within(lambda: importlib.import_module(entry))
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
    _check_options(worlds[0], where)
    refuse_taken_names(worlds[0])
    return worlds[0]


def _check_options(world: type[Environment], where: str) -> None:
    """Refuse a misspelt `verify_...` attribute or value: it would silently decide otherwise."""
    for name in (name for name in vars(world) if name.startswith("verify_")):
        value = getattr(world, name)
        if name not in VERIFY_OPTIONS and not isinstance(value, str):
            continue  # A tool or a method may be called so.
        if name not in VERIFY_OPTIONS:
            known = ", ".join(VERIFY_OPTIONS)
            raise TemplateError(
                f"{where}: {world.__name__} has no use for '{name}'.\n"
                f"Options of the verifier: {known}.{did_you_mean(name, VERIFY_OPTIONS)}"
            )
        if value not in VERIFY_OPTIONS[name]:
            raise TemplateError(
                f"{where}: {world.__name__}.{name} is {value!r}.\n"
                f"It may be: {', '.join(VERIFY_OPTIONS[name])}."
                f"{did_you_mean(str(value), VERIFY_OPTIONS[name])}"
            )


def _import_file(path: Path) -> Any:  # noqa: ANN401 - a module
    if (source := author_text(path)) is None:
        raise TemplateError(f"{path}: no such file.\nenv.toml's `entry` names it.")
    name = f"seal_environment_{content_hash([str(path.resolve()), source])}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TemplateError(f"{path}: no Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with author_code(TemplateError, "cannot be imported", path):
            within(partial(spec.loader.exec_module, module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _seed_texts(path: Path, renderer: Renderer) -> dict[str, str]:
    """The author's slot texts, empty where slots.toml has none."""
    texts = dict.fromkeys(renderer.slots, "")
    if author_text(path) is not None:
        texts |= read_slot_texts(path, renderer)
    return texts


def read_slot_texts(path: Path, renderer: Renderer) -> dict[str, str]:
    """The texts of a `slots.toml`, by slot.

    Raises:
        TemplateError: They are no texts, or fit no slots; all problems are said at once.
    """
    try:
        found = dict(_flatten(tomllib.loads(author_text(path) or ""), ""))
    except ValueError as cause:
        raise TemplateError(f"{path}: not TOML: {cause}.") from cause
    texts = {slot: text for slot, text in found.items() if isinstance(text, str)}
    problems = [
        f"{slot}: {value!r} is no text; write it in quotes."
        for slot, value in found.items()
        if slot not in texts
    ]
    problems += renderer.problems_of(texts)
    if problems:
        raise TemplateError("\n".join(f"{path}: {problem}" for problem in problems))
    return texts


def seed_texts_toml(candidate: Candidate) -> str:
    """A `slots.toml` that makes a candidate's texts the author's own."""
    tables: dict[str, dict[str, str]] = {}
    for slot, text in sorted(candidate.texts.items()):
        owner, _, rest = slot.partition(".")
        if text:
            tables.setdefault(owner, {})[rest] = text
    return "# The author's own slot texts (candidate 0).\n" + to_toml(dict(tables))


def _flatten(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
