"""Replays in fresh worlds, and the verifier that compares a policy's with gold's."""

import json
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import JsonValue, ValidationError

from seal.envs.contract import Accepted, accept, contract_hash
from seal.envs.environment import Environment
from seal.envs.misfits import author_code, misfits
from seal.envs.refusal import call_error
from seal.envs.template import EnvironmentTemplate
from seal.envs.time_limit import TookTooLong, within
from seal.errors import EnvironmentFailure, ToolError, blame, did_you_mean
from seal.types import CallError, CheckResult, Score, Task, ToolCall, Turn, content_hash


@dataclass(frozen=True, slots=True)
class Executed:
    """One call that reached its tool, and what came of it."""

    call_id: str
    tool: str
    arguments: dict[str, JsonValue]
    output: str
    """The result as text; empty if the tool refused."""
    error: CallError | None = None


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """What one turn's calls did."""

    executed: tuple[Executed, ...]
    state: dict[str, JsonValue]
    """The public state after the turn."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a sequence of turns did to a fresh world."""

    turns: tuple[PlayedTurn, ...]
    checks: dict[str, bool] = field(default_factory=dict)
    """The environment's named checks on the final world."""


def execute(
    template: EnvironmentTemplate, world: Environment, accepted: Accepted, call_id: str
) -> Executed:
    """Run one accepted call; a refusal is part of the answer.

    Raises:
        EnvironmentFailure: The tool raised something that is no `ToolError`.
    """
    seconds = template.limits.call_seconds

    def answer() -> str:
        try:
            return result_text(world.call(accepted.tool, accepted.arguments))
        except BaseException:
            # Raised once more inside, since to enter it first would slow every call down.
            where = f"{template.name}: tool {accepted.tool}"
            with author_code(EnvironmentFailure, where, speech=True):
                raise

    try:
        output = within(answer, wait=seconds, work=math.inf)
    except TookTooLong:
        said = f"The call was ended after {seconds:g} seconds."
        error = CallError(kind="refused", code="time_limit", message=said)
        return Executed(call_id, accepted.tool, accepted.given, "", error)
    except ToolError as refusal:
        with blame(EnvironmentFailure, f"{template.name}: a refusal of {accepted.tool}"):
            error = call_error(template, accepted, refusal)
            error.model_dump_json()  # What no record could hold is found out here.
        return Executed(call_id, accepted.tool, accepted.given, "", error)
    return Executed(call_id, accepted.tool, accepted.given, output)


def result_text(output: object) -> str:
    """A tool's result as the policy reads it: text as it is, anything else as JSON.

    Raises:
        TypeError, ValueError: No JSON can be made of it, or no record could hold it.
    """
    text = output
    if not isinstance(text, str):
        text = json.dumps(output, ensure_ascii=False, default=str)
    if not text.isascii():
        text.encode()
    return text


def finish_turn(world: Environment, executed: Sequence[Executed]) -> PlayedTurn:
    """A turn's calls with the state they left.

    Raises:
        EnvironmentFailure: The world cannot say its state.
    """
    return PlayedTurn(tuple(executed), state_of(world))


def state_of(world: Environment) -> dict[str, JsonValue]:
    """A world's public state.

    Raises:
        EnvironmentFailure: The world cannot say it.
    """
    try:
        return within(world.state)
    except BaseException:
        with author_code(EnvironmentFailure, f"{type(world).__name__}: state"):
            raise


def run_checks(template: EnvironmentTemplate, task: Task, world: Environment) -> dict[str, bool]:
    """The task's named checks on a world.

    Raises:
        EnvironmentFailure: A check is not there, or raised something.
    """
    with author_code(EnvironmentFailure, f"{template.name}: checks of task {task.id}"):
        known = world.final_checks() if task.checks else {}
        return {name: bool(within(known[name])) for name in task.checks}


def replay(
    template: EnvironmentTemplate, task: Task, turns: Sequence[Sequence[ToolCall]]
) -> Played:
    """Play calls again in a fresh world, turn by turn, with what was visible then."""
    world = template.new_world(task)
    played = play(template, task, world, turns)
    return Played(tuple(played), run_checks(template, task, world))


