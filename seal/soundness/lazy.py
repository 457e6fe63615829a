"""Agents that do no work fail: the silent one, the one that only talks, the one that tries all."""

import json
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, gold_calls, replay, verify, visible_tools
from seal.errors import EnvironmentFailure
from seal.soundness.finding import (
    Finding,
    extent_of,
    sample_tasks,
    show_command,
    verdict,
    world_file,
)
from seal.soundness.probes import blank, properties_of
from seal.types import Task, ToolCall

CLAIM = "doing no work fails"
MOST = 0.2
"""Tasks where the right thing is to ask or decline are passed by an agent that does nothing."""
LEAST_GAP = 0.5
"""By how much gold's mean score is above a lazy agent's."""
_SAMPLE = 200
_TALK = "I have done what you asked."

Work = tuple[list[list[ToolCall]], str]
"""The calls of each turn, and what is said at the end of each."""


def lazy_agents_fail(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Scores agents that do no work, and gold beside them.

    Tasks in which gold cannot be played have a check of their own, and count for nobody here.
    """
    tasks = sample_tasks(template, _SAMPLE)
    gold = [reward for task in tasks if (reward := _gold_reward(template, task)) is not None]
    shares = []
    problems = []
    for name, agent in AGENTS.items():
        scored = [
            (t, r) for t in tasks if (r := _reward(template, t, agent(template, t))) is not None
        ]
        passed = [task for task, reward in scored if reward == 1.0]
        share = len(passed) / len(tasks) if tasks else 0.0
        shares.append(f"{name} {share:.0%}")
        gap = sum(gold) / len(gold) - share if gold else 1.0
        if share > MOST or gap < LEAST_GAP:
            problems.append(_problem(template, name, passed, len(tasks), gap))
    extent = f"{extent_of(template, len(tasks))}; passed: {', '.join(shares)}"
    yield from verdict(CLAIM, extent, problems)


def _problem(
    template: EnvironmentTemplate, name: str, passed: list[Task], scored: int, gap: float
) -> Finding:
    acting = [task for task in passed if any(turn.gold for turn in task.turns)]
    shown = (acting or passed)[:1]
    because = (
        f"of these tasks, {len(acting)} have gold calls whose effect the verifier does not see"
        if acting
        else "gold calls nothing in these tasks, or checks alone decide: ask or check more"
    )
    such_as = f", such as {shown[0].id}" if shown else ""
    return Finding(
        check=CLAIM,
        passed=False,
        where=world_file(template),
        message=f"an agent that {_DOES[name]} passes {len(passed)} of {scored} tasks "
        f"({len(passed) / scored if scored else 0:.0%}){such_as}; gold is {gap:+.2f} above it",
        remedy=f"At most {MOST:.0%} may be passed, and gold be at least {LEAST_GAP} above; "
        f"{because}.",
        command=show_command(template, shown[0]) if shown else "",
    )


def _reward(template: EnvironmentTemplate, task: Task, work: Work | None) -> float | None:
    """The score of some work, of gold if it is None; None where the environment fails."""
    calls, text = work if work else (gold_calls(task), "")
    answers = [text if work else " ".join(turn.answer) for turn in task.turns]
    try:
        gold = GoldReplays(template, keep=0).of(task)
        return verify(template, task, gold, replay(template, task, calls), answers).reward
    except EnvironmentFailure:
        return None


def _gold_reward(template: EnvironmentTemplate, task: Task) -> float | None:
    """Gold's score; of a task that checks alone decide, what they say of good work."""
    if any(turn.gold is None for turn in task.turns):
        return 1.0
    return _reward(template, task, None)


def _silent(_template: EnvironmentTemplate, task: Task) -> Work:
    return [[] for _ in task.turns], ""


def _talking(_template: EnvironmentTemplate, task: Task) -> Work:
    return [[] for _ in task.turns], _TALK


def _trying(template: EnvironmentTemplate, task: Task) -> Work:
    """Every tool once, with as little as its contract allows, in the first turn."""
    calls = [
        ToolCall(id=name, tool=name, arguments=json.dumps(_least(template, name)))
        for name in visible_tools(template, task, task.turns[0].hidden)
    ]
    return [calls, *([] for _ in task.turns[1:])], _TALK


def _least(template: EnvironmentTemplate, tool: str) -> dict[str, JsonValue]:
    contract = template.contract[tool]
    schemas = properties_of(contract)
    return {name: blank(schemas.get(name, {})) for name in contract.required}


AGENTS: Mapping[str, Callable[[EnvironmentTemplate, Task], Work]] = {
    "silent": _silent,
    "talking": _talking,
    "trying all": _trying,
}
_DOES = {
    "silent": "does nothing and says nothing",
    "talking": "only says that it is done",
    "trying all": "calls every tool once, with as little as it takes",
}
