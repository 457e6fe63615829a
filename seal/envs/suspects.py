"""Tasks whose gold is in doubt: known ones, and those that give themselves away.

A suspect task stays in its split and in every score, but nothing is learned from it: it drives
neither words nor weights until a person has looked and says in `env.toml` that gold is right:

    trusted = ["half"]

A task that everyone fails because a rule is untold is not suspect: it is what words are for.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from pydantic import JsonValue

from seal.envs.environment import Quarantined
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, Played, gold_calls, replay, verify
from seal.errors import EnvironmentFailure, TemplateError, did_you_mean
from seal.models.reading import says_value
from seal.types import GoldCall, Rule, Task

_FAILS = "Replay of gold, judged as a policy's would be."
_TOLD = "Replay of what a reader sends that is told every rule."


def suspicion(template: EnvironmentTemplate, gold: GoldReplays, task: Task) -> Quarantined | None:
    """Why a task's gold is in doubt, None if it is not; a task whose gold breaks is not suspect.

    Found without a model: the environment lists the task; or gold fails the task's own verdict; or
    a reader that is told every rule fails it too, since no rule leads from what the user says to
    what gold passes, and the world takes the one for the other without a word.
    """
    if task.id in trusted_tasks(template):
        return None
    listed = known_defects(template).get(task.id)
    if listed is not None:
        return listed if listed.status == "suspect" else None
    if any(turn.gold is None for turn in task.turns):
        return None  # Checks alone decide there: gold is not all that solves the task.
    try:
        played = gold.of(task)
        reason, source = _own_verdict(template, task, played), _FAILS
        if not reason:
            reason, source = _told_every_rule(template, task, played), _TOLD
    except EnvironmentFailure:
        return None
    if not reason:
        return None
    return Quarantined(task=task.id, status="suspect", reason=reason, source=source)


def suspects_among(
    template: EnvironmentTemplate, gold: GoldReplays, tasks: Iterable[Task]
) -> list[Quarantined]:
    """The suspect ones of some tasks, in their order."""
    found = (suspicion(template, gold, task) for task in tasks)
    return [one for one in found if one is not None]


def without_suspects(
    template: EnvironmentTemplate, gold: GoldReplays, tasks: Iterable[Task]
) -> list[Task]:
    """The tasks that something may be learned from, in their order."""
    return [task for task in tasks if suspicion(template, gold, task) is None]


@lru_cache(maxsize=16)
def trusted_tasks(template: EnvironmentTemplate) -> frozenset[str]:
    """The tasks whose gold a person vouches for.

    Raises:
        TemplateError: There is no such task.
    """
    trusted = template.manifest.trusted
    known = {task.id for task in template.tasks(None)} if trusted else set()
    lines = [
        f"{template.folder / 'env.toml'}: trusted: no task '{name}'.{did_you_mean(name, known)}"
        for name in trusted
        if name not in known
    ]
    if lines:
        raise TemplateError("\n".join(lines))
    return frozenset(trusted)


@lru_cache(maxsize=16)
def known_defects(template: EnvironmentTemplate) -> dict[str, Quarantined]:
    """The tasks that the environment itself calls broken or suspect, but for the trusted ones."""
    trusted = trusted_tasks(template)
    return {one.task: one for one in template.world.quarantined() if one.task not in trusted}


def _answers(task: Task) -> list[str]:
    return [" ".join(turn.answer) for turn in task.turns]


def _own_verdict(template: EnvironmentTemplate, task: Task, played: Played) -> str:
    """What gold fails of its own task, empty if it passes."""
    score = verify(template, task, played, played, _answers(task))
    failed = next((check for check in score.checks if not check.passed), None)
    return f"Gold itself fails the check {failed.name}." if failed else ""


def _told_every_rule(template: EnvironmentTemplate, task: Task, played: Played) -> str:
    """Where a reader goes wrong that knows every rule, empty if it does not."""
    guesses = dict(_guesses(template, task, played))
    if not guesses:
        return ""
    turns = tuple(
        turn.model_copy(
            update={"gold": tuple(guesses.get((i, k), c) for k, c in enumerate(turn.gold or ()))}
        )
        for i, turn in enumerate(task.turns)
    )
    sent = gold_calls(task.model_copy(update={"turns": turns}))
    made = replay(template, task, sent)
    for calls, turn in zip(sent, made.turns, strict=True):
        # A refusal is speech: it tells the reader what no rule has told.
        if len(turn.executed) < len(calls) or any(done.error for done in turn.executed):
            return ""
    if verify(template, task, played, made, _answers(task)).reward == 1.0:
        return ""
    (index, _), call = next(iter(guesses.items()))
    shown = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return (
        f"A reader that is told every rule sends {call.tool}({shown}) in turn {index}; the tool "
        "takes it, and the verdict does not."
    )


def _guesses(
    template: EnvironmentTemplate, task: Task, played: Played
) -> Iterator[tuple[tuple[int, int], GoldCall]]:
    """Gold's calls that such a reader makes otherwise, by turn and place."""
    heard: list[str] = []
    for index, (turn, made) in enumerate(zip(task.turns, played.turns, strict=True)):
        heard.append(turn.user)
        for place, (call, done) in enumerate(zip(turn.gold or (), made.executed, strict=True)):
            sent = {name: _sent(template, call, name, heard) for name in call.as_said}
            if any(value != call.arguments[name] for name, value in sent.items()):
                arguments = {**call.arguments, **sent}
                yield (index, place), call.model_copy(update={"arguments": arguments})
            heard.append(done.output)


def _sent(
    template: EnvironmentTemplate, call: GoldCall, name: str, heard: Sequence[str]
) -> JsonValue:
    """What is sent as an argument that the user says in another form than gold's."""
    value, said = call.arguments[name], call.as_said[name]
    rules = template.contract[call.tool].rules
    rule = rules.get(name, Rule())
    if isinstance(rule.allowed, dict) and isinstance(said, str) and said in rule.allowed:
        return rule.allowed[said]
    parts = [rule, *(inner for key, inner in rules.items() if key.startswith(f"{name}."))]
    told = any(part.stated() for part in parts)
    return value if told or says_value(value, heard) else said
