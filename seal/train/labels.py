"""Our diagnoses in the words of the paper: one label a turn, as its weights need them.

The paper has two vocabularies. Its table 5 names six kinds of failure; the weights of its table 6
go by other labels, those of the released code. Both are read off our diagnoses through `TABLE`.

What counts against a turn is what was not corrected, in a turn whose outcome deviates: the code
compares outcomes too, so an error that did no harm leaves a turn passed. A turn that is wrong only
because an earlier one was (`cascade`) counts as wrong, as it does in the code.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seal.types import DiagnosedRollout, Diagnosis, Kind, Task, UserTurn


class Tag(StrEnum):
    """The released code's label of a turn; of several, the first in this order."""

    SPURIOUS_CALL = "spurious_tool_call"
    EMPTY_TURN = "empty_turn_model_response"
    INSTANCE_MISMATCH = "instance_mismatch"
    """Calls on other objects than gold's. The code's executor lists all objects whatever was
    called, so that it never says this; nothing of ours is mapped to it either."""
    STATE_MISMATCH = "state_mismatch"
    RESPONSE_MISMATCH = "response_mismatch"
    CORRECT_ABSTENTION = "correct_abstention"
    PASS = "pass"


class Failure(StrEnum):
    """The paper's kinds of failed turn (its table 5); of several, the first in this order."""

    INVALID_TOOL_CALL = "invalid_tool_call"
    ARGUMENT_MISMATCH = "argument_mismatch"
    STATE_MISMATCH = "state_mismatch"
    RECOVERY_FAILURE = "recovery_failure"
    MISSING_TOOL_CALL = "missing_tool_call"
    RESPONSE_MISMATCH = "response_mismatch"


@dataclass(frozen=True, slots=True)
class Names:
    """What the paper calls one of our kinds."""

    tag: Tag | None
    """None: no label; it then has no weight."""
    failure: Failure | None
    """None: no failure."""


_ARGUMENT = Names(Tag.STATE_MISMATCH, Failure.ARGUMENT_MISMATCH)
_REJECTED = Names(Tag.EMPTY_TURN, Failure.INVALID_TOOL_CALL)
_UNRECOVERED = Names(Tag.STATE_MISMATCH, Failure.RECOVERY_FAILURE)
_STATE = Names(Tag.STATE_MISMATCH, Failure.STATE_MISMATCH)
_LEFT_OUT = Names(Tag.STATE_MISMATCH, Failure.MISSING_TOOL_CALL)
_RESPONSE = Names(Tag.RESPONSE_MISMATCH, Failure.RESPONSE_MISMATCH)

TABLE: dict[Kind, Names] = {
    # The code strikes rejected calls out before it looks: a turn with no other call is empty.
    Kind.MALFORMED_CALL: _REJECTED,
    Kind.UNKNOWN_TOOL: _REJECTED,
    Kind.ARGUMENT_MISSING: _ARGUMENT,
    Kind.ARGUMENT_UNEXPECTED: _ARGUMENT,
    Kind.ARGUMENT_TYPE: _ARGUMENT,
    Kind.ARGUMENT_VALUE: _ARGUMENT,
    Kind.REFUSED: _UNRECOVERED,
    # Table 5 means arguments that break the schema; a wrong value that runs is a wrong transition.
    Kind.WRONG_ARGUMENT: _STATE,
    Kind.WRONG_TOOL: _LEFT_OUT,
    Kind.MISSING_CALL: _LEFT_OUT,
    Kind.NO_CALL: Names(Tag.EMPTY_TURN, Failure.MISSING_TOOL_CALL),
    # Table 5 has no word for it; where it did harm, the harm is to the state.
    Kind.SPURIOUS_CALL: Names(Tag.SPURIOUS_CALL, Failure.STATE_MISMATCH),
    Kind.STATE_MISMATCH: _STATE,
    # The code means outputs of tools, the paper the final text: both land here.
    Kind.OUTPUT_MISSING: _RESPONSE,
    Kind.ANSWER_MISMATCH: _RESPONSE,
    Kind.RECOVERY_FAILURE: _UNRECOVERED,
    Kind.LIMIT_REACHED: _LEFT_OUT,
    Kind.CASCADE: _STATE,
    Kind.PASS: Names(Tag.PASS, None),
    Kind.CORRECT_ABSTENTION: Names(Tag.CORRECT_ABSTENTION, None),
    Kind.UNSCORABLE: Names(None, None),
}

