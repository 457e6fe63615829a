"""From one rollout to its diagnoses: deterministic, from the trace and gold's replay alone.

The priority within a turn, the first being the fault if the turn is at fault:

1. why its outcome is not gold's, gold call by gold call: the error of the call that stood for it,
   `wrong_argument`, `limit_reached`, `wrong_tool`, `missing_call` (`no_call` for all of them);
2. if gold's calls were all made: `state_mismatch`, an error, `output_missing`;
3. `answer_mismatch`;
4. the errors left, recovered or without harm, and `recovery_failure`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seal.diagnose.check_kinds import checks_alone, failed_check
from seal.diagnose.facts import TurnFacts, facts_of
from seal.diagnose.gold_kinds import causes, spurious_call
from seal.diagnose.step_kinds import errors, recovery_failures
from seal.diagnose.suspects import gold_suspect
from seal.diagnose.trace import Trace
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, Played, answer_of, replay
from seal.errors import EnvironmentFailure
from seal.types import Candidate, DiagnosedRollout, Diagnosis, Kind, Rollout, Task, ToolCall, Turn


def diagnose_rollout(
    template: EnvironmentTemplate,
    gold: GoldReplays,
    task: Task,
    candidate: Candidate,
    rollout: Rollout,
    played: Played | None = None,
) -> DiagnosedRollout:
    """Every diagnosis of a rollout, and its fault.

    The fault is the first unrecovered diagnosis whose turn deviates from gold; a rollout that
    passed has none. Within a turn, diagnoses follow gold's order, so that a call which only failed
    because an earlier one was missing comes after it.

    Args:
        template: The environment.
        gold: Gold's replays.
        task: The rollout's task.
        candidate: The words that were in force.
        rollout: The record.
        played: What its calls did, if that is known; else they are replayed in a fresh world.
    """
    found: list[Diagnosis] = []
    if rollout.reward is None:
        found.append(Diagnosis(turn=0, kind=Kind.UNSCORABLE, found=rollout.failure or ""))
    else:
        try:
            trace = _trace(template, gold, task, candidate, rollout, played)
            suspect = gold_suspect(template, gold, task, rollout, trace.played)
            found += [suspect] if suspect else _diagnoses(trace)
        except EnvironmentFailure as failure:
            found = [Diagnosis(turn=0, kind=Kind.UNSCORABLE, found=str(failure))]
    return DiagnosedRollout(
        rollout=rollout.id,
        task=rollout.task,
        scenario=rollout.scenario,
        candidate=rollout.candidate,
        reward=rollout.reward,
        diagnoses=tuple(found),
        fault=None if rollout.reward == 1.0 else _fault(found),
    )


def _trace(
    template: EnvironmentTemplate,
    gold: GoldReplays,
    task: Task,
    candidate: Candidate,
    rollout: Rollout,
    played: Played | None,
) -> Trace:
    """A rollout beside gold; one that passed deviates nowhere, and need not be played again."""
    wanted = gold.of(task)
    if rollout.reward == 1.0:
        return Trace(template, task, candidate, rollout, None, None)
    return Trace(
        template, task, candidate, rollout, wanted, played or _replay(template, task, rollout)
    )


def _replay(template: EnvironmentTemplate, task: Task, rollout: Rollout) -> Played:
    limit = template.limits.call_chars
    calls: list[list[ToolCall]] = [
        [call for step in turn.steps for call in step.calls if len(call.arguments) <= limit]
        for turn in rollout.turns
    ]
    return replay(template, task, calls)


def _fault(found: Sequence[Diagnosis]) -> Diagnosis | None:
    blamed = [d for d in found if d.kind.blames and not d.recovered]
    return next((d for d in blamed if d.deviates), blamed[0] if blamed else None)


def _diagnoses(trace: Trace) -> list[Diagnosis]:
    """The diagnoses of all turns."""
    turns = [_turn(trace, index) for index in range(len(trace.rollout.turns))]
    if trace.rollout.reward == 1.0 or any(_at_fault(one) for found in turns for one in found):
        return [one for found in turns for one in found]
    fallen = (k for k, found in enumerate(turns) if any(d.kind is Kind.CASCADE for d in found))
    for index in fallen:
        hidden = trace.hidden_turn(index)
        if hidden is not None:
            facts = replace(facts_of(trace, hidden, closely=True), deviates=True)
            turns[hidden] = list(_labels(facts))
            return [one for found in turns for one in found]
    return [one for found in turns for one in found] + list(checks_alone(trace))


def _at_fault(diagnosis: Diagnosis) -> bool:
    return diagnosis.kind.blames and diagnosis.deviates and not diagnosis.recovered


def _turn(trace: Trace, index: int) -> list[Diagnosis]:
    """The diagnoses of one turn."""
    turn = trace.rollout.turns[index]
    abstains = trace.task.turns[index].gold == ()
    uneventful = not _went_wrong(turn) and not (abstains and any(s.calls for s in turn.steps))
    if trace.rollout.reward == 1.0 and uneventful:
        return [_passed(index, abstains=abstains)]
    return list(_labels(facts_of(trace, index))) or [_passed(index, abstains=abstains)]


def _went_wrong(turn: Turn) -> bool:
    return any(result.error for step in turn.steps for result in step.results)


def _passed(index: int, *, abstains: bool) -> Diagnosis:
    return Diagnosis(turn=index, kind=Kind.CORRECT_ABSTENTION if abstains else Kind.PASS)


def _labels(facts: TurnFacts) -> Iterator[Diagnosis]:
    """The diagnoses of one turn in the order of their priority; none if nothing went wrong."""
    gold = facts.trace.task.turns[facts.index].gold
    told: list[Diagnosis] = []
    if gold == ():
        # That a call was made is the fault, and what came of it only follows.
        spurious = spurious_call(facts)
        told += [spurious] if spurious else []
    elif facts.cascades:
        told.append(facts.say(Kind.CASCADE).model_copy(update={"deviates": True}))
    elif gold and facts.deviates:
        told += causes(facts)
    elif gold is None and facts.deviates:
        told += failed_check(facts)
    yield from told
    yield from _answer(facts)
    yield from errors(facts, told)
    if gold != ():
        yield from recovery_failures(facts)


def _answer(facts: TurnFacts) -> Iterator[Diagnosis]:
    """The final text fails its check."""
    for text in facts.answers[:1]:
        said = answer_of(facts.turn)[:200]
        yield facts.say(Kind.ANSWER_MISMATCH, expected=text, found=said)
