"""Environments for trainers other than ours: the shape that TRL's `environment_factory` wants."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union

from pydantic import JsonValue

from seal.envs.contract import accept
from seal.envs.registry import load_environment
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import (
    Executed,
    Played,
    execute,
    finish_turn,
    run_checks,
    verify,
    visible_tools,
)
from seal.errors import ConfigError, EnvironmentFailure
from seal.models.chat import flat
from seal.rollout.agent import Arena
from seal.train.tasks import trainable
from seal.types import CallError, Candidate, RenderedTool, Split, Task, ToolCall, UserTurn

_TYPES: Mapping[str, type] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "string": str,
    "null": type(None),
}


class TrlEnvironment:
    """One world that TRL resets for each rollout, with a method for every tool.

    A task's user messages are said together, since TRL's loop knows one; tasks whose tools change
    between turns are left out. TRL does not tell an environment what the agent said, so that the
    texts an answer should contain are not checked. Errors of a call are told by the recovery words;
    a call that TRL itself cannot read is answered in TRL's own.
    """

    _arena: Arena
    _tasks: Mapping[str, Task]

    def reset(self, task: str, **_row: object) -> None:
        """Begin a task of a row."""
        self._task = self._tasks[task]
        self._world = self._arena.template.new_world(self._task)
        self._done: list[Executed] = []

    def get_reward(self) -> float | None:
        """The verifier's word on the calls so far; None if the environment failed."""
        template = self._arena.template
        try:
            gold = self._arena.gold.of(self._task)
            checks = run_checks(template, self._task, self._world)
            played = Played((finish_turn(self._world, self._done),), checks)
        except EnvironmentFailure:
            return None
        answers = [" ".join(turn.answer) for turn in self._task.turns]
        return verify(template, self._task, gold, played, answers).reward

    @classmethod
    def rows(cls, split: Split = "train") -> list[dict[str, Any]]:
        """A split as rows of a dataset: the first messages, and the task that `reset` is given."""
        return [
            {
                "prompt": [
                    {"role": "system", "content": cls._arena.prompt},
                    {"role": "user", "content": task.turns[0].user},
                ],
                "task": task.id,
            }
            for task in cls._tasks.values()
            if task.split == split
        ]

    def _called(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        arena = self._arena
        call = ToolCall(id=f"call-{len(self._done)}", tool=tool, arguments=json.dumps(arguments))
        shown = visible_tools(arena.template, self._task, self._task.turns[0].hidden)
        found = accept(arena.template.contract, call, shown)
        if not isinstance(found, CallError):
            done = execute(arena.template, self._world, found, call.id)
            self._done.append(done)
            if done.error is None:
                return done.output
            found = done.error
        return arena.template.renderer.recovery(tool, found, arena.candidate)[0]


def as_trl_environment(
    environment: str | Path | EnvironmentTemplate,
    candidate: Candidate | None = None,
    tasks: Iterable[Task] | None = None,
) -> type[TrlEnvironment]:
    """A class for the `environment_factory` of TRL's `GRPOTrainer`, words included.

    Its `rows(split)` make the dataset: `Dataset.from_list(World.rows("train"))`.

    Args:
        environment: A folder, a name, `name@SEED`, or a loaded template.
        candidate: The words that tools and errors speak; the author's own by default.
        tasks: The tasks to work on; all of the environment by default.

    Raises:
        ConfigError: A tool or an argument has a name that Python cannot give a method.
    """
    template = (
        environment
        if isinstance(environment, EnvironmentTemplate)
        else load_environment(environment)
    )
    arena = Arena(template, candidate)
    methods = {name: _method(tool) for name, tool in arena.tools.items()}
    taken = sorted(name for name in methods if name in {"reset", "get_reward", "rows"})
    if taken:
        raise ConfigError(
            f"{template.name}: TRL keeps the name '{taken[0]}' for itself.\nRename the tool."
        )
    kept, _ = trainable(template.tasks(None) if tasks is None else tasks)
    known = {task.id: _joined(task) for task in kept}
    return type("World", (TrlEnvironment,), {"_arena": arena, "_tasks": known, **methods})


def _joined(task: Task) -> Task:
    """The task with all that its user says in one turn."""
    gold = [turn.gold for turn in task.turns]
    one = UserTurn(
        user="\n".join(turn.user for turn in task.turns),
        gold=None if None in gold else tuple(call for calls in gold for call in calls or ()),
        answer=tuple(text for turn in task.turns for text in turn.answer),
        hidden=task.turns[0].hidden,
    )
    return task.model_copy(update={"turns": (one,)})


def _method(tool: RenderedTool) -> Callable[..., str]:
    """A tool as TRL reads it: from a method's signature and docstring."""
    name, properties = tool.name, _properties(tool.parameters)
    wrong = next((text for text in (name, *properties) if not text.isidentifier()), None)
    if wrong is not None:
        raise ConfigError(
            f"{name}: '{wrong}' is no name in Python, and TRL makes a tool of a method.\nRename it."
        )

    def called(self: TrlEnvironment, **arguments: JsonValue) -> str:
        return self._called(name, arguments)

    required = tool.parameters.get("required")
    hints = {key: _hint(schema) for key, schema in properties.items()}
    called.__name__ = called.__qualname__ = name
    called.__doc__ = "\n".join([flat(tool.description) or name, *_arguments(properties)])
    called.__annotations__ = {**hints, "return": str}
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(_parameters(hints, required if isinstance(required, list) else []))
    )
    return called


def _parameters(
    hints: Mapping[str, object], required: Sequence[JsonValue]
) -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for key, hint in hints.items():
        default = inspect.Parameter.empty if key in required else None
        yield inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default
        )


def _arguments(properties: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if properties:
        yield from ("", "Args:")
    for key, schema in properties.items():
        yield f"    {key}: {flat(str(schema.get('description', ''))) or key}"


def _properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _hint(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a type hint
    """The type hint that TRL turns into such a schema; objects lose the names of their fields."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "anyOf" in schema:
        return Union[tuple(_hint(option) for option in schema["anyOf"])]  # noqa: UP007
    if schema.get("type") == "array":
        items = schema.get("items")
        return list[_hint(items)] if isinstance(items, dict) else list  # type: ignore[misc]
    return _TYPES.get(str(schema.get("type")), dict)
