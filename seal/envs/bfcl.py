"""BFCL v3 multi-turn as an environment: the real tasks and tools of `bfcl-eval`.

The release is neither shipped nor installed: `seal fetch bfcl` unpacks it into the cache.
"""

from typing import Any, ClassVar, Literal

from pydantic import JsonValue

from seal.envs.bfcl_data import (
    LONG_CONTEXT,
    classes_of_tools,
    contract,
    package_folder,
    quarantine,
    tasks,
)
from seal.envs.bfcl_world import ApiWorld
from seal.envs.environment import Environment, Quarantined
from seal.types import Arguments, Split, Task


class BfclEnvironment(Environment):
    """One task's API objects; as in the official check, every turn must leave gold's state."""

    verify_state: ClassVar[Literal["final", "every_turn"]] = "every_turn"
    verify_outputs: ClassVar[Literal["reads", "all"]] = "all"

    _world: ApiWorld

    @classmethod
    def imported_contract(cls) -> Any:  # noqa: ANN401 - as its base
        """The documented tools of all eight classes."""
        return contract(package_folder())

    @classmethod
    def imported_tasks(cls, split: Split) -> tuple[Task, ...]:
        """The tasks of a split but for the broken ones."""
        return tuple(tasks(package_folder(), split))

    @classmethod
    def quarantined(cls) -> tuple[Quarantined, ...]:
        """The tasks with a known defect: broken ones are in no split, suspect ones stay."""
        return quarantine()

    def reset(self, task: Task) -> None:
        """Fresh instances of the classes whose tools the task has."""
        package = package_folder()
        classes = classes_of_tools(package)
        names = task.tools if task.tools is not None else tuple(classes)
        self._world = ApiWorld(
            package,
            {name: classes[name] for name in names},
            task.state,
            long_context=task.group == LONG_CONTEXT,
        )

    def call(self, tool: str, arguments: Arguments) -> JsonValue:
        """The official result text."""
        return self._world.call(tool, arguments)

    def state(self) -> dict[str, JsonValue]:
        """Every public attribute of every instance."""
        return self._world.state()
