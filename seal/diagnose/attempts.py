"""What a policy tried in one turn, and which gold call each try stood for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from seal.envs.contract import Contract, parse_arguments
from seal.types import Arguments, CallError, GoldCall, ToolCall, ToolContract, Turn


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a turn, with what came of it."""

    step: int
    call: ToolCall
    arguments: Arguments | None
    """None if no JSON object could be read."""
    error: CallError | None

    @property
    def succeeded(self) -> bool:
        """The call went through."""
        return self.error is None

    @property
    def lost(self) -> bool:
        """The call named no tool that could take it, or could not be read."""
        return self.error is not None and self.error.kind in ("malformed_call", "unknown_tool")


@dataclass(frozen=True, slots=True)
class Match:
    """One gold call, and the attempt that stood for it, if there was one."""

    gold: GoldCall
    attempt: Attempt | None
    exact: bool = False
    """The attempt named gold's tool with gold's arguments."""

    @property
    def satisfied(self) -> bool:
        """Gold's call was made, and went through."""
        return self.exact and self.attempt is not None and self.attempt.succeeded


def attempts_of(turn: Turn, call_chars: int) -> list[Attempt]:
    """The calls of a turn in order; those over the size limit never reached the environment."""
    return [
        Attempt(number, call, parse_arguments(call.arguments or "{}"), result.error)
        for number, step in enumerate(turn.steps)
        for call, result in zip(step.calls, step.results, strict=True)
        if len(call.arguments) <= call_chars
    ]


def match_gold(
    contract: Contract, gold: Sequence[GoldCall], attempts: Sequence[Attempt]
) -> list[Match]:
    """Gold's calls in order, each with its attempt.

    Exact attempts are given out first, those that succeeded before those that did not; then each
    gold call left takes the attempt of its tool that differs in the fewest arguments, and in place
    of an error the call that came of it, if that stands for nothing else; then calls that reached
    no tool stand for the gold call that they look like. No attempt stands for two gold calls.
    """
    free = list(attempts)
    found = _exact(contract, gold, free)
    for index, call in enumerate(gold):
        if index not in found:
            same_tool = [attempt for attempt in free if attempt.call.tool == call.tool]
            nearest = _nearest(contract, call, same_tool)
            if nearest is not None:
                free.remove(nearest)
            found[index] = Match(call, nearest)
    matches = [_corrected(contract, found[index], free) for index in range(len(gold))]
    return _with_lost(matches, attempts, [one for one in free if one.lost])


def _with_lost(
    matches: list[Match], attempts: Sequence[Attempt], lost: Sequence[Attempt]
) -> list[Match]:
    """The matches, with calls that reached no tool for gold calls that nobody tried.

    Each stands for the gold call that it looks like. One that looks like a call which has another
    such attempt stands for the first that has none; and so do all if no call of the turn is of a
    tool that gold calls: a policy that takes the tools for others is lost from the first on.
    """
    tools = {match.gold.tool for match in matches}
    near = any(attempt.call.tool in tools for attempt in attempts)
    for attempt in lost if matches else ():
        index = _likest(matches, attempt)
        other = matches[index].attempt
        if not near or (other is not None and other.lost):
            bare = (place for place, match in enumerate(matches) if match.attempt is None)
            index = next(bare, index)
        if matches[index].attempt is None:
            matches[index] = replace(matches[index], attempt=attempt)
    return matches


def _exact(contract: Contract, gold: Sequence[GoldCall], free: list[Attempt]) -> dict[int, Match]:
    """The gold calls that were made just so, by their place; their attempts are then taken."""
    found: dict[int, Match] = {}
    for wants_success in (True, False):
        for index, call in enumerate(gold):
            if index in found:
                continue
            for attempt in free:
                if attempt.succeeded == wants_success and is_exact(contract, call, attempt):
                    found[index] = Match(call, attempt, exact=True)
                    free.remove(attempt)
                    break
    return found


def _corrected(contract: Contract, match: Match, free: list[Attempt]) -> Match:
    """The match with the call that came of its error, if one is free; it is then taken."""
    error = match.attempt
    if error is None or error.succeeded or match.exact:
        return match
    later = [
        a for a in free if a.succeeded and a.call.tool == error.call.tool and a.step > error.step
    ]
    call = _nearest(contract, match.gold, later)
    if call is None:
        return match
    free.remove(call)
    return Match(match.gold, call)


def _nearest(contract: Contract, gold: GoldCall, attempts: Sequence[Attempt]) -> Attempt | None:
    """The attempt that differs from gold in the fewest arguments, the latest of equals."""
    return min(
        attempts,
        key=lambda a: (len(differing(contract[gold.tool], gold, a)), -a.step),
        default=None,
    )


def _likest(matches: Sequence[Match], attempt: Attempt) -> int:
    """The gold call whose text is most like that of a call; of equals, one nobody tried."""
    if len(matches) == 1:
        return 0
    named = bool(attempt.call.tool)
    text = f"{attempt.call.tool}{attempt.call.arguments}"[:_COMPARED]

    def likeness(index: int) -> tuple[float, bool, int]:
        gold = matches[index].gold
        other = f"{gold.tool if named else ''}{json.dumps(gold.arguments)}"[:_COMPARED]
        ratio = SequenceMatcher(None, text, other, autojunk=False).ratio()
        return ratio, matches[index].attempt is None, -index

    return max(range(len(matches)), key=likeness)


_COMPARED = 300
"""Characters of a call that are enough to see which other one it looks like."""


def is_exact(contract: Contract, gold: GoldCall, attempt: Attempt) -> bool:
    """Whether an attempt is gold's call, a default left out or spelt out being the same."""
    return (
        attempt.call.tool == gold.tool
        and attempt.arguments is not None
        and not differing(contract[gold.tool], gold, attempt)
    )


def differing(contract: ToolContract, gold: GoldCall, attempt: Attempt) -> list[str]:
    """The arguments in which an attempt differs from gold, in the contract's order."""
    given = attempt.arguments or {}
    if given == gold.arguments and same_value(given, gold.arguments):
        return []
    properties = contract.parameters.get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    names = [*contract.arguments, *(name for name in given if name not in contract.arguments)]

    def value(arguments: Arguments, name: str) -> object:
        schema = schemas.get(name)
        default = schema.get("default") if isinstance(schema, dict) else None
        return arguments.get(name, default)

    return [n for n in names if not same_value(value(gold.arguments, n), value(given, n))]


def same_value(left: object, right: object) -> bool:
    """Whether two JSON values are one: 65 is 65.0, and true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right
