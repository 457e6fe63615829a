"""A rollout beside gold: what its turns did, and what they would have done in gold's place.

A turn after one that went astray is judged from where gold stood: its calls are played again after
gold's own turns. So what an earlier turn spoilt is never held against a later one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from pydantic import JsonValue

from seal.diagnose.attempts import Attempt, attempts_of, same_value
from seal.envs.contract import parse_arguments
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import (
    Executed,
    Played,
    answer_of,
    gold_calls,
    idle,
    missing_answers,
    missing_outputs,
    play,
    run_checks,
)
from seal.types import Candidate, Rollout, Task, ToolCall

Path = tuple[str, ...]
"""Where a part of a state lies: the keys on the way to it."""
K = TypeVar("K")


@dataclass(eq=False)
class Trace:
    """A rollout and gold's replay."""

    template: EnvironmentTemplate
    task: Task
    candidate: Candidate
    rollout: Rollout
    gold: Played | None
    """None if the rollout passed: nothing of it deviates."""
    played: Played | None
    """What the rollout's calls did; None if it passed."""
    _parts: dict[int, frozenset[Path]] = field(default_factory=dict)

    def attempts(self, index: int) -> list[Attempt]:
        """The calls of a turn."""
        return attempts_of(self.rollout.turns[index], self.template.limits.call_chars)

    def deviates(self, index: int) -> bool:
        """The turn's outcome is not gold's: a state, or an output, that the verifier misses."""
        turn = self.task.turns[index]
        if self.gold is None or self.played is None or turn.gold is None:
            return False
        if f"turn {index} abstention" in self._failed:
            return True
        return (
            self._state_counts(index)
            or idle(self.template, self.gold, self.played, index)
            or bool(missing_outputs(self.template, self.gold, self.played, index))
        )

    @cached_property
    def _failed(self) -> frozenset[str]:
        return frozenset(one.name for one in self.rollout.score.checks if not one.passed)

    def _state_counts(self, index: int) -> bool:
        """The state after the turn differs from gold's where the verifier gets to see it.

        A part that later turns set right before the verifier looks is none.
        """
        parts = self._differing(index)
        if not parts:
            return False
        turns = self.task.turns
        if self.template.world.verify_state == "final":
            looks = None if turns[-1].gold is None else len(turns) - 1
        else:
            looks = next((k for k in range(index, len(turns)) if turns[k].gold), None)
        for later in range(index + 1, len(turns) if looks is None else looks + 1):
            parts = _lasting(parts, self._differing(later))
        return looks is not None and bool(parts)

    def _differing(self, index: int) -> frozenset[Path]:
        """The parts of the state after a turn that differ from gold's."""
        if self.gold is None or self.played is None or index >= len(self.played.turns):
            return frozenset()
        if index not in self._parts:
            expected, found = self.gold.turns[index].state, self.played.turns[index].state
            self._parts[index] = frozenset(differing_parts(expected, found))
        return self._parts[index]

    def astray(self, index: int) -> bool:
        """An earlier turn did other calls than gold's, so that this one did not start from it."""
        if self.gold is None or self.played is None:
            return False
        before = range(index)
        if any(self.task.turns[k].gold is None for k in before):
            return False
        return any(_made(self.gold, k) != _made(self.played, k) for k in before)

    def in_golds_place(self, index: int, calls: Sequence[ToolCall], first: int = -1) -> Played:
        """What calls of a turn do after gold's earlier turns; their ids become their places.

        Args:
            index: The turn.
            calls: Its calls.
            first: From this turn on, the rollout's own turns come before it in place of gold's.

        Returns:
            The outcome of the turn, after what the rollout itself did in the turns before.
        """
        if self.gold is None or self.played is None:
            raise ValueError("a rollout that passed is not played again")
        done = self.played.turns[:index]
        if first < 0 and self._are_golds(index, calls):
            made = enumerate(self.gold.turns[index].executed)
            executed = tuple(replace(one, call_id=str(place)) for place, one in made)
            return Played((*done, replace(self.gold.turns[index], executed=executed)))
        numbered = [
            ToolCall(id=str(place), tool=call.tool, arguments=call.arguments)
            for place, call in enumerate(calls)
        ]
        before = self.gold_calls[:index]
        for own in range(first, index) if first >= 0 else ():
            before[own] = [attempt.call for attempt in self.attempts(own)]
        world = self.template.new_world(self.task)
        turns = play(self.template, self.task, world, [*before, numbered])
        return Played((*done, turns[-1]))

    @cached_property
    def gold_calls(self) -> list[list[ToolCall]]:
        """Gold's calls, turn by turn, as a policy could have written them."""
        return gold_calls(self.task)

    def _are_golds(self, index: int, calls: Sequence[ToolCall]) -> bool:
        """Whether calls are gold's, one by one: what they do from there is then known."""
        gold = self.task.turns[index].gold or ()
        return len(calls) == len(gold) and all(
            call.tool == one.tool
            and same_value(parse_arguments(call.arguments or "{}"), one.arguments)
            for call, one in zip(calls, gold, strict=True)
        )

    def right(self, index: int, played: Played) -> bool:
        """Whether the outcome of a turn is gold's."""
        if self.gold is None:
            return True
        return (
            self.gold.turns[index].state == played.turns[index].state
            and not idle(self.template, self.gold, played, index)
            and not missing_outputs(self.template, self.gold, played, index)
        )

    def needed(self, index: int, place: int) -> bool:
        """Whether the turn lacks an output if one of its gold calls is not made, in any case.

        It does where neither gold's other calls nor the rollout's earlier turns have that output.
        """
        if self.gold is None or self.played is None:
            return False
        executed = self.gold.turns[index].executed
        others = replace(
            self.gold.turns[index], executed=(*executed[:place], *executed[place + 1 :])
        )
        without = Played((*self.played.turns[:index], others))
        return bool(missing_outputs(self.template, self.gold, without, index))

    def hidden_turn(self, index: int) -> int | None:
        """The turn that left no trace but for which a later one, whose calls are right, went wrong.

        It is the first turn such that the later one goes right once gold's calls are made up to it.
        """
        own = [attempt.call for attempt in self.attempts(index)]
        for turn in range(index):
            if self.right(index, self.in_golds_place(index, own, first=turn + 1)):
                return turn
        return None

    def same_outputs(self, index: int) -> bool:
        """The calls of a turn returned what gold's returned."""
        if self.gold is None or self.played is None:
            return True
        return _outputs(self.gold, index) == _outputs(self.played, index)

    @cached_property
    def failed_check(self) -> str | None:
        """The first named check that failed."""
        failed = (one.name for one in self.rollout.score.checks if not one.passed)
        return next((name for name in failed if not name.startswith("turn ")), None)

    @cached_property
    def broken_by(self) -> int | None:
        """The last turn that made the failed check false, None if the check never held."""
        check = self.failed_check
        if check not in self.task.checks:
            return None
        calls: list[list[ToolCall]] = []
        held = [self._holds(check, calls)]
        for index in range(len(self.rollout.turns)):
            calls.append([attempt.call for attempt in self.attempts(index)])
            held.append(self._holds(check, calls))
        return next((k - 1 for k in range(len(held) - 1, 0, -1) if held[k - 1] > held[k]), None)

    def _holds(self, check: str, calls: Sequence[Sequence[ToolCall]]) -> bool:
        world = self.template.new_world(self.task)
        play(self.template, self.task, world, calls)
        return run_checks(self.template, self.task, world)[check]

    @cached_property
    def unchecked_turn(self) -> int | None:
        """Of a task with a failed check, the turn without gold that it is held against.

        It is the one that made the check false. If the check never held, it is the first turn that
        shows what went wrong: an error at its end, a limit, no call; else the last.
        """
        free = [k for k, turn in enumerate(self.task.turns) if turn.gold is None]
        free = [k for k in free if k < len(self.rollout.turns)]
        if not free or self.played is None or self.failed_check is None:
            return None
        if self.broken_by in free:
            return self.broken_by
        return next((k for k in free if self._shows(k)), free[-1])

    def _shows(self, index: int) -> bool:
        attempts = self.attempts(index)
        stopped = self.rollout.turns[index].stop != "answered"
        return not attempts or stopped or attempts[-1].error is not None

    def missing_answers(self, index: int) -> list[str]:
        """The texts that the answer of a turn should contain and does not."""
        return missing_answers(self.task, index, answer_of(self.rollout.turns[index]))


