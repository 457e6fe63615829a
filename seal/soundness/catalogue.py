"""The tasks as a whole, and what is said of them: splits, repeats, seeds, licence, description."""

from collections import defaultdict
from collections.abc import Iterator

from seal.envs.template import EnvironmentTemplate
from seal.soundness.finding import Finding, show_command, verdict, world_file
from seal.types import SPLITS, Split, Task, content_hash

SPLIT_CLAIM = "splits share no scenario"
REPEAT_CLAIM = "tasks do not repeat each other"
SEED_CLAIM = "seeds reproduce tasks"
LABEL_CLAIM = "licence and description are there"
MOST_REPEATS = 0.05
"""Of all scenarios; generated tasks of a small world may meet by chance."""
_DRAWN = 20
"""Scenarios of each split that are drawn again."""


def splits_apart(template: EnvironmentTemplate) -> Iterator[Finding]:
    """A scenario in two splits would let what was learned in one leak into the other."""
    counts = ", ".join(f"{split} {len(template.tasks(split))}" for split in SPLITS)
    return verdict(SPLIT_CLAIM, f"tasks: {counts}", _split_problems(template))


def _split_problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    splits: dict[str, set[Split]] = defaultdict(set)
    ids: dict[str, int] = defaultdict(int)
    for split in SPLITS:
        for task in template.tasks(split):
            splits[task.scenario].add(split)
            ids[task.id] += 1
    for scenario, found in splits.items():
        if len(found) > 1:
            yield Finding(
                check=SPLIT_CLAIM,
                passed=False,
                message=f"scenario {scenario} is in {' and '.join(sorted(found))}",
                remedy="Give all tasks of a scenario one split, or none: SEAL then chooses.",
            )
    for task_id, count in ids.items():
        if count > 1:
            yield Finding(
                check=SPLIT_CLAIM,
                passed=False,
                message=f"{count} tasks have the id {task_id}",
                remedy="Ids must differ: records are kept by them.",
            )


def tasks_differ(template: EnvironmentTemplate) -> Iterator[Finding]:
    """A task in two scenarios counts twice, and what was learned on one is known on the other."""
    alike: dict[str, list[Task]] = defaultdict(list)
    scenarios = set()
    for task in template.tasks(None):
        said = task.model_dump(mode="json", exclude={"id", "scenario", "split"})
        alike[content_hash(said, 16)].append(task)
        scenarios.add(task.scenario)
    repeats = [tasks for tasks in alike.values() if len({task.scenario for task in tasks}) > 1]
    count = sum(len({task.scenario for task in tasks}) - 1 for tasks in repeats)
    generated = template.generated
    if count > (MOST_REPEATS * len(scenarios) if generated else 0):
        first = max(repeats, key=len)
        yield Finding(
            check=REPEAT_CLAIM,
            passed=False,
            where=world_file(template) if generated else str(template.folder / "tasks.jsonl"),
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


def seeds_reproduce(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Draws some scenarios again: a run that resumes has to find the tasks that it began with."""
    if not template.generated:
        yield Finding(check=SEED_CLAIM, passed=True, message="tasks stand in a file")
        return
    problems = (
        Finding(
            check=SEED_CLAIM,
            passed=False,
            where=world_file(template),
            message=f"scenario {split}-{index:03d} is another one each time it is generated",
            remedy="Draw from the rng that generate is given, and from nothing else.",
        )
        for split in SPLITS
        for index in range(_DRAWN)
        if list(template.scenario(split, index)) != list(template.scenario(split, index))
    )
    yield from verdict(SEED_CLAIM, f"{_DRAWN * len(SPLITS)} scenarios drawn twice", problems)


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
