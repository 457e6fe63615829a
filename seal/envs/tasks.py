"""Tasks as authors write them: read from a file, and held against their environment."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from seal.envs.contract import Contract
from seal.envs.files import author_text
from seal.envs.misfits import misfits
from seal.errors import TemplateError, did_you_mean
from seal.types import SPLITS, GoldCall, Split, Task, content_hash

_SHARES: dict[Split, float] = {"train": 0.3, "gate": 0.3, "validation": 0.15, "test": 0.25}


def read_tasks(path: Path, contract: Contract, checks: Sequence[str]) -> list[Task] | None:
    """The tasks of a file, each with its split; None: there is no such file.

    Args:
        path: A JSON object a line.
        contract: The tools that the tasks may speak of.
        checks: The named checks of the environment.

    Raises:
        TemplateError: Lines are no tasks, name what is not there, or repeat an id; all at once.
    """
    if (text := author_text(path)) is None:
        return None
    # JSON's texts may hold what `splitlines` takes for the end of a line.
    lines = text.split("\n")
    tasks: dict[str, Task] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            made = json.loads(line)
            task = Task.model_validate(made)
        except ValidationError as cause:
            problems += [f"{path}:{number}: {problem}" for problem in misfits(cause)]
            continue
        except (ValueError, RecursionError) as cause:
            problems.append(f"{path}:{number}: not JSON: {cause}.")
            continue
        # Only generators may leave these out, whose tasks are named for them.
        found = [f"{key}: Field required." for key in ("id", "scenario") if key not in made]
        if task.id in tasks:
            found.append(f"a second task '{task.id}'; ids must differ.")
        found += problems_of_task(task, contract, checks)
        problems += [f"{path}:{number}: {problem}" for problem in found]
        tasks[task.id] = task
    if not tasks and not problems:
        problems.append(f"{path}: no tasks. Write one JSON object a line.")
    if problems:
        raise TemplateError("\n".join(problems))
    return _split(list(tasks.values()))


def problems_of_task(task: Task, contract: Contract, checks: Sequence[str]) -> Iterator[str]:
    """Tools, arguments and checks that a task speaks of and its environment does not have."""
    try:
        task.model_dump_json()
    except ValueError:
        yield "a text in it is no Unicode: it holds half of a surrogate pair."
    for index, turn in enumerate(task.turns):
        for call in turn.gold or ():
            yield from (f"turn {index}: {problem}" for problem in _call_problems(call, contract))
    for name in [*(task.tools or ()), *(name for turn in task.turns for name in turn.hidden)]:
        if name not in contract.tools:
            yield _unknown("tool", name, contract.tools)
    for name in task.checks:
        if name not in checks:
            yield _unknown("check", name, checks)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    listed = ", ".join(names) or "none"
    return f"no {what} '{name}'.\n{what.capitalize()}s: {listed}.{did_you_mean(name, names)}"


def _call_problems(call: GoldCall, contract: Contract) -> Iterator[str]:
    if call.tool not in contract.tools:
        yield _unknown("tool", call.tool, contract.tools)
        return
    known = contract[call.tool].arguments
    for argument in dict.fromkeys([*call.arguments, *call.as_said]):
        if argument not in known:
            yield (
                f"{call.tool} has no argument '{argument}'.\n"
                f"Arguments: {', '.join(known) or 'none'}.{did_you_mean(argument, known)}"
            )
        elif argument not in call.arguments:
            yield (
                f"{call.tool}: '{argument}' is in as_said and not in arguments.\n"
                "Say there which value the tool takes."
            )


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
