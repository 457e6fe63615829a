"""Every record that crosses a file or a process: frozen, strict, JSON.

Sequences are tuples. `None` always means "not known" or "not there", never zero.
"""

import hashlib
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Scalar = str | int | float | bool
Arguments = dict[str, JsonValue]
RecoveryKind = Literal[
    "argument_missing",
    "argument_unexpected",
    "argument_type",
    "argument_value",
    "refused",
    "malformed_call",
    "unknown_tool",
]
SlotKind = Literal["guidance", "affordance", "constraint", "recovery"]
Split = Literal["train", "gate", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "gate", "validation", "test")


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def content_hash(value: object, length: int = 12) -> str:
    """The first hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


class Record(BaseModel):
    """A frozen record that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Rule(Record):
    """What a tool or an argument demands; the policy sees it only if words say it."""

    allowed: tuple[Scalar, ...] | dict[str, Scalar] | None = None
    """The accepted values; a mapping says what each one stands for (`{"blue": "R7"}`)."""
    format: str | None = None
    """How a value is written, by example: `"MO" for Monday`."""
    unit: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    requires: str | None = None
    """A tool that must have succeeded before."""

    def stated(self) -> dict[str, Any]:
        """The keys this rule says something about."""
        return {key: value for key, value in self if value is not None}


class ToolContract(Record):
    """What never changes about a tool: its name, schema without prose, rules, and effect."""

    name: str
    parameters: dict[str, JsonValue]
    """JSON schema of the arguments, with no descriptions in it."""
    rule: Rule = Rule()
    rules: dict[str, Rule] = {}
    """The declared rule of each argument that has one."""
    mutates: bool = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments, in the author's order."""
        properties = self.parameters.get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the arguments that every call must give."""
        required = self.parameters.get("required")
        return tuple(str(name) for name in required) if isinstance(required, list) else ()


class GoldCall(Record):
    """One call of the reference solution."""

    tool: str
    arguments: Arguments = {}
    as_said: Arguments = {}
    """The form in which the user said an argument, where it differs from what the tool takes."""


class UserTurn(Record):
    """One user message, and what a perfect agent does about it."""

    user: str
    gold: tuple[GoldCall, ...] | None = None
    """The reference calls; empty: the agent should ask or decline; None: checks alone decide."""
    answer: tuple[str, ...] = ()
    """Texts that the agent's answer to this turn must contain, in any case."""
    hidden: tuple[str, ...] = ()
    """Tools that are neither visible nor callable in this turn."""


class Task(Record):
    """Pure data: what the user wants, where the world starts, and how success is known."""

    id: str = ""
    """Unique in its environment; a generator leaves it to SEAL, and `tasks.jsonl` must have it."""
    scenario: str = ""
    """The situation this task is a view of; splits, pairs and intervals go by it. As `id`."""
    group: str = "all"
    """Difficulty level or benchmark category."""
    turns: Annotated[tuple[UserTurn, ...], Field(min_length=1)]
    state: dict[str, JsonValue] = {}
    tools: tuple[str, ...] | None = None
    """The tools of this task; None: all of the environment's."""
    checks: tuple[str, ...] = ()
    """Names of the environment's checks that must hold at the end."""
    split: Split | None = None


class Limits(Record):
    """What one turn and one call may cost before it is the policy's fault."""

    steps: int = Field(default=10, strict=True, ge=1)
    """Agent messages per turn, the answer included."""
    call_chars: int = Field(default=20_000, strict=True, ge=100)
    """Characters of one call's arguments, and of one result shown."""
    call_seconds: float = Field(default=20.0, strict=True, gt=0)
    """Seconds that one call may run."""


class Slot(Record):
    """One evolvable text of an environment."""

    id: str
    kind: SlotKind
    tool: str | None = None
    argument: str | None = None
    recovery: RecoveryKind | None = None
    max_chars: int


class Candidate(Record):
    """Slot id -> text. It holds nothing else, so it cannot say more."""

    texts: dict[str, str]
    parent: str | None = None

    @property
    def id(self) -> str:
        """A hash of the texts: equal words are one candidate."""
        return content_hash(self.texts)

    def with_texts(self, changes: dict[str, str]) -> "Candidate":
        """A child of this candidate in which some slots say something else."""
        return Candidate(texts={**self.texts, **changes}, parent=self.id)


class RenderedTool(Record):
    """A tool as the policy reads it: contract and words together."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON schema with the rendered descriptions in it."""

    def words(self) -> str:
        """Every text of this tool that the policy reads."""
        return "\n".join([self.description, *_descriptions(self.parameters)])


