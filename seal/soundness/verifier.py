"""The verifier says the same of the same work, and changes nothing."""

from collections.abc import Iterator

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import (
    GoldReplays,
    gold_calls,
    play,
    replay,
    run_checks,
    state_difference,
    state_of,
    verify,
)
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    failed_at,
    one_of_each,
    sample_tasks,
    show_command,
    tool_place,
    verdict,
    world_file,
)
from seal.types import Score, Task

CLAIM = "the verifier answers, and always the same"
LOOK_CLAIM = "checks change nothing"
_SAMPLE = 40


def verifier_repeats(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Scores gold, half of gold and nothing twice each, every time from fresh worlds."""
    tasks = sample_tasks(template, _SAMPLE)
    problems = (
        (f"{problem.where} {problem.remedy}", problem)
        for task in tasks
        for share, work in ((1.0, "gold"), (0.5, "half of gold"), (0.0, "nothing"))
        if (problem := _unsteady(template, task, share, work))
    )
    return verdict(CLAIM, extent_of(template, len(tasks)), one_of_each(problems))


def _unsteady(template: EnvironmentTemplate, task: Task, share: float, work: str) -> Finding | None:
    """What is wrong with the score of the first part of every turn's gold, if anything is."""
    calls = [turn[: round(len(turn) * share)] for turn in gold_calls(task)]
    answers = [" ".join(turn.answer) if share == 1.0 else "" for turn in task.turns]
    try:
        gold = GoldReplays(template, keep=0).of(task)
    except EnvironmentFailure:
        return None  # That gold fails has a check of its own.
    try:
        first, second = (
            verify(template, task, gold, replay(template, task, calls), answers) for _ in range(2)
        )
    except EnvironmentFailure as failure:
        return Finding(
            check=CLAIM,
            passed=False,
            where=failed_at(template, failure) or world_file(template),
            message=f"{failure}, after {work} was done",
            remedy="A check answers True or False, whatever was done and left out before it.",
            command=show_command(template, task),
        )
    if first == second:
        return None
    return Finding(
        check=CLAIM,
        passed=False,
        where=world_file(template),
        message=f"task {task.id}: {work} was scored {_said(first)}, then {_said(second)}",
        remedy="A check may depend on the final world alone: no clock, no unseeded draw.",
        command=show_command(template, task),
    )


def _said(score: Score) -> str:
    failed = [check.name for check in score.checks if not check.passed]
    return f"{score.reward} ({', '.join(failed) or 'every check holds'})"


def verifier_looks_only(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Compares the state before the checks of a task with the state after them."""
    tasks = [task for task in sample_tasks(template, _SAMPLE) if task.checks]
    extent = extent_of(template, len(tasks)) if tasks else "no task has one"
    problems = (
        (
            ", ".join(changed),
            Finding(
                check=LOOK_CLAIM,
                passed=False,
                where=tool_place(template, task.checks[0]),
                message=f"the checks of task {task.id} change {', '.join(changed)}",
                remedy="A check looks at the world and answers True or False.",
                command=show_command(template, task),
            ),
        )
        for task in tasks
        if (changed := _changed_by_checks(template, task))
    )
    return verdict(LOOK_CLAIM, extent, one_of_each(problems))


def _changed_by_checks(template: EnvironmentTemplate, task: Task) -> list[str]:
    try:
        world = template.new_world(task)
        play(template, task, world, gold_calls(task))
        before = state_of(world)
        run_checks(template, task, world)
        return state_difference(before, state_of(world))
    except EnvironmentFailure:
        return []
