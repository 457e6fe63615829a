"""The same calls do the same thing: again, beside another world, and in another process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from pydantic import JsonValue

from seal.envs.contract import Accepted, accept
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import execute, gold_calls, state_difference, state_of, visible_tools
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    one_of_each,
    sample_tasks,
    show_command,
    tool_place,
    verdict,
    world_file,
)
from seal.types import Task, content_hash

SAME_CLAIM = "reset and gold do the same every time"
APART_CLAIM = "worlds share nothing"
PROCESS_CLAIM = "worlds are the same in another process"
_SAMPLE = 40
_PROCESS_SAMPLE = 20
_PROCESS_SECONDS = 120.0


def trail(template: EnvironmentTemplate, task: Task) -> Iterator[JsonValue]:
    """What gold does in a fresh world, step by step: first state, outputs, state of every turn."""
    try:
        world = template.new_world(task)
        yield state_of(world)
        for turn, calls in zip(task.turns, gold_calls(task), strict=True):
            shown = visible_tools(template, task, turn.hidden)
            for call in calls:
                accepted = accept(template.contract, call, shown)
                if isinstance(accepted, Accepted):
                    done = execute(template, world, accepted, call.id)
                    yield [done.tool, done.output, done.error.code if done.error else None]
            yield state_of(world)
    except EnvironmentFailure as failure:
        yield str(failure)


def worlds_repeat(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of some tasks twice."""
    tasks = sample_tasks(template, _SAMPLE)
    differences = (
        _difference(SAME_CLAIM, template, task, first, second, "played twice")
        for task in tasks
        if (first := list(trail(template, task))) != (second := list(trail(template, task)))
    )
    return verdict(SAME_CLAIM, extent_of(template, len(tasks)), one_of_each(differences))


