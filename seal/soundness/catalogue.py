"""The tasks as a whole, and what is said of them: splits, repeats, seeds, licence, description."""

from collections import defaultdict
from collections.abc import Iterator

from pydantic import JsonValue

from seal.envs.template import EnvironmentTemplate
from seal.soundness.finding import (
    Finding,
    one_of_each,
    reference,
    show_command,
    task_place,
    tool_place,
    verdict,
)
from seal.types import SPLITS, Split, Task, content_hash

SPLIT_CLAIM = "splits share no scenario, and none is empty"
REPEAT_CLAIM = "tasks neither repeat nor contradict"
SEED_CLAIM = "seeds reproduce tasks"
LABEL_CLAIM = "licence and description are there"
MOST_REPEATS = 0.05
"""Of all scenarios; generated tasks of a small world may meet by chance."""
_MANY = 10
"""Of so many scenarios, a split without any is no accident."""
_DRAWN = 20
"""Scenarios of each split that are drawn again."""


def splits_apart(template: EnvironmentTemplate) -> Iterator[Finding]:
    """A scenario in two splits would let what was learned in one leak into the other."""
    counts = ", ".join(f"{split} {len(template.tasks(split))}" for split in SPLITS)
    return verdict(SPLIT_CLAIM, f"tasks: {counts}", _split_problems(template))


def _split_problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    splits: dict[str, set[Split]] = defaultdict(set)
    tasks: dict[str, list[Task]] = defaultdict(list)
    for split in SPLITS:
        for task in template.tasks(split):
            splits[task.scenario].add(split)
            tasks[task.id].append(task)
    for scenario, found in splits.items():
        if len(found) > 1:
            shown = next(t for several in tasks.values() for t in several if t.scenario == scenario)
            yield _split_problem(
                template,
                shown,
                f"scenario {scenario} is in {' and '.join(sorted(found))}",
                "Give all tasks of a scenario one split, or none: SEAL then chooses.",
            )
    for task_id, several in tasks.items():
        if len(several) > 1:
            yield _split_problem(
                template,
                several[0],
                f"{len(several)} tasks have the id {task_id}",
                "Ids must differ: records are kept by them.",
            )
    for split in SPLITS:
        if len(splits) >= _MANY and not template.tasks(split):
            yield _split_problem(
                template,
                template.tasks(None)[0],
                f"no task is in {split}",
                "Leave `split` out, and SEAL deals the scenarios out to all four.",
            )


def _split_problem(template: EnvironmentTemplate, task: Task, message: str, remedy: str) -> Finding:
    return Finding(
        check=SPLIT_CLAIM,
        passed=False,
        where=task_place(template, task),
        message=message,
        remedy=remedy,
        command=show_command(template, task),
    )


def tasks_differ(template: EnvironmentTemplate) -> Iterator[Finding]:
    """A task in two scenarios counts twice, and what was learned on one is known on the other.

    Of two that ask for the same in the same world, and want other calls, none can tell which.
    """
    alike: dict[str, list[Task]] = defaultdict(list)
    asked: dict[str, Task] = {}
    scenarios = set()
    for task in template.tasks(None):
        said = task.model_dump(mode="json", exclude={"id", "scenario", "split"})
        alike[content_hash(said, 16)].append(task)
        scenarios.add(task.scenario)
        for turn in said["turns"]:
            turn["gold"] = None
        other = asked.setdefault(content_hash(said, 16), task)
        if _wanted(other) != _wanted(task):
            yield _contradiction(template, other, task)
            return
    repeats = [tasks for tasks in alike.values() if len({task.scenario for task in tasks}) > 1]
    count = sum(len({task.scenario for task in tasks}) - 1 for tasks in repeats)
    generated = template.generated
    if count > (MOST_REPEATS * len(scenarios) if generated else 0):
        first = max(repeats, key=len)
        yield Finding(
            check=REPEAT_CLAIM,
            passed=False,
            where=_made_at(template, first[1]),
            message=f"{count} of {len(scenarios)} scenarios repeat another one; "
            f"{first[0].id} and {first[1].id} are the same task",
            remedy="Let generate draw from more: another argument, more names, a state that varies."
            if generated
            else "Leave the repeats out, or give tasks of one situation one scenario.",
            command=show_command(template, first[0]),
        )
        return
    extent = f"{len(scenarios)} scenarios, {count} of which repeat another one"
    yield Finding(check=REPEAT_CLAIM, passed=True, message=extent)


def _made_at(template: EnvironmentTemplate, task: Task) -> str:
    """Where a task stands, or what generates it."""
    if template.generated:
        return tool_place(template, "generate")
    return task_place(template, task)


def _wanted(task: Task) -> list[JsonValue]:
    """The calls that a task wants, whatever the user's form of an argument is."""
    return [
        [[call.tool, call.arguments] for call in turn.gold] if turn.gold is not None else None
        for turn in task.turns
    ]


def _contradiction(template: EnvironmentTemplate, one: Task, other: Task) -> Finding:
    return Finding(
        check=REPEAT_CLAIM,
        passed=False,
        where=_made_at(template, other),
        message=f"tasks {one.id} and {other.id} say the same and want other calls",
        remedy="Say in `user` or `state` what decides; is an f missing before the quotes?",
        command=show_command(template, other),
    )


def seeds_reproduce(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Draws some scenarios again: a run that resumes has to find the tasks that it began with."""
    if not template.generated:
        yield Finding(check=SEED_CLAIM, passed=True, message="tasks stand in a file")
        return
    problems = (
        (
            SEED_CLAIM,
            Finding(
                check=SEED_CLAIM,
                passed=False,
                where=tool_place(template, "generate"),
                message=f"scenario {split}-{index:03d} is another one each time it is generated",
                remedy="Draw from the rng that generate is given, and from nothing else.",
                command=f"seal show {reference(template)} --task {split}-{index:03d}",
            ),
        )
        for split in SPLITS
        for index in range(_DRAWN)
        if list(template.scenario(split, index)) != list(template.scenario(split, index))
    )
    yield from verdict(
        SEED_CLAIM, f"{_DRAWN * len(SPLITS)} scenarios drawn twice", one_of_each(problems)
    )


def labels_there(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Others can only use what says what it is and whose it is."""
    manifest = template.manifest
    wanted = {"licence": 'licence = "CC0-1.0"', "description": 'description = "Lend out books."'}
    problems = (
        Finding(
            check=LABEL_CLAIM,
            passed=False,
            where=str(template.folder / "env.toml"),
            message=f"no {name}",
            remedy=f"Write such as {line}",
        )
        for name, line in wanted.items()
        if not str(getattr(manifest, name)).strip()
    )
    return verdict(LABEL_CLAIM, manifest.licence, problems)
