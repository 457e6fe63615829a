"""One sentence for each diagnosis, for a person who wants to know what to look at."""

from collections.abc import Callable

from seal.types import GOLD_SUSPECT, Diagnosis, Kind

_LONG = 100
"""Characters of one value or message that a sentence shows."""


def sentence(diagnosis: Diagnosis) -> str:
    """What happened, where, and what gold does there; the turn is numbered as it is shown.

    >>> sentence(
    ...     Diagnosis(
    ...         turn=2,
    ...         kind=Kind.WRONG_ARGUMENT,
    ...         tool="book",
    ...         argument="hour",
    ...         found='"14.00"',
    ...         expected='"2 pm"',
    ...     )
    ... )
    'In turn 2, book got hour="14.00"; gold passes hour="2 pm".'
    """
    said = _SENTENCES[diagnosis.kind](diagnosis)
    return f"{said} It was corrected within the turn." if diagnosis.recovered else said


def _cut(text: str) -> str:
    """A text on one line, and of a long one its beginning."""
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[: _LONG - 1]}…"


def _turn(d: Diagnosis) -> str:
    return f"In turn {d.turn}, "


def _tool(d: Diagnosis) -> str:
    return d.tool or "a tool without a name"


def _argument(d: Diagnosis) -> str:
    return d.argument or "an argument"


def _ended(text: str) -> str:
    """A message of the environment as the end of a sentence."""
    line = _cut(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _malformed(d: Diagnosis) -> str:
    return (
        f"{_turn(d)}a call of {_tool(d)} could not be read: {_cut(d.found) or 'it is empty'}; "
        "a call is a tool's name and one JSON object."
    )


def _unknown_tool(d: Diagnosis) -> str:
    return f"{_turn(d)}{_tool(d)} was called, and the turn shows no such tool."


def _argument_missing(d: Diagnosis) -> str:
    return f"{_turn(d)}{_tool(d)} was called without {_argument(d)}, which it needs."


def _argument_unexpected(d: Diagnosis) -> str:
    return f"{_turn(d)}{_tool(d)} got {_argument(d)}={_cut(d.found)}; it has no such argument."


def _argument_wrong(d: Diagnosis) -> str:
    return f"{_turn(d)}{_tool(d)} got {_argument(d)}={_cut(d.found)}: {_ended(d.expected)}"


def _refused(d: Diagnosis) -> str:
    # The tool may refuse the call as a whole, and then no value of it was received.
    sent = f" {d.argument}={_cut(d.found)}" if d.argument and d.found != "null" else " the call"
    code = f" ({d.code})" if d.code else ""
    return f"{_turn(d)}{_tool(d)} refused{sent}{code}: {_ended(d.expected)}"


def _wrong_argument(d: Diagnosis) -> str:
    if d.argument is None:
        return f"{_turn(d)}{_tool(d)} was not called as gold calls it."
    got = f"got {d.argument}={_cut(d.found)}"
    if d.found == "null":
        got = f"was called without {d.argument}"
    wanted = f"gold passes {d.argument}={_cut(d.expected)}"
    if d.expected == "null":
        wanted = "gold leaves it out"
    return f"{_turn(d)}{_tool(d)} {got}; {wanted}."


def _wrong_tool(d: Diagnosis) -> str:
    return f"{_turn(d)}{_cut(d.found)} was called; gold calls {_cut(d.expected)}."


def _missing_call(d: Diagnosis) -> str:
    return f"{_turn(d)}gold calls {_cut(d.expected)}; no such call was made."


def _no_call(d: Diagnosis) -> str:
    return f"{_turn(d)}nothing was called; gold calls {_cut(d.expected)}."


def _spurious_call(d: Diagnosis) -> str:
    return f"{_turn(d)}{_cut(d.found)} was called; gold calls nothing there."


def _state_mismatch(d: Diagnosis) -> str:
    if not d.found:
        return f"After turn {d.turn}, the check {_cut(d.expected)} does not hold."
    by = f" by {d.tool}" if d.tool else ""
    return f"Turn {d.turn} left{by}: {_cut(d.found)}; gold leaves: {_cut(d.expected)}."


def _output_missing(d: Diagnosis) -> str:
    return (
        f"{_turn(d)}gold obtains this from {_tool(d)}, and the agent never did: {_cut(d.expected)}"
    )


def _answer_mismatch(d: Diagnosis) -> str:
    said = f'the answer was "{_cut(d.found)}"' if d.found.strip() else "there was no answer"
    return f'{_turn(d)}{said}; it should contain "{_cut(d.expected)}".'


def _recovery_failure(d: Diagnosis) -> str:
    later = f"no later call of {d.tool}" if d.tool else "no later call"
    return f"{_turn(d)}{later} went through after an error: {_ended(d.expected)}"


def _limit_reached(d: Diagnosis) -> str:
    made = f" ({_cut(d.found)})" if d.found else ""
    return f"{_turn(d)}a limit came{made} before gold's call of {_cut(d.expected)}."


def _cascade(d: Diagnosis) -> str:
    return f"{_turn(d)}the calls were right; what they met had gone wrong in an earlier turn."


def _passed(d: Diagnosis) -> str:
    return f"Turn {d.turn} came out as gold's."


def _abstained(d: Diagnosis) -> str:
    return f"{_turn(d)}nothing was called, as it should be."


def _unscorable(d: Diagnosis) -> str:
    if d.code == GOLD_SUSPECT:
        return f"Gold is in doubt: {_ended(d.found)}"
    return f"The rollout could not be judged: {_ended(d.found)}"


_SENTENCES: dict[Kind, Callable[[Diagnosis], str]] = {
    Kind.MALFORMED_CALL: _malformed,
    Kind.UNKNOWN_TOOL: _unknown_tool,
    Kind.ARGUMENT_MISSING: _argument_missing,
    Kind.ARGUMENT_UNEXPECTED: _argument_unexpected,
    Kind.ARGUMENT_TYPE: _argument_wrong,
    Kind.ARGUMENT_VALUE: _argument_wrong,
    Kind.REFUSED: _refused,
    Kind.WRONG_ARGUMENT: _wrong_argument,
    Kind.WRONG_TOOL: _wrong_tool,
    Kind.MISSING_CALL: _missing_call,
    Kind.NO_CALL: _no_call,
    Kind.SPURIOUS_CALL: _spurious_call,
    Kind.STATE_MISMATCH: _state_mismatch,
    Kind.OUTPUT_MISSING: _output_missing,
    Kind.ANSWER_MISMATCH: _answer_mismatch,
    Kind.RECOVERY_FAILURE: _recovery_failure,
    Kind.LIMIT_REACHED: _limit_reached,
    Kind.CASCADE: _cascade,
    Kind.PASS: _passed,
    Kind.CORRECT_ABSTENTION: _abstained,
    Kind.UNSCORABLE: _unscorable,
}
