"""What a policy tried in one turn, and which gold call each try stood for."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    of an error the call that came of it, if that stands for nothing else. No attempt stands for two
    gold calls.
    """
    free = list(attempts)
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
    for index, call in enumerate(gold):
        if index not in found:
            same_tool = [attempt for attempt in free if attempt.call.tool == call.tool]
            nearest = _nearest(contract, call, same_tool)
            if nearest is not None:
                free.remove(nearest)
            found[index] = Match(call, nearest)
    return [_corrected(contract, found[index], free) for index in range(len(gold))]


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


def is_exact(contract: Contract, gold: GoldCall, attempt: Attempt) -> bool:
    """Whether an attempt is gold's call, a default left out or spelt out being the same."""
    return (
        attempt.call.tool == gold.tool
        and attempt.arguments is not None
        and not differing(contract[gold.tool], gold, attempt)
    )


def differing(contract: ToolContract, gold: GoldCall, attempt: Attempt) -> list[str]:
    """The arguments in which an attempt differs from gold, in the contract's order."""
    properties = contract.parameters.get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    given = attempt.arguments or {}
    names = [*contract.arguments, *(name for name in given if name not in contract.arguments)]

    def value(arguments: Arguments, name: str) -> object:
        schema = schemas.get(name)
        default = schema.get("default") if isinstance(schema, dict) else None
        return arguments.get(name, default)

    return [name for name in names if value(gold.arguments, name) != value(given, name)]
