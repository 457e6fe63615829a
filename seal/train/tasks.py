"""Which tasks can be trained on."""

from collections.abc import Iterable

from seal.errors import ConfigError
from seal.types import Task


def trainable(tasks: Iterable[Task]) -> tuple[list[Task], list[Task]]:
    """The tasks to train on, and those that are left out.

    A task whose turns show different tools is left out: tools stand in the prompt, so that no one
    token sequence holds such a dialogue.
    """
    kept: list[Task] = []
    left_out: list[Task] = []
    for task in tasks:
        changes = len({frozenset(turn.hidden) for turn in task.turns}) > 1
        (left_out if changes else kept).append(task)
    return kept, left_out


def tasks_to_train_on(tasks: Iterable[Task]) -> list[Task]:
    """The trainable ones.

    Raises:
        ConfigError: There are none.
    """
    kept, left_out = trainable(tasks)
    if not kept:
        raise ConfigError(
            f"there is no task to train on ({len(left_out)} are left out, since the tools they "
            "show change between turns).\nChoose another environment."
        )
    return kept
