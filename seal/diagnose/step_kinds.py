"""The kinds of single calls: what did not go through, and whether the policy got over it."""

from collections.abc import Iterator, Sequence

from seal.diagnose.attempts import Attempt, differing
from seal.diagnose.facts import TurnFacts, required, shown
from seal.types import Diagnosis, Kind


def errors(facts: TurnFacts, told: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    """Every call that did not go through, but for those told already."""
    # Servers number calls anew in every message, so an id alone would tell nothing apart.
    known = {(one.step, one.call_id) for one in told}
    for attempt in facts.attempts:
        if attempt.error is not None and (attempt.step, attempt.call.id) not in known:
            yield error(facts, attempt)


def error(facts: TurnFacts, attempt: Attempt) -> Diagnosis:
    """One call that did not go through: malformed, unknown, against its schema, or refused."""
    cause = attempt.error
    if cause is None:
        raise ValueError("a call that went through has no error to diagnose")
    argument, received = _argument(facts, attempt)
    return facts.say_of(
        attempt,
        Kind(cause.kind),
        argument=argument,
        code=cause.code if cause.kind == "refused" else None,
        masked=cause.masked,
        expected=cause.message,
        found=attempt.call.arguments if attempt.arguments is None else shown(received),
        recovered=facts.recovered(attempt),
    )


def _argument(facts: TurnFacts, attempt: Attempt) -> tuple[str | None, object]:
    """The argument at fault and its value: of a refusal, one in which the call is not gold's.

    A world can only say which value it stumbled over: that a room is taken at that hour, where the
    day was the mistake.
    """
    cause = attempt.error
    if cause is None:
        return None, None
    if cause.kind != "refused" or attempt.arguments is None:
        return cause.argument, cause.received
    match = next((one for one in facts.matches if one.attempt is attempt), None)
    if match is None or match.gold.tool != attempt.call.tool:
        return cause.argument, cause.received
    contract = facts.trace.template.contract[match.gold.tool]
    names = differing(contract, match.gold, attempt)
    if not names or cause.argument in names:
        return cause.argument, cause.received
    return names[0], attempt.arguments.get(names[0])


def recovery_failures(facts: TurnFacts) -> Iterator[Diagnosis]:
    """An error was shown, and the turn ended with no successful call of that tool."""
    done = {attempt.call.tool for attempt in facts.attempts if attempt.succeeded}
    for attempt in facts.attempts:
        tool = attempt.call.tool
        if attempt.error and tool not in done and not facts.recovered(attempt):
            done.add(tool)
            yield facts.say(
                Kind.RECOVERY_FAILURE,
                tool or None,
                code=attempt.error.code,
                masked=attempt.error.masked,
                expected=attempt.error.message,
            )


def refused_for_want(facts: TurnFacts, place: int) -> Attempt | None:
    """The call that was refused for want of a gold call which nobody tried."""
    tool = facts.matches[place].gold.tool
    later = (match.attempt for match in facts.matches[place + 1 :])
    return next((a for a in later if a and required(a.error) == tool), None)
