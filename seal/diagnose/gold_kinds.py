"""The kinds of a turn in which gold makes calls: why its outcome is not gold's."""

from seal.diagnose.attempts import Attempt, differing
from seal.diagnose.facts import TurnFacts, shown, shown_call
from seal.diagnose.step_kinds import error, refused_for_want
from seal.types import Diagnosis, Kind


def causes(facts: TurnFacts) -> list[Diagnosis]:
    """Why the outcome of a turn is not gold's, in gold's order; at least one.

    First what became of each gold call that was not made as gold makes it. Where there are several
    such reasons, or calls beside gold's, those count that would spoil gold's turn on their own:
    what makes no difference is no fault. If all of gold's calls were made, it is a call beside
    them, or one that failed for coming at the wrong time, or their order.
    """
    if not facts.attempts:
        return [no_call(facts)]
    found: list[tuple[int, Diagnosis]] = []
    told: set[tuple[int | None, str | None]] = set()
    for place, match in enumerate(facts.matches):
        one = None if match.satisfied else _not_made(facts, place)
        if one is not None and (one.call_id is None or (one.step, one.call_id) not in told):
            found.append((place, one))
            told.add((one.step, one.call_id))
    if len(found) + bool(facts.extras) <= 1 and found:
        return [one for _, one in found]
    real = [one for place, one in found if _matters(facts, place)]
    return real or _beside_gold(facts) or [one for _, one in found][:1] or [_untraced(facts)]


def _not_made(facts: TurnFacts, place: int) -> Diagnosis | None:
    """What became of one gold call: the first kind that fits.

    None for a call that gold makes too and that failed: it came at the wrong time, or after
    another that was not made, and that one is the reason.
    """
    match = facts.matches[place]
    if match.exact:
        return None
    if match.attempt is None:
        refused = refused_for_want(facts, place)
        if refused is not None:
            return error(facts, refused)
        return limit_reached(facts, place) or wrong_tool(facts, place) or missing_call(facts, place)
    if match.attempt.error is not None:
        return error(facts, match.attempt)
    return wrong_argument(facts, place)


def _matters(facts: TurnFacts, place: int) -> bool:
    """Whether gold's turn goes wrong if this one of its calls is made as the policy made it.

    An error after which the policy gave up matters in any case: what it left undone came of it.
    """
    trace, attempt = facts.trace, facts.matches[place].attempt
    if attempt is not None and attempt.error and attempt is facts.attempts[-1]:
        return True
    if (attempt is None or attempt.lost) and trace.needed(facts.index, place):
        return True
    calls = list(trace.gold_calls[facts.index])
    calls[place : place + 1] = [attempt.call] if attempt else []
    return not trace.right(facts.index, trace.in_golds_place(facts.index, calls))


def _beside_gold(facts: TurnFacts) -> list[Diagnosis]:
    """What else can be the reason if all of gold's calls were made."""
    extra = _culprit(facts)
    if extra is not None:
        return [_outcome(facts, extra) or _untraced(facts, extra)]
    failed = [m.attempt for m in facts.matches if m.attempt and m.attempt.error]
    if failed:
        return [error(facts, failed[0])]
    outcome = _outcome(facts, None)
    return [outcome] if outcome else []


def _culprit(facts: TurnFacts) -> Attempt | None:
    """The call beside gold's without which the turn goes right; of several, the first."""
    extras = facts.extras
    order = [facts.attempts.index(m.attempt) for m in facts.matches if m.attempt]
    if len(extras) == 1 and order == sorted(order) and all(m.satisfied for m in facts.matches):
        return extras[0]
    for dropped in ([[one] for one in extras] + [extras]) if extras else ():
        calls = [a.call for a in facts.attempts if not any(a is one for one in dropped)]
        trace = facts.trace
        if trace.right(facts.index, trace.in_golds_place(facts.index, calls)):
            return dropped[0]
    return None


def _outcome(facts: TurnFacts, extra: Attempt | None) -> Diagnosis | None:
    return state_mismatch(facts, extra) or output_missing(facts)


