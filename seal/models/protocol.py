"""What a policy gets, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from seal.types import RenderedTool, Sampling, Slip, Task, ToolCall, ToolContract, Usage


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a dialogue."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """The assistant's calls."""
    call_id: str | None = None
    """The call that a tool message answers."""
    failed: bool = False
    """The call did not go through; a model reads that from the content, as it would anywhere."""


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """Everything at the moment a policy must act.

    A model policy reads `messages` and `tools`, nothing else. `task` and `contracts` are for the
    policies that know the answer: gold, replays and the simulated reader.
    """

    messages: tuple[Message, ...]
    tools: tuple[RenderedTool, ...]
    """The tools visible in this turn, as rendered."""
    task: Task
    turn: int
    contracts: Mapping[str, ToolContract]
    sample: int
    seed: int
    sampling: Sampling

    def turn_messages(self) -> tuple[Message, ...]:
        """The messages of the current turn, its user message first."""
        last = max(i for i, message in enumerate(self.messages) if message.role == "user")
        return self.messages[last:]

    @property
    def steps_taken(self) -> int:
        """Agent messages in the current turn so far."""
        return sum(message.role == "assistant" for message in self.turn_messages())


@dataclass(frozen=True, slots=True)
class Reply:
    """One agent message: text and calls; a turn ends with a message that has no calls."""

    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    slips: tuple[Slip, ...] = ()
    """What a simulated policy did wrong on purpose."""


class Policy(Protocol):
    """What acts. `act` may be called from several threads, for different rollouts.

    Raises:
        ModelFailure: The model could not be called; the rollout is then unscored.
    """

    name: str
    version: str
    """Changes whenever the same input could get another answer (a new adapter, say)."""

    def act(self, given: PolicyInput) -> Reply:
        """The next agent message."""
        ...


@runtime_checkable
class PacedPolicy(Policy, Protocol):
    """A policy that works on many rollouts at once, each at its own pace.

    A rollout goes by `TASK#SAMPLE`, in what `replies` brings and in what `release` takes.
    """

    rows: int
    """Rollouts that it can hold at once."""

    def submit(self, given: PolicyInput) -> None:
        """Ask for the next agent message of a rollout."""
        ...

    def replies(self) -> list[tuple[str, Reply]]:
        """Work until one of the messages that were asked for is there; those that are."""
        ...

    def release(self, key: str) -> None:
        """Forget a rollout that is over."""
        ...
