"""What an author writes: a world with typed tools, and how it says no."""

import copy
import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import JsonValue

from seal.types import Arguments, Record, Rule, Split, Task

Conventions = Mapping[str, Any]
RuleSource = Rule | Callable[[Any], Rule | None] | None
"""A rule, or what makes one from the drawn conventions."""
F = TypeVar("F", bound=Callable[..., Any])
VERIFY_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "verify_state": ("final", "every_turn"),
    "verify_outputs": ("reads", "all"),
}
"""What an environment may choose of its verifier, as attributes of its class."""
SCALARS = frozenset({str, int, float, bool, type(None)})
"""JSON's types that hold nothing else."""


@dataclass(frozen=True, slots=True)
class ToolMark:
    """What `@tool` was told about one method."""

    requires: str | Callable[[Any], str | None] | None
    mutates: bool
    rules: dict[str, RuleSource]


def tool(
    method: F | None = None,
    *,
    requires: str | Callable[[Any], str | None] | None = None,
    mutates: bool = True,
    **rules: RuleSource,
) -> Any:  # noqa: ANN401 - a decorator with and without arguments
    """Make a method a tool of its environment.

    Args:
        method: The method; its type hints are the contract, its docstring the imported words.
        requires: A tool that must have succeeded before, or a function of the conventions.
        mutates: Whether a call can change the world; a read's output can be what gold needed.
        rules: Per argument, a `Rule`, or a function of the drawn conventions that returns one.
    """

    def mark(function: F) -> F:
        if not callable(function):
            raise TypeError(
                f"@tool is given a {type(function).__name__}; it marks a method, and takes rules "
                "by name: @tool(ARGUMENT=Rule(...))"
            )
        function.__seal_tool__ = ToolMark(requires, mutates, dict(rules))  # type: ignore[attr-defined]
        return function

    return mark if method is None else mark(method)


def check(method: F) -> F:
    """Make a method a named check: true if the final world is as a task wants it."""
    method.__seal_check__ = True  # type: ignore[attr-defined]
    return method


def check_names(world: type["Environment"]) -> tuple[str, ...]:
    """The names of an environment's checks."""
    members = inspect.getmembers(world)
    return tuple(name for name, member in members if getattr(member, "__seal_check__", False))


class Quarantined(Record):
    """A task with a known defect of its own, and how it is known."""

    task: str
    status: Literal["broken", "suspect"]
    """Broken: gold fails here, or nobody could do it; suspect: gold passes and looks wrong."""
    reason: str
    source: str


class Environment:
    """One live, single-use world for one task.

    A subclass implements `reset` and marks its tools. Every public attribute that `reset` or a tool
    sets is the world's state; attributes that start with `_` are not. Raise `ToolError` to say no
    to the policy: any other exception is the environment's own failure, and leaves a rollout
    unscored.
    """

    verify_state: ClassVar[Literal["final", "every_turn"]] = "final"
    """When the state must equal gold's: at the end, or after every turn in which gold calls."""
    verify_outputs: ClassVar[Literal["reads", "all"]] = "reads"
    """Which of gold's outputs a policy must have obtained: of tools that only read, or of all."""

    def __init__(self, conventions: Conventions | None = None) -> None:
        self._conventions: Conventions = conventions or {}

    @property
    def conventions(self) -> Conventions:
        """What the convention seed drew."""
        return self._conventions

    @classmethod
    def draw(cls, rng: random.Random) -> Conventions:  # noqa: ARG003
        """The conventions of one seed; none by default."""
        return {}

    @classmethod
    def generate(
        cls,
        conventions: Conventions,  # noqa: ARG003
        rng: random.Random,  # noqa: ARG003
    ) -> Iterable[Task]:
        """The tasks of one fresh scenario, drawn from `rng` alone.

        An environment without `tasks.jsonl` overrides this. `id`, `scenario` and `split` are set
        by SEAL, so tasks may leave them out.
        """
        return ()

    @classmethod
    def imported_contract(cls) -> Any:  # noqa: ANN401 - a `Contract`, which knows this class
        """The contract of a benchmark that is adapted; None: the `@tool` methods are it."""
        return None

    @classmethod
    def imported_tasks(cls, split: Split) -> tuple[Task, ...]:  # noqa: ARG003
        """The tasks of a split, for environments that adapt a benchmark; none by default."""
        return ()

    @classmethod
    def quarantined(cls) -> tuple[Quarantined, ...]:
        """Tasks known to be defective: broken ones are in no split, suspect ones stay."""
        return ()

    def reset(self, task: Task) -> None:
        """Set the world up for a task; called once."""
        raise NotImplementedError(f"{type(self).__name__} has no reset(task)")

    def call(self, tool: str, arguments: Arguments) -> JsonValue:
        """Run one validated call; the arguments have the types of the hints."""
        result: JsonValue = getattr(self, tool)(**arguments)
        return result

    def state(self) -> dict[str, JsonValue]:
        """The public state: a copy that later calls do not change."""
        public = {name: value for name, value in vars(self).items() if name[0] != "_"}
        try:
            return {name: _plain(value) for name, value in public.items()}
        except RecursionError:
            raise ValueError(
                f"a public attribute holds itself, or is nested too deeply ({', '.join(public)}); "
                "let the name of what is no state begin with _"
            ) from None

    def final_checks(self) -> dict[str, Callable[[], bool]]:
        """The environment's checks by name."""
        return {name: getattr(self, name) for name in check_names(type(self))}


def _plain(value: Any) -> JsonValue:  # noqa: ANN401 - whatever an author keeps in a world
    """A deep copy in JSON's types; sets are sorted, so that equal worlds have equal states."""
    if isinstance(value, Enum):
        value = value.value
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    elif hasattr(value, "__dict__"):
        value = {k: v for k, v in vars(value).items() if not k.startswith("_")}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else repr(value)


def copied(value: Any) -> Any:  # noqa: ANN401 - JSON, as a rule
    """A deep copy, of JSON without the bookkeeping that any other value needs."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if kind is list:
        return [copied(item) for item in value]
    return copy.deepcopy(value)
