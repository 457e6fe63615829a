"""What is known of one turn, in the form in which every rule takes it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seal.diagnose.attempts import Attempt, Match, match_gold
from seal.diagnose.slots import slots_for
from seal.diagnose.trace import Trace, without_errors
from seal.envs.verify import Executed, Played, missing_outputs, state_difference
from seal.types import CallError, Diagnosis, GoldCall, Kind, Turn


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """One turn of a rollout beside gold's."""

    trace: Trace
    index: int
    turn: Turn
    attempts: Sequence[Attempt]
    """Its calls; where an earlier turn went astray, without the errors that only came of that."""
    matches: Sequence[Match]
    """Gold's calls, each with its attempt."""
    played: Played | None
    """What the turn did; where an earlier turn went astray, what it does in gold's place."""
    deviates: bool
    """The turn's own outcome is not gold's."""
    cascades: bool = False
    """The outcome is not gold's, and in gold's place it would be."""

    @property
    def gold(self) -> tuple[GoldCall, ...]:
        """Gold's calls of the turn."""
        return self.trace.task.turns[self.index].gold or ()

    @property
    def answers(self) -> list[str]:
        """What the answer lacks, unless other outputs than gold's led to it."""
        if self.cascades and not self.trace.same_outputs(self.index):
            return []
        return self.trace.missing_answers(self.index)

    def say(
        self,
        kind: Kind,
        tool: str | None = None,
        argument: str | None = None,
        **more: Any,  # noqa: ANN401 - fields of Diagnosis
    ) -> Diagnosis:
        """A diagnosis of this turn, with the slot that could have prevented it."""
        called = [name for name, _ in Counter(a.call.tool for a in self.attempts).most_common()]
        slots = slots_for(kind, tool, argument, called=called, texts=self.trace.candidate.texts)
        known = self.trace.template.renderer.slots
        return Diagnosis(
            turn=self.index,
            kind=kind,
            tool=tool,
            argument=argument,
            slot=next((slot for slot in slots if slot in known), None),
            deviates=self.deviates or bool(self.answers),
            **more,
        )

    def say_of(self, attempt: Attempt, kind: Kind, **more: Any) -> Diagnosis:  # noqa: ANN401
        """A diagnosis of one call."""
        tool = attempt.call.tool or None
        return self.say(kind, tool, step=attempt.step, call_id=attempt.call.id, **more)

    def stands(self, attempt: Attempt) -> bool:
        """Whether a call stands for one of gold's."""
        return any(match.attempt is attempt for match in self.matches)

    def recovered(self, attempt: Attempt) -> bool:
        """A later call of the same tool went through; for a call of no tool, any later call.

        A call that is all there is of a gold call was never corrected.
        """
        if self.stands(attempt):
            return False
        nameless = attempt.lost and (
            not attempt.call.tool or attempt.call.tool not in self.trace.template.contract.tools
        )
        later = (a for a in self.attempts if a.succeeded and a.step > attempt.step)
        return any(nameless or a.call.tool == attempt.call.tool for a in later)

    @property
    def extras(self) -> list[Attempt]:
        """The calls that went through, could change the world, and stand for none of gold's."""
        return [
            a
            for a in self.attempts
            if a.succeeded
            and not self.stands(a)
            and self.trace.template.contract[a.call.tool].mutates
        ]

    def differs(self) -> dict[str, str]:
        """The evidence of a state that is not gold's; empty if it is."""
        if self.trace.gold is None or self.played is None:
            return {}
        expected = self.trace.gold.turns[self.index].state
        found = self.played.turns[self.index].state
        names = state_difference(expected, found)
        if not names:
            return {}
        return {
            "expected": "; ".join(f"{name} = {shown(expected.get(name))}" for name in names),
            "found": "; ".join(f"{name} = {shown(found.get(name))}" for name in names),
        }

    def unobtained(self) -> list[Executed]:
        """Gold's calls of the turn whose outputs are missing."""
        if self.trace.gold is None or self.played is None:
            return []
        return missing_outputs(self.trace.template, self.trace.gold, self.played, self.index)


def facts_of(trace: Trace, index: int, *, closely: bool = False) -> TurnFacts:
    """What is known of one turn.

    Args:
        trace: The rollout.
        index: The turn.
        closely: Whether to find out what stands for gold's calls though nothing is to be seen.
    """
    turn = trace.rollout.turns[index]
    attempts = trace.attempts(index)
    gold = trace.task.turns[index].gold
    played, deviates, cascades = trace.played, trace.deviates(index), False
    if gold is None:
        deviates = index == trace.unchecked_turn
    elif gold == () and not attempts:
        deviates = False
    elif (deviates or any(a.error for a in attempts)) and trace.astray(index):
        played = trace.in_golds_place(index, [attempt.call for attempt in attempts])
        attempts = without_errors(attempts, played.turns[index].executed)
        cascades = deviates and trace.right(index, played)
    troubled = closely or deviates or any(attempt.error for attempt in attempts)
    matches = match_gold(trace.template.contract, gold or (), attempts) if troubled else []
    own = deviates and not cascades
    return TurnFacts(trace, index, turn, attempts, matches, played, own, cascades)


def required(error: CallError | None) -> str | None:
    """The prerequisite for want of which a call was refused."""
    if error is None or error.kind != "refused" or error.argument is not None:
        return None
    return error.rule.requires


def shown(value: object, length: int = 200) -> str:
    """A value as JSON, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown_call(call: GoldCall) -> str:
    """A gold call as a person would write it."""
    return f"{call.tool}({', '.join(f'{k}={shown(v, 60)}' for k, v in call.arguments.items())})"