def worlds_apart(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of pairs of tasks one after the other, and then step by step in turns."""
    tasks = sample_tasks(template, _SAMPLE)
    pairs = list(pairwise(tasks)) or [(task, task) for task in tasks]
    differences = _crossed(template, pairs)
    return verdict(APART_CLAIM, f"{len(pairs)} pairs of tasks", one_of_each(differences))


def _crossed(
    template: EnvironmentTemplate, pairs: list[tuple[Task, Task]]
) -> Iterator[tuple[str, Finding]]:
    for one, other in pairs:
        alone = list(trail(template, one)), list(trail(template, other))
        beside = _interleaved(template, one, other)
        for task, first, second in zip((one, other), alone, beside, strict=True):
            if first != second:
                how = f"played alone and beside a world of {(other if task is one else one).id}"
                yield _difference(APART_CLAIM, template, task, first, second, how)


def _interleaved(
    template: EnvironmentTemplate, one: Task, other: Task
) -> tuple[list[JsonValue], list[JsonValue]]:
    trails = trail(template, one), trail(template, other)
    seen: tuple[list[JsonValue], list[JsonValue]] = [], []
    going = [True, True]
    while any(going):
        for side in (0, 1):
            step = next(trails[side], _END)
            going[side] = step is not _END
            if step is not _END:
                seen[side].append(step)
    return seen


_END: JsonValue = {"end": True}


def _difference(
    claim: str,
    template: EnvironmentTemplate,
    task: Task,
    first: list[JsonValue],
    second: list[JsonValue],
    how: str,
) -> tuple[str, Finding]:
    """What is not the same at the first step at which two trails part, and the finding of it."""
    what = _parted(first, second, _parting(first, second))
    return what, Finding(
        check=claim,
        passed=False,
        where=_place(template, what),
        message=f"task {task.id}, {how}: {what}",
        remedy="Keep everything a world changes on `self`, set it in `reset`, and draw from "
        "random.Random(seed of the task) and sorted values alone.",
        command=show_command(template, task),
    )


def _parting(first: Sequence[object], second: Sequence[object]) -> int:
    """The first place at which two sequences differ, or where the shorter one ends."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _parted(first: Sequence[JsonValue], second: Sequence[JsonValue], place: int) -> str:
    """What is not the same at the first place at which two trails part."""
    one = first[place] if place < len(first) else None
    two = second[place] if place < len(second) else None
    if isinstance(one, dict) and isinstance(two, dict):
        names = ", ".join(state_difference(one, two))
        return f"{'reset' if place == 0 else 'gold'} leaves something else in {names}"
    for side in (two, one):
        if isinstance(side, str):
            return f"once it fails: {side}"
    return f"{one[0] if isinstance(one, list) and one else 'a call'} answers differently"


def _place(template: EnvironmentTemplate, what: str) -> str:
    """The line of the method that `_parted` begins with, or the file of the world."""
    return tool_place(template, what.partition(" ")[0])


def worlds_elsewhere(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of some tasks in processes of other hash seeds, day and folder, and compares.

    Two processes: a set of three is in the same order in every sixth.
    """
    tasks = sample_tasks(template, _PROCESS_SAMPLE)
    with ThreadPoolExecutor() as pool:
        played = list(
            pool.map(lambda seed: _prints_elsewhere(template, tasks, seed), _hash_seeds())
        )
    failures = [found for found in played if isinstance(found, str)]
    if failures:
        yield Finding(
            check=PROCESS_CLAIM,
            passed=False,
            where=world_file(template),
            message=f"the environment could not be played in a process of its own: {failures[0]}",
            remedy="It has to load from anywhere: name files by Path(__file__).parent.",
        )
        return
    prints_there = [found for found in played if not isinstance(found, str)]
    problems = (
        problem for task in tasks if (problem := _other_elsewhere(template, task, prints_there))
    )
    yield from verdict(PROCESS_CLAIM, extent_of(template, len(tasks)), one_of_each(problems))


def _other_elsewhere(
    template: EnvironmentTemplate, task: Task, played: Sequence[Mapping[str, list[JsonValue]]]
) -> tuple[str, Finding] | None:
    """What gold of a task does in another process and not here, if there is such a thing."""
    mine = prints(template, task)
    theirs = next((found.get(task.id, []) for found in played if found.get(task.id) != mine), mine)
    if theirs == mine:
        return None
    place = _parting(mine, theirs)
    what = _parted(mine[1:], theirs[1:], place - 1) if place else "generate makes another task"
    return what, Finding(
        check=PROCESS_CLAIM,
        passed=False,
        where=_place(template, what),
        message=f"task {task.id}, in a process of another hash seed, time zone and folder: {what}",
        remedy="Sort sets before anything depends on their order, use neither hash() nor the date, "
        "and name files by Path(__file__).parent.",
        command=show_command(template, task),
    )


ANSWER = "prints: "
"""What a line begins with that is the answer of the other process."""


def _hash_seeds() -> list[str]:
    """Two seeds that are not this process's."""
    return [seed for seed in ("1", "2", "3") if seed != os.environ.get("PYTHONHASHSEED")][:2]


def prints(template: EnvironmentTemplate, task: Task) -> list[JsonValue]:
    """A hash of the task itself, and the trail of its gold with hashes for values."""
    return [content_hash(task.model_dump(mode="json")), *map(_print, trail(template, task))]


def _print(step: JsonValue) -> JsonValue:
    if isinstance(step, dict):
        return {name: content_hash(value) for name, value in step.items()}
    if isinstance(step, list):
        return [step[0], content_hash(step)]
    return step


def _another_day() -> str:
    """A time zone in which the date is not the one that it is here."""
    now = datetime.now(UTC)
    zones = {"SEAL-14": timedelta(hours=14), "SEAL+12": -timedelta(hours=12)}
    here = now.astimezone().date()
    return next(zone for zone, offset in zones.items() if (now + offset).date() != here)


def _prints_elsewhere(
    template: EnvironmentTemplate, tasks: list[Task], seed: str
) -> dict[str, list[JsonValue]] | str:
    """Prints by task id, or why there are none."""
    environment = f"{template.reference}@{template.convention_seed}"
    given = {"environment": environment, "tasks": [task.id for task in tasks]}
    # What can be imported here can be there, wherever this process was started.
    path = os.pathsep.join(str(Path(folder).resolve()) for folder in sys.path)
    other = {"PYTHONHASHSEED": seed, "TZ": _another_day(), "PYTHONPATH": path}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "seal.soundness.fingerprint"],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=_PROCESS_SECONDS,
            env={**os.environ, **other},
            cwd=tempfile.gettempdir(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        return f"{type(cause).__name__} after {_PROCESS_SECONDS:.0f} s at most"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    # Code of the environment may print as well, and end the process before there is an answer.
    lines = [line for line in done.stdout.splitlines() if line.startswith(ANSWER)]
    if not lines:
        return "it ended the process"
    answer: dict[str, list[JsonValue]] = json.loads(lines[-1].removeprefix(ANSWER))
    return answer
