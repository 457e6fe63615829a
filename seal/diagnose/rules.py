"""From one rollout to its diagnoses: deterministic, from the trace and gold's replay alone."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seal.diagnose.attempts import Attempt, Match, attempts_of, differing, match_gold
from seal.diagnose.slots import slots_for
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import (
    GoldReplays,
    Played,
    idle,
    missing_answers,
    missing_outputs,
    replay,
    state_difference,
)
from seal.errors import EnvironmentFailure
from seal.types import (
    Candidate,
    DiagnosedRollout,
    Diagnosis,
    Kind,
    Rollout,
    Task,
    ToolCall,
    Turn,
)


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
            played = played or _replay(template, task, rollout)
            trace = _Trace(template, task, candidate, rollout, gold.of(task), played)
            found += (d for index in range(len(rollout.turns)) for d in trace.turn(index))
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


def _fault(found: Sequence[Diagnosis]) -> Diagnosis | None:
    blamed = [d for d in found if d.kind.blames and not d.recovered]
    return next((d for d in blamed if d.deviates), blamed[0] if blamed else None)


def _replay(template: EnvironmentTemplate, task: Task, rollout: Rollout) -> Played:
    limit = template.limits.call_chars
    calls: list[list[ToolCall]] = [
        [call for step in turn.steps for call in step.calls if len(call.arguments) <= limit]
        for turn in rollout.turns
    ]
    return replay(template, task, calls)


@dataclass(frozen=True, slots=True)
class _Trace:
    """A rollout beside gold."""

    template: EnvironmentTemplate
    task: Task
    candidate: Candidate
    rollout: Rollout
    gold: Played
    played: Played

    def turn(self, index: int) -> list[Diagnosis]:
        """The diagnoses of one turn."""
        turn = self.rollout.turns[index]
        attempts = attempts_of(turn, self.template.limits.call_chars)
        gold = self.task.turns[index].gold
        label = _Labeller(self, index, turn, attempts, deviates=self.deviates(index))
        if gold is None:
            found = [*label.errors(attempts), *label.answer(), *label.failed_checks()]
        elif not gold:
            # That a call was made is the fault, and what came of it only follows.
            found = [*label.abstention(), *label.errors(attempts), *label.answer()]
        else:
            matches = match_gold(self.template.contract, gold, attempts)
            found = list(label.against_gold(matches))
        passed = Kind.CORRECT_ABSTENTION if gold == () else Kind.PASS
        return found or [Diagnosis(turn=index, kind=passed)]

    def diverged(self, index: int) -> bool:
        """The state after a turn differs from gold's."""
        if index < 0:
            return False
        return self.gold.turns[index].state != self.played.turns[index].state

    def deviates(self, index: int) -> bool:
        """The turn's outcome differs: state, a needed output, or the answer.

        Where only the final state counts, a difference that later turns undo is none.
        """
        turns = range(index, len(self.played.turns))
        lasting = self.template.world.verify_state == "every_turn" or all(map(self.diverged, turns))
        if self.task.turns[index].gold is not None:
            if self.diverged(index) and lasting:
                return True
            if idle(self.template, self.gold, self.played, index):
                return True
            if missing_outputs(self.template, self.gold, self.played, index):
                return True
        return bool(missing_answers(self.task, index, answer_of(self.rollout.turns[index])))


def answer_of(turn: Turn) -> str:
    """The agent's last message of a turn."""
    return turn.steps[-1].content if turn.steps else ""


