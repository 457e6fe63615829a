"""Gold solves every task, and every call of it counts."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, gold_calls, replay, verify
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    failed_at,
    sample_tasks,
    show_command,
    task_place,
    tool_place,
    verdict,
)
from seal.soundness.probes import gold_of
from seal.types import Task, ToolCall, canonical_json

GOLD_CLAIM = "gold solves every task"
TAMPERED_CLAIM = "gold left out or changed is noticed"
_SAMPLE = 60
_ENOUGH = 5
"""Values changed before it is said that none is noticed."""

Place = tuple[str, str | None]
"""A tool and one of its arguments, or the call as a whole."""


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
    for task in template.tasks(None):
        if undecided := _undecided(task):
            yield Finding(
                check=GOLD_CLAIM,
                passed=False,
                where=task_place(template, task),
                message=f"task {task.id}, {undecided}",
                remedy="Write the turn's gold ([] where the agent should call nothing), or checks.",
                command=show_command(template, task),
            )
    for task in tasks:
        command = show_command(template, task)
        try:
            gold = replays.of(task)
        except EnvironmentFailure as failure:
            head, *rest = str(failure).splitlines()
            yield Finding(
                check=GOLD_CLAIM,
                passed=False,
                where=failed_at(template, failure) or task_place(template, task),
                message=head,
                remedy="\n".join([*(line for line in rest if "seal show" not in line), _MEND]),
                command=command,
            )
            continue
        if beyond := _beyond_limits(template, task):
            yield Finding(
                check=GOLD_CLAIM,
                passed=False,
                where=task_place(template, task),
                message=f"task {task.id}, {beyond}",
                remedy="Raise the limit in env.toml, under [limits], or ask for less at once.",
                command=command,
            )
        answers = [" ".join(turn.answer) for turn in task.turns]
        score = verify(template, task, gold, gold, answers)
        wrong = [check for check in score.checks if not check.passed]
        if wrong:
            first = wrong[0]
            detail = f": expected {first.expected}, found {first.found}" if first.expected else ""
            yield Finding(
                check=GOLD_CLAIM,
                passed=False,
                where=task_place(template, task),
                message=f"{template.name}: task {task.id}: gold fails {first.name}{detail}",
                remedy=f"{len(wrong)} of {len(score.checks)} checks fail; "
                "mend the gold calls or the check.",
                command=command,
            )


_MEND = "Mend the gold call, or what the world makes of it."


def _undecided(task: Task) -> str:
    """Which turn may end in any way, empty if none may."""
    open_turns = [i for i, t in enumerate(task.turns) if t.gold is None and not t.answer]
    if open_turns and not task.checks:
        return f"turn {open_turns[0]}: neither gold nor an answer nor a check decides it"
    return ""


def _beyond_limits(template: EnvironmentTemplate, task: Task) -> str:
    """Which limit no policy could keep that makes gold's calls, empty if none."""
    limits = template.limits
    for index, calls in enumerate(gold_calls(task)):
        longest = max((len(call.arguments) for call in calls), default=0)
        if longest > limits.call_chars:
            return f"turn {index}: a gold call has {longest} characters, of {limits.call_chars}"
        if calls and limits.steps < 2:
            return f"turn {index}: a call and an answer, in {limits.steps} step"
    return ""


def tampered_gold_noticed(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Replays gold of some tasks with one call left out, or one of its values another one.

    A look before an act may well be needless, and is listed; but a tool that changes something
    and could be left out of every task is one whose effect the verifier does not see. The same
    goes for an argument with a rule: where no value is wrong, nobody learns the rule.
    """
    tried: Counter[Place] = Counter()
    unnoticed: dict[Place, list[Task]] = defaultdict(list)
    values = _gold_values(template)
    for task in sample_tasks(template, _SAMPLE):
        for place, noticed in _tampered(template, task, values):
            tried[place] += 1
            if not noticed:
                unnoticed[place].append(task)
    listed = ", ".join(
        f"{tool} {len(tasks)} of {tried[tool, None]}"
        for (tool, argument), tasks in unnoticed.items()
        if argument is None
    )
    left_out = sum(count for (_, argument), count in tried.items() if argument is None)
    extent = f"{left_out} calls left out, {tried.total() - left_out} values changed"
    blind = {
        place: tasks
        for place, tasks in unnoticed.items()
        if len(tasks) == tried[place] and template.contract[place[0]].mutates
    }
    problems = (
        _blind_spot(template, tool, argument, tasks)
        for (tool, argument), tasks in blind.items()
        if argument is None or ((tool, None) not in blind and len(tasks) >= _ENOUGH)
    )
    yield from verdict(TAMPERED_CLAIM, f"{extent}; needless: {listed or 'none'}", problems)


def _blind_spot(
    template: EnvironmentTemplate, tool: str, argument: str | None, tasks: list[Task]
) -> Finding:
    """What is said where no change of gold is noticed."""
    if argument is None:
        message = (
            f"{tool} changes something, and all {len(tasks)} of its gold calls can be left out"
        )
        remedy = (
            "Keep what it changes in a public attribute, write a check for it, or declare the tool "
            "with mutates=False."
        )
    else:
        message = (
            f"{tool}.{argument} has a rule, and all {len(tasks)} gold calls pass with another value"
        )
        remedy = "Keep what it decides in a public attribute, or write a check for it."
    return Finding(
        check=TAMPERED_CLAIM,
        passed=False,
        where=tool_place(template, tool),
        message=f"{message}, such as in task {tasks[0].id}",
        remedy=remedy,
        command=show_command(template, tasks[0]),
    )


def _gold_values(template: EnvironmentTemplate) -> dict[Place, list[JsonValue]]:
    """What gold sends as each argument that has a rule, of tools that change something."""
    values: dict[Place, dict[str, JsonValue]] = defaultdict(dict)
    for task in template.tasks(None):
        for call in gold_of(task):
            contract = template.contract[call.tool]
            for argument in contract.rules if contract.mutates else ():
                if argument in call.arguments:
                    value = call.arguments[argument]
                    values[call.tool, argument][canonical_json(value)] = value
    return {place: [known[key] for key in sorted(known)] for place, known in values.items()}


def _tampered(
    template: EnvironmentTemplate, task: Task, values: Mapping[Place, list[JsonValue]]
) -> Iterator[tuple[Place, bool]]:
    """What was changed in gold, and whether the verifier misses it; none if gold itself fails."""
    calls = gold_calls(task)
    answers = [" ".join(turn.answer) for turn in task.turns]
    try:
        gold = GoldReplays(template, keep=0).of(task)
        for index, turn in enumerate(calls):
            for number, call in enumerate(turn):
                for place, instead in _variants(call, values):
                    changed = [*turn[:number], *instead, *turn[number + 1 :]]
                    played = replay(template, task, [*calls[:index], changed, *calls[index + 1 :]])
                    yield place, verify(template, task, gold, played, answers).reward != 1.0
    except EnvironmentFailure:
        return


def _variants(
    call: ToolCall, values: Mapping[Place, list[JsonValue]]
) -> Iterator[tuple[Place, list[ToolCall]]]:
    """A gold call left out, and with the next other value that gold sends in each argument."""
    yield (call.tool, None), []
    arguments = json.loads(call.arguments)
    for argument, value in arguments.items():
        known = values.get((call.tool, argument), [])
        if len(known) > 1:
            other = known[(known.index(value) + 1) % len(known)]
            sent = json.dumps({**arguments, argument: other})
            yield (call.tool, argument), [call.model_copy(update={"arguments": sent})]
