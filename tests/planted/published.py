"""The labelling rule of the published code, from its description, for the same rollouts.

One label a turn, in this order: gold calls nothing: `spurious_tool_call` if the policy made a call,
else `correct_abstention`; the policy made none: `empty_turn_model_response`; the states differ:
`state_mismatch`; an output of gold's turn is not among the policy's so far: `response_mismatch`;
else `pass`. Calls that were rejected before they ran (no JSON object, a tool that is not shown) are
struck out first. Labels come from a second replay in the worlds that verification has left, the
policy's and gold's, and verification stops at the first turn that fails. `instance_mismatch` and
`checker_error` cannot come about here; the code itself exists for BFCL alone.

It names neither tool nor argument. So its fault is right if the first turn that it labels a failure
is the turn of the fault, and the label is one that the rule can have for the kind at all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seal.envs.contract import Accepted, accept, parse_arguments
from seal.envs.environment import Environment
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import execute, gold_calls, visible_tools
from seal.types import Rollout, Task, ToolCall

PASSED = frozenset({"pass", "correct_abstention"})
EMPTY, SPURIOUS = "empty_turn_model_response", "spurious_tool_call"
STATE, RESPONSE = "state_mismatch", "response_mismatch"
ANY = frozenset({EMPTY, STATE, RESPONSE})
RIGHT: Mapping[str, frozenset[str]] = {
    "spurious_call": frozenset({SPURIOUS}),
    "no_call": frozenset({EMPTY}),
    "state_mismatch": frozenset({STATE, RESPONSE}),
    "output_missing": frozenset({RESPONSE}),
    # The paper means the final text by it; the code never sees that text.
    "answer_mismatch": frozenset({RESPONSE}),
}
"""What the rule may say of a kind of ours; of any other kind, whatever is a failure of calls."""


def published_labels(template: EnvironmentTemplate, task: Task, rollout: Rollout) -> list[str]:
    """The label of every turn."""
    made = [
        [
            call
            for step in turn.steps
            for call in step.calls
            if _decoded(call, visible_tools(template, task, task.turns[index].hidden))
        ]
        for index, turn in enumerate(rollout.turns)
    ]
    policy = _Side(template, task, template.new_world(task), made)
    gold = _Side(template, task, template.new_world(task), gold_calls(task))
    for index in range(len(made)):
        policy.play(index)
        gold.play(index)
        if task.turns[index].gold and _verdict(policy, gold) != "pass":
            break
    for side in (policy, gold):
        side.outputs.clear()
    labels = []
    for index, calls in enumerate(made):
        policy.play(index)
        gold.play(index)
        if not task.turns[index].gold:
            labels.append(SPURIOUS if calls else "correct_abstention")
        else:
            labels.append(_verdict(policy, gold) if calls else EMPTY)
    return labels


def _decoded(call: ToolCall, shown: Sequence[str]) -> bool:
    return call.tool in shown and parse_arguments(call.arguments or "{}") is not None


@dataclass
class _Side:
    """The calls of one side, and the world they are played in again and again."""

    template: EnvironmentTemplate
    task: Task
    world: Environment
    calls: Sequence[Sequence[ToolCall]]
    outputs: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

    def play(self, index: int) -> None:
        """Play one turn in the world as it is."""
        shown = visible_tools(self.template, self.task, self.task.turns[index].hidden)
        self.last = [self._output(call, shown) for call in self.calls[index]]
        self.outputs += self.last

    def _output(self, call: ToolCall, shown: Sequence[str]) -> str:
        accepted = accept(self.template.contract, call, shown)
        if not isinstance(accepted, Accepted):
            return accepted.message
        done = execute(self.template, self.world, accepted, call.id)
        return done.error.message if done.error else done.output


def _verdict(policy: _Side, gold: _Side) -> str:
    if policy.world.state() != gold.world.state():
        return STATE
    return RESPONSE if Counter(gold.last) - Counter(policy.outputs) else "pass"


def says_right(labels: Sequence[str], turn: int, kinds: frozenset[str]) -> bool:
    """Whether the first failure is at the turn of the fault, and of a sort that fits its kind."""
    first = next((k for k, label in enumerate(labels) if label not in PASSED), None)
    return first == turn and any(labels[turn] in RIGHT.get(kind, ANY) for kind in kinds)
