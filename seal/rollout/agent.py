"""One policy on one task: the dialogue, turn by turn and step by step."""

import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace

from seal.envs.contract import accept
from seal.envs.environment import Environment
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import (
    Executed,
    GoldReplays,
    Played,
    PlayedTurn,
    answer_of,
    environment_hash,
    execute,
    finish_turn,
    run_checks,
    verify,
    visible_tools,
)
from seal.errors import EnvironmentFailure, ModelFailure
from seal.models.budget import BudgetReached
from seal.models.protocol import Message, Policy, PolicyInput, Reply
from seal.types import (
    CallError,
    Candidate,
    Rollout,
    Sampling,
    Score,
    Slip,
    Step,
    Task,
    ToolCall,
    ToolResult,
    Turn,
    TurnStop,
    Usage,
    content_hash,
)


class Arena:
    """An environment with the words in force: all that its rollouts share."""

    def __init__(
        self,
        template: EnvironmentTemplate,
        candidate: Candidate | None = None,
        *,
        gold: GoldReplays | None = None,
        contract_hash: str | None = None,
        strict_abstention: bool = False,
    ) -> None:
        self.template = template
        self.candidate = candidate or template.original
        self.prompt = template.renderer.prompt(self.candidate)
        self.tools = template.renderer.tools(self.candidate)
        self.contracts = {n: tool.contract for n, tool in template.contract.tools.items()}
        self.gold = gold or GoldReplays(template)
        self.strict_abstention = strict_abstention
        """Whether any call fails a turn in which gold makes none."""
        self.contract_hash = contract_hash or environment_hash(template)

    @property
    def words_hash(self) -> str:
        """A hash of all that a policy could read under these words, and of the limits."""
        return content_hash(
            [
                self.prompt,
                [tool.model_dump() for tool in self.tools.values()],
                self.template.renderer.sources(),
                self.template.limits.model_dump(),
            ]
        )

    def under(self, candidate: Candidate) -> "Arena":
        """The same environment with other words in force."""
        return Arena(
            self.template,
            candidate,
            gold=self.gold,
            contract_hash=self.contract_hash,
            strict_abstention=self.strict_abstention,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rollout, and what its calls did to the world (None if something of ours broke)."""

    rollout: Rollout
    played: Played | None


@dataclass(slots=True)
class _Dialogue:
    """What grows while a policy works on a task."""

    arena: Arena
    task: Task
    messages: list[Message]
    turns: list[Turn] = field(default_factory=list)
    played: list[PlayedTurn] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


Moves = Generator[PolicyInput, Reply, Outcome]
"""A rollout that asks for replies, so that any driver can give them; in the end, its outcome."""


def roll_out(
    arena: Arena, task: Task, policy: Policy, *, sample: int, seed: int, sampling: Sampling
) -> Outcome:
    """The record of one policy on one task.

    A failure of the environment or of the model is recorded with the turns so far, and leaves the
    rollout unscored; it is never a score of zero.

    Raises:
        BudgetReached: The money is spent; there is no rollout then.
    """
    moves = begin(arena, task, policy, sample=sample, seed=seed, sampling=sampling)
    try:
        given = next(moves)
        while True:
            try:
                reply = policy.act(given)
            except ModelFailure as failure:
                given = moves.throw(failure)
            else:
                given = moves.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def begin(
    arena: Arena, task: Task, policy: Policy, *, sample: int, seed: int, sampling: Sampling
) -> Moves:
    """A rollout that waits for its first reply; `roll_out` says what it records."""
    started = time.perf_counter()
    dialogue = _Dialogue(arena, task, [Message("system", arena.prompt)])
    played: Played | None = None
    failure: str | None = None
    score = Score(reward=None)
    try:
        gold = arena.gold.of(task)
        checks = yield from _play(dialogue, sample, seed, sampling)
        played = Played(tuple(dialogue.played), checks)
        answers = [answer_of(turn) for turn in dialogue.turns]
        score = verify(
            arena.template,
            task,
            gold,
            played,
            answers,
            strict_abstention=arena.strict_abstention,
        )
    except BudgetReached:
        raise
    except (EnvironmentFailure, ModelFailure) as cause:
        failure = _whole(f"{type(cause).__name__}: {cause}")
    rollout = Rollout(
        task=task.id,
        scenario=task.scenario,
        group=task.group,
        sample=sample,
        environment=arena.template.name,
        contract=arena.contract_hash,
        candidate=arena.candidate.id,
        policy=policy.name,
        policy_version=policy.version,
        seed=seed,
        sampling=sampling,
        turns=tuple(dialogue.turns),
        score=score,
        failure=failure,
        slips=tuple(dialogue.slips),
        usage=dialogue.usage,
        seconds=round(time.perf_counter() - started, 6),
    )
    return Outcome(rollout, played)


def _play(
    dialogue: _Dialogue, sample: int, seed: int, sampling: Sampling
) -> Generator[PolicyInput, Reply, dict[str, bool]]:
    """The dialogue, turn by turn; the named checks at its end."""
    arena, task = dialogue.arena, dialogue.task
    world = arena.template.new_world(task)
    for index, user_turn in enumerate(task.turns):
        shown = visible_tools(arena.template, task, user_turn.hidden)
        dialogue.messages.append(Message("user", user_turn.user))
        given = PolicyInput(
            messages=(),
            tools=tuple(arena.tools[name] for name in shown),
            task=task,
            turn=index,
            contracts=arena.contracts,
            sample=sample,
            seed=seed,
            sampling=sampling,
        )
        executed: list[Executed] = []
        steps: list[Step] = []
        stop: TurnStop | None = None
        while stop is None:
            reply = _storable((yield replace(given, messages=tuple(dialogue.messages))))
            dialogue.usage += reply.usage
            dialogue.slips += reply.slips
            dialogue.messages.append(Message("assistant", reply.content, reply.calls))
            results = []
            for call in reply.calls:
                done = answer_call(arena, shown, call, executed, world)
                results.append(done)
                dialogue.messages.append(
                    Message("tool", done.content, call_id=call.id, failed=done.error is not None)
                )
            steps.append(Step(content=reply.content, calls=reply.calls, results=tuple(results)))
            stop = _stop(arena, reply, len(steps))
        dialogue.turns.append(Turn(user=user_turn.user, steps=tuple(steps), stop=stop))
        dialogue.played.append(finish_turn(world, executed))
    return run_checks(arena.template, task, world)


def _storable(reply: Reply) -> Reply:
    """A reply in texts that a record can hold, whatever a model came up with."""
    calls = tuple(
        ToolCall(id=_whole(call.id), tool=_whole(call.tool), arguments=_whole(call.arguments))
        for call in reply.calls
    )
    return replace(reply, content=_whole(reply.content), calls=calls)


def _whole(text: str) -> str:
    """A text with a question mark for every half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _stop(arena: Arena, reply: Reply, steps: int) -> TurnStop | None:
    """Why a turn is over, None while it goes on."""
    limits = arena.template.limits
    if not reply.calls:
        return "answered"
    if any(len(call.arguments) > limits.call_chars for call in reply.calls):
        return "call_limit"
    return "step_limit" if steps >= limits.steps else None


def answer_call(
    arena: Arena,
    shown: tuple[str, ...],
    call: ToolCall,
    executed: list[Executed],
    world: Environment,
) -> ToolResult:
    """One call: checked, run, and answered in the words in force.

    Args:
        arena: The environment and the words.
        shown: The tools that the turn shows.
        call: The call.
        executed: Calls of the turn that reached their tools; this one is added if it does.
        world: The world that it changes.

    Raises:
        EnvironmentFailure: The tool raised something that is no `ToolError`.
    """
    limit = arena.template.limits.call_chars
    if len(call.arguments) > limit:
        said = f"The call is longer than {limit} characters."
        return _refuse(arena, call, CallError(kind="malformed_call", code="too_long", message=said))
    accepted = accept(arena.template.contract, call, shown)
    if isinstance(accepted, CallError):
        return _refuse(arena, call, accepted)
    done = execute(arena.template, world, accepted, call.id)
    executed.append(done)
    if done.error is not None:
        return _refuse(arena, call, done.error)
    content = done.output if len(done.output) <= limit else f"{done.output[:limit]}…"
    return ToolResult(call_id=call.id, content=content)


def _refuse(arena: Arena, call: ToolCall, error: CallError) -> ToolResult:
    content, slot = arena.template.renderer.recovery(call.tool, error, arena.candidate)
    return ToolResult(call_id=call.id, content=content, error=error, slot=slot)
