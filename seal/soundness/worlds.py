"""The same calls do the same thing: again, beside another world, and in another process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

from pydantic import JsonValue

from seal.envs.contract import Accepted, accept
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import execute, gold_calls, state_difference, visible_tools
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    reference,
    sample_tasks,
    show_command,
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
        yield world.state()
        for turn, calls in zip(task.turns, gold_calls(task), strict=True):
            shown = visible_tools(template, task, turn.hidden)
            for call in calls:
                accepted = accept(template.contract, call, shown)
                if isinstance(accepted, Accepted):
                    done = execute(template, world, accepted, call.id)
                    yield [done.tool, done.output, done.error.code if done.error else None]
            yield world.state()
    except EnvironmentFailure as failure:
        yield str(failure)


def worlds_repeat(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of some tasks twice."""
    tasks = sample_tasks(template, _SAMPLE)
    problems = (
        _difference(SAME_CLAIM, template, task, first, second, "played twice")
        for task in tasks
        if (first := list(trail(template, task))) != (second := list(trail(template, task)))
    )
    return verdict(SAME_CLAIM, extent_of(template, len(tasks)), problems)


def worlds_apart(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of pairs of tasks one after the other, and then step by step in turns."""
    tasks = sample_tasks(template, _SAMPLE)
    pairs = list(pairwise(tasks)) or [(task, task) for task in tasks]
    return verdict(APART_CLAIM, f"{len(pairs)} pairs of tasks", _crossed(template, pairs))


def _crossed(template: EnvironmentTemplate, pairs: list[tuple[Task, Task]]) -> Iterator[Finding]:
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
) -> Finding:
    """The first step at which two trails part, in words."""
    place = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    one = first[place] if place < len(first) else None
    two = second[place] if place < len(second) else None
    if isinstance(one, dict) and isinstance(two, dict):
        names = ", ".join(state_difference(one, two))
        what = f"{'reset leaves' if place == 0 else 'gold leaves'} another {names}"
    else:
        what = f"{one[0] if isinstance(one, list) and one else 'a call'} answers differently"
    return Finding(
        check=claim,
        passed=False,
        where=world_file(template),
        message=f"task {task.id}, {how}: {what}",
        remedy="Keep everything a world changes on `self`, set it in `reset`, and draw from "
        "random.Random(seed of the task) and sorted values alone.",
        command=show_command(template, task),
    )


def worlds_elsewhere(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Plays gold of some tasks in a process with another hash seed, and compares."""
    tasks = sample_tasks(template, _PROCESS_SAMPLE)
    found = _fingerprints_elsewhere(template, tasks)
    if isinstance(found, str):
        yield Finding(
            check=PROCESS_CLAIM,
            passed=False,
            where=world_file(template),
            message=f"the environment could not be played in a process of its own: {found}",
        )
        return
    problems = (
        Finding(
            check=PROCESS_CLAIM,
            passed=False,
            where=world_file(template),
            message=f"task {task.id}: gold does something else under another PYTHONHASHSEED",
            remedy="Sort sets before anything depends on their order, and use no clock.",
            command=show_command(template, task),
        )
        for task in tasks
        if found.get(task.id) != fingerprint(template, task)
    )
    yield from verdict(PROCESS_CLAIM, extent_of(template, len(tasks)), problems)


def fingerprint(template: EnvironmentTemplate, task: Task) -> str:
    """A hash of everything gold does in a fresh world, and of the task itself."""
    return content_hash([task.model_dump(), list(trail(template, task))])


def _fingerprints_elsewhere(
    template: EnvironmentTemplate, tasks: list[Task]
) -> dict[str, str] | str:
    """Fingerprints by task id, or why there are none."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    given = {"environment": reference(template), "tasks": [task.id for task in tasks]}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "seal.soundness.fingerprint"],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=_PROCESS_SECONDS,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        return f"{type(cause).__name__} after {_PROCESS_SECONDS:.0f} s at most"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    # The environment's own module may print on being imported; ours is the last line.
    answer: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
