"""Policies that know the answer: gold itself, and the rollouts of an earlier run."""

import json
from collections.abc import Iterable

from seal.errors import ModelFailure
from seal.models.protocol import PolicyInput, Reply
from seal.types import Rollout, ToolCall, content_hash


class GoldPolicy:
    """Makes gold's calls of a turn in one step, and answers with the texts that it asks for."""

    name = "gold"
    version = "gold"

    def act(self, given: PolicyInput) -> Reply:
        """The gold calls of the turn, then its answer."""
        turn = given.task.turns[given.turn]
        if turn.gold and given.steps_taken == 0:
            calls = tuple(
                ToolCall(
                    id=f"{call_id(given)}-{i}",
                    tool=call.tool,
                    arguments=json.dumps(call.arguments, ensure_ascii=False),
                )
                for i, call in enumerate(turn.gold)
            )
            return Reply(calls=calls)
        return Reply(content=" ".join(turn.answer) or "Done.")


def call_id(given: PolicyInput) -> str:
    """The beginning of ids that no other step of the rollout has."""
    return f"call-{given.turn}-{given.steps_taken}"


class ReplayPolicy:
    """Says again what an earlier run's policy said."""

    def __init__(self, name: str, rollouts: Iterable[Rollout]) -> None:
        self.name = name
        self._rollouts = {rollout.id: rollout for rollout in rollouts}
        self.contracts = {rollout.contract for rollout in self._rollouts.values()}
        self.version = content_hash(
            [
                rollout.model_dump(exclude={"seconds"})
                for _, rollout in sorted(self._rollouts.items())
            ]
        )

    def act(self, given: PolicyInput) -> Reply:
        """The recorded step at this place; an empty answer where the record has ended.

        Raises:
            ModelFailure: The run has no rollout of this task and sample, or it broke here.
        """
        rollout = self._rollouts.get(f"{given.task.id}#{given.sample}")
        if rollout is None:
            raise ModelFailure(
                f"{self.name}: no rollout of task {given.task.id}, sample {given.sample}.\n"
                "Run the tasks that were recorded: the same environment, --split and -n."
            )
        turns = rollout.turns[given.turn : given.turn + 1]
        steps = turns[0].steps[given.steps_taken : given.steps_taken + 1] if turns else ()
        if steps:
            return Reply(content=steps[0].content, calls=steps[0].calls)
        if rollout.failure is not None:
            # An empty answer would be scored, and what broke would become a failure to act.
            raise ModelFailure(f"{self.name}: rollout {rollout.id} broke here: {rollout.failure}")
        return Reply()