def play(
    template: EnvironmentTemplate,
    task: Task,
    world: Environment,
    turns: Sequence[Sequence[ToolCall]],
) -> list[PlayedTurn]:
    """Make calls in a world, turn by turn; those that break the contract do nothing."""
    played = []
    for turn, calls in zip(task.turns, turns, strict=False):
        shown = visible_tools(template, task, turn.hidden)
        accepted = [
            (c.id, a)
            for c in calls
            if isinstance(a := accept(template.contract, c, shown), Accepted)
        ]
        played.append(
            finish_turn(world, [execute(template, world, a, call_id) for call_id, a in accepted])
        )
    return played


def visible_tools(
    template: EnvironmentTemplate, task: Task, hidden: Sequence[str]
) -> tuple[str, ...]:
    """The tools of a task that one of its turns shows."""
    names = task.tools if task.tools is not None else tuple(template.contract.tools)
    return tuple(name for name in names if name not in hidden) if hidden else names


class GoldReplays:
    """What gold does, per task; replayed once and kept for the most recent tasks."""

    def __init__(self, template: EnvironmentTemplate, keep: int = 2000) -> None:
        self._template = template
        self._keep = keep
        self._played: OrderedDict[str, Played] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, task: Task) -> Played:
        """Gold's replay.

        Raises:
            EnvironmentFailure: A gold call does not go through: the task is broken.
        """
        with self._lock:
            if task.id in self._played:
                self._played.move_to_end(task.id)
                return self._played[task.id]
        played = self._replay(task)
        with self._lock:
            self._played[task.id] = played
            if len(self._played) > self._keep:
                self._played.popitem(last=False)
        return played

    def _replay(self, task: Task) -> Played:
        calls = gold_calls(task)
        played = replay(self._template, task, calls)
        for index, (made, turn) in enumerate(zip(calls, played.turns, strict=True)):
            if reason := self._fault(task, index, made, turn):
                raise EnvironmentFailure(
                    f"{self._template.name}: task {task.id}, turn {index}: "
                    f"a gold call fails: {reason}\n"
                    f"Show it with: seal show {self._template.name} --task {task.id}"
                )
        return played

    def _fault(self, task: Task, index: int, made: list[ToolCall], turn: PlayedTurn) -> str:
        """What the first call that fails does wrong, empty if none does."""
        executed = {done.call_id: done for done in turn.executed}
        for number, call in enumerate(made):
            done = executed.get(call.id)
            if done is None:
                hidden = task.turns[index].hidden
                return f"call {number}, {call.tool}: {_break(self._template, task, hidden, call)}"
            if done.error:
                return f"call {number}, {call.tool}: {done.error.message}"
        return ""


def _break(template: EnvironmentTemplate, task: Task, hidden: Sequence[str], call: ToolCall) -> str:
    """Why a call does not even reach its tool."""
    if call.tool not in template.contract.tools:
        known = template.contract.tools
        return f"there is no such tool.{did_you_mean(call.tool, known)}"
    if call.tool not in visible_tools(template, task, hidden):
        where = "hidden in this turn" if call.tool in hidden else "not among the task's tools"
        return f"the tool is {where}."
    validator = template.contract.tools[call.tool].validator
    try:
        validator.model_validate_json(call.arguments, strict=True)
    except ValidationError as cause:
        return f"it breaks its contract: {'; '.join(misfits(cause, validator))}"
    return "it breaks its contract."


def gold_calls(task: Task) -> list[list[ToolCall]]:
    """Gold as calls that a policy could have written, turn by turn."""
    return [
        [
            ToolCall(
                id=f"gold-{index}-{place}",
                tool=call.tool,
                arguments=json.dumps(call.arguments, ensure_ascii=False),
            )
            for place, call in enumerate(turn.gold or ())
        ]
        for index, turn in enumerate(task.turns)
    ]


def missing_outputs(
    template: EnvironmentTemplate, gold: Played, played: Played, turn: int
) -> list[Executed]:
    """Gold's calls of a turn whose outputs the policy needed and had not obtained by then.

    Where all outputs count they count as often as gold has them, as in BFCL's checker.
    """
    made = [done.output for done in played.turns[turn].executed if not done.error]
    if made == [done.output for done in gold.turns[turn].executed]:
        return []
    had = Counter(
        done.output for one in played.turns[: turn + 1] for done in one.executed if not done.error
    )
    if template.world.verify_outputs == "reads":
        reads = [d for d in gold.turns[turn].executed if not template.contract[d.tool].mutates]
        return [done for done in reads if not had[done.output]]
    missing = []
    for done in gold.turns[turn].executed:
        had[done.output] -= 1
        if had[done.output] < 0:
            missing.append(done)
    return missing


