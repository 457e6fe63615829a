"""Gold solves every task, and every call of it counts."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, gold_calls, replay, verify
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    sample_tasks,
    show_command,
    verdict,
    world_file,
)
from seal.types import Task

GOLD_CLAIM = "gold solves every task"
DROPPED_CLAIM = "a gold call that is left out is noticed"
_SAMPLE = 60


def gold_solves(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Replays gold of every task: no call may fail, and the verifier must accept the end."""
    tasks = template.tasks(None)
    decided = [task for task in tasks if any(turn.gold is not None for turn in task.turns)]
    extent = extent_of(template, len(decided))
    if len(decided) < len(tasks):
        extent += f"; {len(tasks) - len(decided)} have checks and no gold"
    return verdict(GOLD_CLAIM, extent, _gold_problems(template, decided))


def _gold_problems(template: EnvironmentTemplate, tasks: list[Task]) -> Iterator[Finding]:
    if not template.tasks(None):
        yield Finding(
            check=GOLD_CLAIM,
            passed=False,
            where=str(template.folder),
            message="there are no tasks",
            remedy="Write tasks.jsonl, one JSON object a line, or give the world a generate().",
        )
    replays = GoldReplays(template, keep=0)
    for task in tasks:
        command = show_command(template, task)
        try:
            gold = replays.of(task)
        except EnvironmentFailure as failure:
            head = str(failure).partition("\n")[0]
            yield Finding(check=GOLD_CLAIM, passed=False, message=head, command=command)
            continue
        answers = [" ".join(turn.answer) for turn in task.turns]
        score = verify(template, task, gold, gold, answers)
        wrong = [check for check in score.checks if not check.passed]
        if wrong:
            first = wrong[0]
            detail = f": expected {first.expected}, found {first.found}" if first.expected else ""
            yield Finding(
                check=GOLD_CLAIM,
                passed=False,
                message=f"{template.name}: task {task.id}: gold fails {first.name}{detail}",
                remedy=f"{len(wrong)} of {len(score.checks)} checks fail; "
                "mend the gold calls or the check.",
                command=command,
            )


def dropped_calls_noticed(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Replays gold of some tasks with one call left out, for each call in turn.

    A look before an act may well be needless, and is listed; but a tool that changes something
    and could be left out of every task is one whose effect the verifier does not see.
    """
    left_out: Counter[str] = Counter()
    unnoticed: dict[str, list[Task]] = defaultdict(list)
    for task in sample_tasks(template, _SAMPLE):
        for tool, noticed in _dropped(template, task):
            left_out[tool] += 1
            if not noticed:
                unnoticed[tool].append(task)
    listed = ", ".join(
        f"{tool} {len(tasks)} of {left_out[tool]}" for tool, tasks in unnoticed.items()
    )
    extent = f"{left_out.total()} calls left out, one at a time"
    problems = (
        Finding(
            check=DROPPED_CLAIM,
            passed=False,
            where=world_file(template),
            message=f"{tool} changes something, and all {len(tasks)} of its gold calls can be left "
            f"out, such as in task {tasks[0].id}",
            remedy="Keep what it changes in a public attribute, write a check for it, or declare "
            "the tool with mutates=False.",
            command=show_command(template, tasks[0]),
        )
        for tool, tasks in unnoticed.items()
        if template.contract[tool].mutates and len(tasks) == left_out[tool]
    )
    yield from verdict(DROPPED_CLAIM, f"{extent}; needless: {listed or 'none'}", problems)


def _dropped(template: EnvironmentTemplate, task: Task) -> Iterator[tuple[str, bool]]:
    """Each gold call's tool, and whether the verifier misses the call; none if gold fails."""
    calls = gold_calls(task)
    answers = [" ".join(turn.answer) for turn in task.turns]
    try:
        gold = GoldReplays(template, keep=0).of(task)
        for index, turn in enumerate(calls):
            for place, call in enumerate(turn):
                rest = [*turn[:place], *turn[place + 1 :]]
                played = replay(template, task, [*calls[:index], rest, *calls[index + 1 :]])
                yield call.tool, verify(template, task, gold, played, answers).reward != 1.0
    except EnvironmentFailure:
        return