def _untraced(facts: TurnFacts, extra: Attempt | None = None) -> Diagnosis:
    """The turn left nothing to see, and a later one went wrong for it."""
    others = [a for a in facts.attempts if a.succeeded and not facts.stands(a)]
    attempt = extra or (others or list(facts.attempts))[0]
    made = ", ".join(a.call.tool for a in facts.attempts)
    wanted = ", ".join(call.tool for call in facts.gold)
    return facts.say_of(
        attempt, Kind.STATE_MISMATCH, expected=f"calls: {wanted}", found=f"calls: {made}"
    )


def no_call(facts: TurnFacts) -> Diagnosis:
    """No call at all where gold has some; a limit that ended the turn before one says so."""
    kind = Kind.NO_CALL if facts.turn.stop == "answered" else Kind.LIMIT_REACHED
    return facts.say(kind, facts.gold[0].tool, expected=shown_call(facts.gold[0]))


def limit_reached(facts: TurnFacts, place: int) -> Diagnosis | None:
    """The turn ended at a limit before a gold call was made."""
    if facts.turn.stop == "answered":
        return None
    gold = facts.matches[place].gold
    made = ", ".join(a.call.tool for a in facts.attempts) or "none"
    return facts.say(
        Kind.LIMIT_REACHED, gold.tool, expected=shown_call(gold), found=f"calls: {made}"
    )


def wrong_tool(facts: TurnFacts, place: int) -> Diagnosis | None:
    """Calls went through, and none is of a tool that gold calls in the turn."""
    tools = {call.tool for call in facts.gold}
    strange = [a for a in facts.attempts if a.succeeded and a.call.tool not in tools]
    if not strange or any(a.call.tool in tools for a in facts.attempts):
        return None
    attempt = strange[0]
    return facts.say_of(
        attempt,
        Kind.WRONG_TOOL,
        expected=shown_call(facts.matches[place].gold),
        found=f"{attempt.call.tool}{attempt.call.arguments}",
    )


def missing_call(facts: TurnFacts, place: int) -> Diagnosis:
    """A gold call that nobody tried."""
    gold = facts.matches[place].gold
    return facts.say(Kind.MISSING_CALL, gold.tool, expected=shown_call(gold))


def wrong_argument(facts: TurnFacts, place: int) -> Diagnosis | None:
    """A gold call that went through with other arguments."""
    match = facts.matches[place]
    if match.attempt is None:
        return None
    contract = facts.trace.template.contract[match.gold.tool]
    argument = differing(contract, match.gold, match.attempt)[0]
    return facts.say_of(
        match.attempt,
        Kind.WRONG_ARGUMENT,
        argument=argument,
        expected=shown(match.gold.arguments.get(argument)),
        found=shown((match.attempt.arguments or {}).get(argument)),
    )


def state_mismatch(facts: TurnFacts, extra: Attempt | None) -> Diagnosis | None:
    """The state is not gold's though gold's calls were made: one beside them, or their order."""
    evidence = facts.differs()
    if not evidence:
        return None
    if extra is not None:
        return facts.say_of(extra, Kind.STATE_MISMATCH, **evidence)
    return facts.say(Kind.STATE_MISMATCH, _out_of_order(facts), **evidence)


def _out_of_order(facts: TurnFacts) -> str:
    """The tool of the first gold call that came after one which gold makes later."""
    made = [facts.attempts.index(m.attempt) if m.attempt else -1 for m in facts.matches]
    late = (
        match.gold.tool
        for place, match in enumerate(facts.matches)
        if any(0 <= after < made[place] for after in made[place + 1 :])
    )
    return next(late, facts.gold[0].tool)


def output_missing(facts: TurnFacts) -> Diagnosis | None:
    """A gold output was never obtained, though gold's calls were made."""
    missing = facts.unobtained()
    if not missing:
        return None
    return facts.say(Kind.OUTPUT_MISSING, missing[0].tool, expected=missing[0].output[:200])


def spurious_call(facts: TurnFacts) -> Diagnosis | None:
    """A call in a turn in which the agent should ask or decline."""
    if not facts.attempts:
        return None
    attempt = facts.attempts[0]
    return facts.say_of(
        attempt,
        Kind.SPURIOUS_CALL,
        expected="no call",
        found=f"{attempt.call.tool}{attempt.call.arguments}",
    )