def idle(template: EnvironmentTemplate, gold: Played, played: Played, turn: int) -> bool:
    """Whether a turn without any call fails for that alone, whatever was done before.

    So it is where the state must be right after every turn: BFCL's checker has this rule.
    """
    every_turn = template.world.verify_state == "every_turn"
    return every_turn and bool(gold.turns[turn].executed) and not played.turns[turn].executed


def answer_of(turn: Turn) -> str:
    """The agent's last message of a turn."""
    return turn.steps[-1].content if turn.steps else ""


def missing_answers(task: Task, turn: int, answer: str) -> list[str]:
    """The texts that the answer of a turn should contain and does not."""
    if not task.turns[turn].answer:
        return []
    said = answer.casefold()
    return [text for text in task.turns[turn].answer if text.casefold() not in said]


def verify(
    template: EnvironmentTemplate,
    task: Task,
    gold: Played,
    played: Played,
    answers: Sequence[str],
    *,
    strict_abstention: bool = False,
) -> Score:
    """The default verifier: gold's state and needed outputs, the answers, the named checks.

    Any path to the same end passes. The reward is 1 if every check holds, else 0. With
    `strict_abstention` a call, harmless or not, fails a turn in which gold makes none.
    """
    checks = [CheckResult(name=name, passed=held) for name, held in played.checks.items()]
    final = template.world.verify_state == "final"
    last = len(task.turns) - 1
    for index, turn in enumerate(task.turns):
        if len(played.turns) <= index:
            checks.append(CheckResult(name=f"turn {index}", passed=False, found="never reached"))
            continue
        answer = answers[index] if index < len(answers) else ""
        for text in missing_answers(task, index, answer):
            checks.append(
                CheckResult(name=f"turn {index} answer", passed=False, expected=text, found=answer)
            )
        if turn.gold is None:
            continue
        if strict_abstention and not turn.gold and played.turns[index].executed:
            tools = ", ".join(done.tool for done in played.turns[index].executed)
            name = f"turn {index} abstention"
            checks.append(CheckResult(name=name, passed=False, expected="no call", found=tools))
        if idle(template, gold, played, index):
            checks.append(
                CheckResult(
                    name=f"turn {index}",
                    passed=False,
                    expected="a call that reaches its tool",
                    found="none",
                )
            )
        if index == last if final else turn.gold:
            checks.append(_state_check(index, gold.turns[index].state, played.turns[index].state))
        for done in missing_outputs(template, gold, played, index):
            checks.append(
                CheckResult(
                    name=f"turn {index} output of {done.tool}",
                    passed=False,
                    expected=done.output,
                    found="not obtained",
                )
            )
    return Score(reward=float(all(check.passed for check in checks)), checks=tuple(checks))


def _state_check(
    turn: int, expected: dict[str, JsonValue], found: dict[str, JsonValue]
) -> CheckResult:
    differ = state_difference(expected, found)
    name = f"turn {turn} state"
    if not differ:
        return CheckResult(name=name, passed=True)
    return CheckResult(
        name=name,
        passed=False,
        expected="; ".join(f"{key} = {_short(expected.get(key))}" for key in differ),
        found="; ".join(f"{key} = {_short(found.get(key))}" for key in differ),
    )


def state_difference(expected: dict[str, JsonValue], found: dict[str, JsonValue]) -> list[str]:
    """The names of the state's parts that differ."""
    if expected == found:
        return []
    return sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))


def _short(value: object, length: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= length else f"{text[: length - 1]}…"


@lru_cache(maxsize=16)
def environment_hash(template: EnvironmentTemplate) -> str:
    """The contract hash: tools, rules, tasks, verifier code, and the outputs of gold replays."""
    gold = GoldReplays(template, keep=0)
    outputs: list[object] = []
    for task in template.tasks(None):
        try:
            played = gold.of(task)
        except EnvironmentFailure as failure:
            outputs.append([task.id, str(failure)])
            continue
        outputs.append([task.id, [[d.output for d in turn.executed] for turn in played.turns]])
    return contract_hash({**template.contract_parts, "gold": content_hash(outputs)})