def _descriptions(schema: JsonValue) -> Iterator[str]:
    """The description of every argument in a schema, nested ones after the one they are in."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for inner in properties.values() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield str(inner.get("description", ""))
            yield from _descriptions(inner)
            yield from _descriptions(inner.get("items"))


class ToolCall(Record):
    """A call as the policy wrote it; malformed calls are evidence, so nothing is repaired."""

    id: str
    tool: str
    """Empty if no name could be read."""
    arguments: str
    """The raw text, JSON if the policy got it right."""


class CallError(Record):
    """Why a call did not go through."""

    kind: RecoveryKind
    code: str
    message: str
    argument: str | None = None
    received: JsonValue = None
    rule: Rule = Rule()
    masked: str = ""
    """The message with its values masked, as `Recipient '…' not found`; empty: not known."""


class ToolResult(Record):
    """What the environment answered to one call, in the order of the calls."""

    call_id: str
    content: str
    error: CallError | None = None
    slot: str | None = None
    """The recovery slot whose text is in `content`."""


class Step(Record):
    """One agent message, its calls and their results."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


TurnStop = Literal["answered", "step_limit", "call_limit"]


class Turn(Record):
    """One user message and everything up to the agent's answer to it."""

    user: str
    steps: tuple[Step, ...]
    stop: TurnStop


class CheckResult(Record):
    """One check behind a score, with what to fix."""

    name: str
    passed: bool
    expected: str = ""
    found: str = ""


class Score(Record):
    """The verifier's word: a reward, or None if it could not be given."""

    reward: Annotated[float, Field(ge=0, le=1)] | None
    checks: tuple[CheckResult, ...] = ()


class Sampling(Record):
    """How a policy draws its tokens."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=1024, ge=1)


class Slip(Record):
    """An error that a simulated policy made on purpose; diagnosis never sees it."""

    turn: int
    kind: str
    tool: str | None = None
    argument: str | None = None


class Usage(Record):
    """What a rollout cost at the model."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            dollars=self.dollars + other.dollars,
        )


class Rollout(Record):
    """One policy on one task under one candidate."""

    task: str
    scenario: str
    group: str
    sample: int = 0
    environment: str
    contract: str
    candidate: str
    policy: str
    policy_version: str
    seed: int
    sampling: Sampling
    turns: tuple[Turn, ...]
    score: Score
    failure: str | None = None
    """What of ours or the environment's broke; the rollout is then unscored."""
    slips: tuple[Slip, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0

    @property
    def id(self) -> str:
        """Task and sample: unique within a run."""
        return f"{self.task}#{self.sample}"

    @property
    def reward(self) -> float | None:
        """The reward, None if unscored."""
        return self.score.reward


class Kind(StrEnum):
    """What a diagnosis can say; docs/design.md has the table of how each is decided."""

    MALFORMED_CALL = "malformed_call"
    UNKNOWN_TOOL = "unknown_tool"
    ARGUMENT_MISSING = "argument_missing"
    ARGUMENT_UNEXPECTED = "argument_unexpected"
    ARGUMENT_TYPE = "argument_type"
    ARGUMENT_VALUE = "argument_value"
    REFUSED = "refused"
    WRONG_ARGUMENT = "wrong_argument"
    WRONG_TOOL = "wrong_tool"
    MISSING_CALL = "missing_call"
    NO_CALL = "no_call"
    SPURIOUS_CALL = "spurious_call"
    STATE_MISMATCH = "state_mismatch"
    OUTPUT_MISSING = "output_missing"
    ANSWER_MISMATCH = "answer_mismatch"
    RECOVERY_FAILURE = "recovery_failure"
    LIMIT_REACHED = "limit_reached"
    CASCADE = "cascade"
    PASS = "pass"
    CORRECT_ABSTENTION = "correct_abstention"
    UNSCORABLE = "unscorable"

    @property
    def blames(self) -> bool:
        """Whether this kind says that the policy did something wrong."""
        return self not in {Kind.CASCADE, Kind.PASS, Kind.CORRECT_ABSTENTION, Kind.UNSCORABLE}


GOLD_SUSPECT = "gold_suspect"
"""The code of an unscorable rollout whose gold is in doubt."""


class Diagnosis(Record):
    """What went wrong (or right) at one place of one rollout, with its evidence."""

    turn: int
    step: int | None = None
    """None: the turn as a whole."""
    kind: Kind
    tool: str | None = None
    argument: str | None = None
    slot: str | None = None
    """The slot that could have prevented it."""
    code: str | None = None
    """The refusal's code; `gold_suspect` where nothing can be said since gold is in doubt."""
    masked: str = ""
    """What the refusal said, its values masked; empty: not known."""
    call_id: str | None = None
    expected: str = ""
    found: str = ""
    recovered: bool = False
    """The policy corrected itself within the turn."""
    deviates: bool = False
    """The turn's outcome differs from gold's or fails its checks."""


class DiagnosedRollout(Record):
    """All diagnoses of one rollout, and which of them is the fault."""

    rollout: str
    task: str
    scenario: str
    candidate: str
    reward: float | None
    diagnoses: tuple[Diagnosis, ...]
    fault: Diagnosis | None = None

    @property
    def suspect(self) -> str:
        """Why gold is in doubt; empty if it is not. The rollout is then in no count."""
        doubts = (d for d in self.diagnoses if d.kind is Kind.UNSCORABLE and d.code == GOLD_SUSPECT)
        return next((d.found for d in doubts), "")