def differing_parts(expected: JsonValue, found: JsonValue, path: Path = ()) -> Iterator[Path]:
    """The smallest parts in which two states differ; a list is one part."""
    if expected == found:
        return
    if not isinstance(expected, dict) or not isinstance(found, dict):
        yield path
        return
    for key in expected.keys() | found.keys():
        one, other = expected.get(key), found.get(key)
        if key in expected and key in found:
            yield from differing_parts(one, other, (*path, key))
            continue
        # What is there on one side alone differs in each of its parts.
        there = one if key in expected else other
        inner = differing_parts(there, {}, (*path, key)) if isinstance(there, dict) else ()
        parts = list(inner)
        yield from parts or [(*path, key)]


def _lasting(parts: frozenset[Path], later: frozenset[Path]) -> frozenset[Path]:
    """The parts that still differ later, in whole or in part."""
    if parts == later:
        return parts
    return frozenset(
        part for part in parts if any(part[: len(other)] == other[: len(part)] for other in later)
    )


def _made(played: Played, index: int) -> list[tuple[str, dict[str, JsonValue]]]:
    turn = played.turns[index : index + 1]
    return [(done.tool, done.arguments) for one in turn for done in one.executed]


def _outputs(played: Played, index: int) -> list[tuple[str, bool]]:
    return [(one.output, one.error is None) for one in played.turns[index].executed]


def without_errors(attempts: Sequence[Attempt], executed: Sequence[Executed]) -> list[Attempt]:
    """The attempts, without the errors of those that go through in gold's place."""
    went = {done.call_id for done in executed if not done.error}
    return [replace(a, error=None) if str(n) in went else a for n, a in enumerate(attempts)]
