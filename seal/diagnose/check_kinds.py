"""The kinds of a task whose named checks fail where gold says nothing: what can be told of it."""

from collections.abc import Iterator

from seal.diagnose.facts import TurnFacts
from seal.diagnose.step_kinds import error
from seal.diagnose.trace import Trace
from seal.types import Diagnosis, Kind


def failed_check(facts: TurnFacts) -> list[Diagnosis]:
    """A turn without gold that the failed check is held against: the first kind that fits.

    If a call of the turn made the check false, `state_mismatch`. If the check never held: errors
    that were not corrected, `limit_reached`, `no_call`, and else `state_mismatch`.
    """
    if facts.trace.broken_by != facts.index:
        wrong = [a for a in facts.attempts if a.error and not facts.recovered(a)]
        if wrong:
            return [error(facts, attempt) for attempt in wrong]
        if facts.turn.stop != "answered":
            return [facts.say(Kind.LIMIT_REACHED, _last_tool(facts), expected=_name(facts.trace))]
        if not facts.attempts:
            return [facts.say(Kind.NO_CALL, expected=_name(facts.trace))]
    return [facts.say(Kind.STATE_MISMATCH, _last_tool(facts), expected=_name(facts.trace))]


def _last_tool(facts: TurnFacts) -> str | None:
    """The last tool that was called: one that changed the world, if there is one."""
    contract = facts.trace.template.contract
    done = [a.call.tool for a in facts.attempts if a.succeeded and contract[a.call.tool].mutates]
    tools = done or [a.call.tool for a in facts.attempts]
    return tools[-1] if tools else None


def _name(trace: Trace) -> str:
    return trace.failed_check or ""


def checks_alone(trace: Trace) -> Iterator[Diagnosis]:
    """The first failed check of a rollout in which no turn is at fault: the last turn has it."""
    failed = next((one for one in trace.rollout.score.checks if not one.passed), None)
    if failed is not None and trace.rollout.turns:
        yield Diagnosis(
            turn=len(trace.rollout.turns) - 1,
            kind=Kind.STATE_MISMATCH,
            expected=failed.expected or failed.name,
            found=failed.found,
            deviates=True,
        )