@dataclass(frozen=True, slots=True)
class _Labeller:
    """Makes the diagnoses of one turn."""

    trace: _Trace
    index: int
    turn: Turn
    attempts: Sequence[Attempt]
    deviates: bool

    def _diagnosis(
        self,
        kind: Kind,
        tool: str | None,
        argument: str | None = None,
        **more: Any,  # noqa: ANN401 - fields of Diagnosis
    ) -> Diagnosis:
        called = [name for name, _ in Counter(a.call.tool for a in self.attempts).most_common()]
        slots = slots_for(kind, tool, argument, called=called, texts=self.trace.candidate.texts)
        known = self.trace.template.renderer.slots
        return Diagnosis(
            turn=self.index,
            kind=kind,
            tool=tool,
            argument=argument,
            slot=next((slot for slot in slots if slot in known), None),
            deviates=self.deviates,
            **more,
        )

    def against_gold(self, matches: Sequence[Match]) -> Iterator[Diagnosis]:
        """A turn in which gold makes calls."""
        causes = list(self._causes(matches)) if self.deviates else []
        yield from causes
        # Servers number calls anew in every message, so an id alone would tell nothing apart.
        told = {(cause.step, cause.call_id) for cause in causes}
        yield from self.errors([a for a in self.attempts if (a.step, a.call.id) not in told])
        yield from self.recovery_failures()
        if self.deviates and not causes:
            if self.trace.diverged(self.index - 1) and all(m.exact for m in matches):
                yield self._diagnosis(Kind.CASCADE, None)
            else:
                yield from self._outcome(matches)
        yield from self.answer()

    def _causes(self, matches: Sequence[Match]) -> Iterator[Diagnosis]:
        """Why gold's calls were not made, in gold's order."""
        if not self.attempts:
            kind = Kind.NO_CALL if self.turn.stop == "answered" else Kind.LIMIT_REACHED
            first = matches[0].gold
            yield self._diagnosis(kind, first.tool, expected=_shown_call(first))
            return
        lost = [
            a
            for a in self.attempts
            if a.error and a.error.kind in ("malformed_call", "unknown_tool")
        ]
        taken = [m.attempt for m in matches if m.attempt]
        strays = [a for a in lost if a not in taken and not self._recovered(a)]
        for place, match in enumerate(matches):
            if match.satisfied:
                continue
            if match.attempt is None and strays:
                yield self._error(strays.pop(0), recovered=False)
            elif match.attempt is None:
                yield from self._not_made(match, matches[place + 1 :])
            elif not match.exact:
                yield self._badly_made(match, match.attempt)
            elif match.attempt.error is not None and self._required(match.attempt) is not None:
                yield self._error(match.attempt, recovered=False)

    def _required(self, attempt: Attempt) -> str | None:
        """The prerequisite for want of which a call was refused."""
        error = attempt.error
        if error is None or error.kind != "refused" or error.argument is not None:
            return None
        return error.rule.requires

    def _not_made(self, match: Match, later: Sequence[Match]) -> Iterator[Diagnosis]:
        """A gold call that nobody tried; a refusal for want of it says more, and comes itself."""
        tool = match.gold.tool
        if any(m.attempt and self._required(m.attempt) == tool for m in later):
            return
        if self.turn.stop != "answered":
            made = ", ".join(a.call.tool for a in self.attempts) or "none"
            yield self._diagnosis(
                Kind.LIMIT_REACHED, tool, expected=_shown_call(match.gold), found=f"calls: {made}"
            )
            return
        tools = {call.tool for call in self.trace.task.turns[self.index].gold or ()}
        strange = [a for a in self.attempts if a.succeeded and a.call.tool not in tools]
        if strange and not any(a.call.tool in tools for a in self.attempts):
            attempt = strange[0]
            yield self._diagnosis(
                Kind.WRONG_TOOL,
                attempt.call.tool,
                step=attempt.step,
                call_id=attempt.call.id,
                expected=_shown_call(match.gold),
                found=f"{attempt.call.tool}{attempt.call.arguments}",
            )
            return
        yield self._diagnosis(Kind.MISSING_CALL, tool, expected=_shown_call(match.gold))

    def _badly_made(self, match: Match, attempt: Attempt) -> Diagnosis:
        """A gold call that was tried with other arguments."""
        contract = self.trace.template.contract[match.gold.tool]
        names = differing(contract, match.gold, attempt)
        argument = names[0] if names else None
        if attempt.error is not None:
            refused = attempt.error.kind == "refused" and attempt.error.argument is None
            return self._error(attempt, recovered=False, argument=argument if refused else None)
        given = attempt.arguments or {}
        return self._diagnosis(
            Kind.WRONG_ARGUMENT,
            match.gold.tool,
            argument,
            step=attempt.step,
            call_id=attempt.call.id,
            expected=_shown(match.gold.arguments.get(argument or "")),
            found=_shown(given.get(argument or "")),
        )

    def errors(self, attempts: Sequence[Attempt]) -> Iterator[Diagnosis]:
        """The step kinds: calls that did not go through."""
        for attempt in attempts:
            if attempt.error is not None:
                yield self._error(attempt, recovered=self._recovered(attempt))

    def _error(
        self, attempt: Attempt, *, recovered: bool, argument: str | None = None
    ) -> Diagnosis:
        error = attempt.error
        if error is None:
            raise ValueError("an attempt that went through has no error to diagnose")
        return self._diagnosis(
            Kind(error.kind),
            attempt.call.tool or None,
            error.argument or argument,
            step=attempt.step,
            code=error.code if error.kind == "refused" else None,
            masked=error.masked,
            call_id=attempt.call.id,
            expected=error.message,
            found=attempt.call.arguments if attempt.arguments is None else _shown(error.received),
            recovered=recovered,
        )

    def _recovered(self, attempt: Attempt) -> bool:
        """A later call of the same tool went through; for a call of no tool, any later call."""
        later = [a for a in self.attempts if a.succeeded and a.step > attempt.step]
        unknown = attempt.error is not None and attempt.error.kind == "unknown_tool"
        nameless = unknown or not attempt.call.tool
        return any(nameless or a.call.tool == attempt.call.tool for a in later)

    def recovery_failures(self) -> Iterator[Diagnosis]:
        """An error was shown, and the turn ended with no successful call of that tool."""
        reported: set[str] = set()
        for attempt in self.attempts:
            tool = attempt.call.tool
            if attempt.error and tool not in reported and not self._recovered(attempt):
                reported.add(tool)
                yield self._diagnosis(
                    Kind.RECOVERY_FAILURE,
                    tool or None,
                    code=attempt.error.code,
                    masked=attempt.error.masked,
                    expected=attempt.error.message,
                )

    def abstention(self) -> Iterator[Diagnosis]:
        """A turn in which the agent should ask or decline."""
        for attempt in self.attempts[:1]:
            yield self._diagnosis(
                Kind.SPURIOUS_CALL,
                attempt.call.tool or None,
                step=attempt.step,
                call_id=attempt.call.id,
                expected="no call",
                found=f"{attempt.call.tool}{attempt.call.arguments}",
            )

    def _outcome(self, matches: Sequence[Match]) -> Iterator[Diagnosis]:
        """All of gold's calls went through, and still the outcome differs."""
        trace = self.trace
        expected, found = trace.gold.turns[self.index].state, trace.played.turns[self.index].state
        differ = state_difference(expected, found)
        if differ:
            stood = [m.attempt for m in matches if m.attempt]
            extra = [a for a in self.attempts if a.succeeded and a not in stood]
            extra = [a for a in extra if trace.template.contract[a.call.tool].mutates] or extra
            yield self._diagnosis(
                Kind.STATE_MISMATCH,
                extra[0].call.tool if extra else matches[0].gold.tool,
                expected="; ".join(f"{key} = {_shown(expected.get(key))}" for key in differ),
                found="; ".join(f"{key} = {_shown(found.get(key))}" for key in differ),
            )
        for done in missing_outputs(trace.template, trace.gold, trace.played, self.index)[:1]:
            yield self._diagnosis(Kind.OUTPUT_MISSING, done.tool, expected=done.output[:200])

    def answer(self) -> Iterator[Diagnosis]:
        """The final text fails its check."""
        said = answer_of(self.turn)
        for text in missing_answers(self.trace.task, self.index, said)[:1]:
            yield self._diagnosis(Kind.ANSWER_MISMATCH, None, expected=text, found=said[:200])

    def failed_checks(self) -> Iterator[Diagnosis]:
        """The last turn of a task without gold, whose named checks do not hold."""
        if self.index == len(self.trace.task.turns) - 1:
            failed = [check for check in self.trace.rollout.score.checks if not check.passed]
            for check in failed[:1]:
                last = self.attempts[-1].call.tool if self.attempts else None
                yield self._diagnosis(Kind.STATE_MISMATCH, last, expected=check.name)


def _shown(value: object, length: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _shown_call(call: Any) -> str:  # noqa: ANN401 - a gold call
    return f"{call.tool}({', '.join(f'{k}={_shown(v, 60)}' for k, v in call.arguments.items())})"
