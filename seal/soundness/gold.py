"""Gold solves every task, and doing nothing does not."""

from collections.abc import Iterator

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, replay, verify
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    sample_tasks,
    show_command,
    verdict,
)
from seal.types import Task

GOLD_CLAIM = "gold solves every task"
NOTHING_CLAIM = "doing nothing fails"
NOTHING_SHARE = 0.2
"""Tasks where the right thing is to ask or decline are passed by an agent that does nothing."""
_NOTHING_SAMPLE = 200


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


def nothing_fails(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Counts the tasks that an agent passes with no call and no word."""
    tasks = sample_tasks(template, _NOTHING_SAMPLE)
    passed = [task for task in tasks if _passes_idle(template, task)]
    acting = [task for task in passed if any(turn.gold for turn in task.turns)]
    share = len(passed) / len(tasks) if tasks else 0.0
    if share <= NOTHING_SHARE:
        extent = f"{extent_of(template, len(tasks))}, {share:.0%} passed"
        yield Finding(check=NOTHING_CLAIM, passed=True, message=extent)
        return
    shown = (acting or passed)[0]
    yield Finding(
        check=NOTHING_CLAIM,
        passed=False,
        message=f"{len(passed)} of {len(tasks)} tasks ({share:.0%}) are passed without any call, "
        f"such as {shown.id}",
        remedy=f"At most {NOTHING_SHARE:.0%} may be; of these, {len(acting)} have gold calls "
        "whose effect the verifier does not see.",
        command=show_command(template, shown),
    )


def _passes_idle(template: EnvironmentTemplate, task: Task) -> bool:
    try:
        gold = GoldReplays(template, keep=0).of(task)
        idle = replay(template, task, [[] for _ in task.turns])
    except EnvironmentFailure:
        return False
    return verify(template, task, gold, idle, ["" for _ in task.turns]).reward == 1.0