_STRUCK_OUT = {Kind.MALFORMED_CALL, Kind.UNKNOWN_TOOL}
_NEVER_MADE = {Kind.MISSING_CALL, Kind.LIMIT_REACHED}
_BESIDE_CALLS = {Kind.RECOVERY_FAILURE, Kind.ANSWER_MISMATCH}
_BY_STATE = {Kind.STATE_MISMATCH, Kind.CASCADE, Kind.WRONG_TOOL}


def turn_labels(
    task: Task, diagnosed: DiagnosedRollout, *, reads: Collection[str] = ()
) -> tuple[Tag, ...]:
    """The code's label of each turn; empty if the rollout could not be scored or diagnosed.

    Where calls of a turn were rejected, diagnoses do not say whether others went through: the turn
    counts as empty if every gold call was rejected or never tried. A rejected call where none was
    wanted is spurious here; the code overlooks it.

    Args:
        task: What was asked.
        diagnosed: What went wrong.
        reads: Tools that change nothing. A call of theirs gone wrong leaves an output missing
            (`response_mismatch`), not a state.

    Raises:
        ValueError: The diagnoses are of another task.
    """
    against = _against(task, diagnosed)
    return tuple(_tag(task.turns[i], found, reads) for i, found in enumerate(against))


def turn_failures(task: Task, diagnosed: DiagnosedRollout) -> tuple[Failure | None, ...]:
    """The paper's kind of failure of each turn, None for a turn that is right.

    Empty if the rollout could not be scored or diagnosed.

    Raises:
        ValueError: The diagnoses are of another task.
    """
    against = _against(task, diagnosed)
    return tuple(_failure(task.turns[i], found) for i, found in enumerate(against))


def _against(task: Task, diagnosed: DiagnosedRollout) -> list[list[Diagnosis] | None]:
    """Per turn, what counts against it; None for a turn that was never reached."""
    if diagnosed.task != task.id:
        raise ValueError(f"labels for task {task.id} asked of diagnoses of {diagnosed.task}")
    if any(d.kind is Kind.UNSCORABLE for d in diagnosed.diagnoses):
        return []
    found: list[list[Diagnosis] | None] = [None] * len(task.turns)
    for diagnosis in diagnosed.diagnoses:
        counted = found[diagnosis.turn] or []
        found[diagnosis.turn] = counted
        if _counts(diagnosis) or diagnosis == diagnosed.fault:
            counted.append(diagnosis)
    return found


def _counts(diagnosis: Diagnosis) -> bool:
    # That a check failed, or that a call was made at all, needs no other sign of harm.
    certain = diagnosis.kind in (Kind.STATE_MISMATCH, Kind.SPURIOUS_CALL)
    wrong = diagnosis.kind.blames or diagnosis.kind is Kind.CASCADE
    return wrong and not diagnosis.recovered and (diagnosis.deviates or certain)


def _tag(turn: UserTurn, found: Sequence[Diagnosis] | None, reads: Collection[str]) -> Tag:
    if not found:
        if turn.gold == ():
            return Tag.CORRECT_ABSTENTION
        return Tag.EMPTY_TURN if found is None else Tag.PASS
    if _is_empty(turn, found):
        return Tag.EMPTY_TURN
    tags = {_tag_of(diagnosis, reads) for diagnosis in found}
    return next(tag for tag in Tag if tag in tags)


def _is_empty(turn: UserTurn, found: Sequence[Diagnosis]) -> bool:
    """Whether the turn had no call that could be run."""
    kinds = [diagnosis.kind for diagnosis in found]
    if Kind.NO_CALL in kinds:
        return True
    unheard = [kind for kind in kinds if kind in _STRUCK_OUT | _NEVER_MADE]
    others = set(kinds) - _STRUCK_OUT - _NEVER_MADE - _BESIDE_CALLS
    struck_out = bool(_STRUCK_OUT & set(kinds))
    return struck_out and not others and len(unheard) >= len(turn.gold or ())


def _tag_of(diagnosis: Diagnosis, reads: Collection[str]) -> Tag | None:
    """The tag of one diagnosis in a turn in which some call was run."""
    tag = TABLE[diagnosis.kind].tag
    if tag not in (Tag.EMPTY_TURN, Tag.STATE_MISMATCH):
        return tag
    only_read = diagnosis.tool in reads and diagnosis.kind not in _BY_STATE
    return Tag.RESPONSE_MISMATCH if only_read else Tag.STATE_MISMATCH


def _failure(turn: UserTurn, found: Sequence[Diagnosis] | None) -> Failure | None:
    if found is None:
        return None if turn.gold == () else Failure.MISSING_TOOL_CALL
    harm = [d for d in found if d.deviates or d.kind is not Kind.SPURIOUS_CALL]
    failures = {TABLE[diagnosis.kind].failure for diagnosis in harm}
    return next((failure for failure in Failure if failure in failures), None)
