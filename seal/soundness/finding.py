"""What a check says: one finding for a claim that holds, one for each thing that breaks it."""

import inspect
import json
import random
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator

from seal.envs.template import EnvironmentTemplate
from seal.errors import SealError
from seal.resources import resource_folder
from seal.types import Record, Task


class Finding(Record):
    """One line of `seal check`."""

    check: str
    """The claim, as a sentence."""
    passed: bool
    message: str = ""
    """How far a claim that holds was looked at, or what breaks it."""
    where: str | None = None
    """File, and line if known."""
    remedy: str = ""
    """What would be right."""
    command: str = ""
    """The command that shows it."""


def verdict(claim: str, extent: str, problems: Iterable[Finding]) -> Iterator[Finding]:
    """The problems as they come, or the finding that the claim holds as far as it was looked at."""
    broken = False
    for problem in problems:
        broken = True
        yield problem
    if not broken:
        yield Finding(check=claim, passed=True, message=extent)


def one_of_each(problems: Iterable[tuple[str, Finding]]) -> Iterator[Finding]:
    """The first problem of each sort, with how many more there are."""
    first: dict[str, Finding] = {}
    more: Counter[str] = Counter()
    for sort, problem in problems:
        more[sort] += sort in first
        first.setdefault(sort, problem)
    for sort, problem in first.items():
        also = f" (and {more[sort]} more)" if more[sort] else ""
        yield problem.model_copy(update={"message": f"{problem.message}{also}"})


def problem_of(claim: str, error: SealError, command: str = "") -> Finding:
    """The finding that an error message makes: place, what, and the rest as the remedy."""
    head, _, rest = str(error).partition("\n")
    place, colon, what = head.partition(": ")
    # A place is a file or a file and a line; a message may also begin with a name and a colon.
    is_place = bool(colon) and ("/" in place or "." in place) and " " not in place
    return Finding(
        check=claim,
        passed=False,
        where=place if is_place else None,
        message=what if is_place else head,
        remedy=rest,
        command=command,
    )


def sample_tasks(template: EnvironmentTemplate, count: int) -> list[Task]:
    """At most this many tasks of all splits, always the same ones."""
    tasks = template.tasks(None)
    if len(tasks) <= count:
        return list(tasks)
    places = random.Random(count).sample(range(len(tasks)), count)
    return [tasks[place] for place in sorted(places)]


def extent_of(template: EnvironmentTemplate, looked_at: int, what: str = "tasks") -> str:
    """How much of an environment was looked at, a sample called one."""
    total = len(template.tasks(None))
    return (
        f"all {total} {what}" if looked_at == total else f"a sample: {looked_at} of {total} {what}"
    )


def show_command(template: EnvironmentTemplate, task: Task) -> str:
    """The command that prints a task with its gold."""
    return f"seal show {reference(template)} --task {task.id}"


def reference(template: EnvironmentTemplate) -> str:
    """What a user types to get this environment: its name if it is shipped, else its folder."""
    if template.folder.parent == resource_folder("env_templates"):
        return f"{template.folder.name}@{template.convention_seed}".removesuffix("@0")
    return f"{template.folder}@{template.convention_seed}".removesuffix("@0")


def world_file(template: EnvironmentTemplate) -> str:
    """Where the author's world is: a file, or the dotted name of a module."""
    entry = template.manifest.entry
    return str(template.folder / entry) if entry.endswith(".py") else entry


def task_place(template: EnvironmentTemplate, task: Task) -> str:
    """The line of tasks.jsonl in which a task stands, or where tasks are made."""
    path = template.folder / "tasks.jsonl"
    if not path.is_file():
        return world_file(template)
    names = (json.dumps(task.id).encode(), json.dumps(task.id, ensure_ascii=False).encode())
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if any(name in line for name in names) and json.loads(line).get("id") == task.id:
            return f"{path}:{number}"
    return str(path)


def tool_place(template: EnvironmentTemplate, tool: str) -> str:
    """The line in which a tool's (or any) method begins, or the file of the world."""
    method = getattr(template.world, tool, None)
    try:
        line = inspect.getsourcelines(method)[1] if method else 0
    except (OSError, TypeError):
        line = 0
    return f"{world_file(template)}:{line}" if line else world_file(template)


def failed_at(template: EnvironmentTemplate, failure: BaseException) -> str | None:
    """The last line of the world's file that a failure came through; None: it names none."""
    source = inspect.getsourcefile(template.world)
    lines = [
        frame.lineno
        for one in (failure, failure.__cause__)
        if one is not None
        for frame in traceback.extract_tb(one.__traceback__)
        if frame.filename == source and frame.lineno
    ]
    return f"{world_file(template)}:{lines[-1]}" if lines else None
