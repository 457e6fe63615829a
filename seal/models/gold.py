"""Policies that know the answer: gold itself, and the rollouts of an earlier run."""

import json
from collections.abc import Iterable

from seal.errors import ModelFailure
from seal.models.protocol import PolicyInput, Reply
from seal.types import Rollout, ToolCall, content_hash


class GoldPolicy:
    """Makes gold's calls, one a step, and answers with the texts that a turn asks for."""

    name = "gold"
    version = "gold"

    def act(self, given: PolicyInput) -> Reply:
        """The next gold call of the turn, or its answer."""
        turn = given.task.turns[given.turn]
        step = given.steps_taken
        if step < len(turn.gold or ()):
            call = (turn.gold or ())[step]
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            return Reply(calls=(ToolCall(id=call_id(given), tool=call.tool, arguments=arguments),))
        return Reply(content=" ".join(turn.answer) or "Done.")


def call_id(given: PolicyInput) -> str:
    """An id that no other call of the rollout has."""
    return f"call-{given.turn}-{given.steps_taken}"


class ReplayPolicy:
    """Says again what an earlier run's policy said."""

    def __init__(self, name: str, rollouts: Iterable[Rollout]) -> None:
        self.name = name
        self._rollouts = {rollout.id: rollout for rollout in rollouts}
        self.version = content_hash(
            [
                rollout.model_dump(exclude={"seconds"})
                for _, rollout in sorted(self._rollouts.items())
            ]
        )

    def act(self, given: PolicyInput) -> Reply:
        """The recorded step at this place; an empty answer where the record has ended.

        Raises:
            ModelFailure: The run has no rollout of this task and sample.
        """
        rollout = self._rollouts.get(f"{given.task.id}#{given.sample}")
        if rollout is None:
            raise ModelFailure(
                f"{self.name}: no rollout of task {given.task.id}, sample {given.sample}.\n"
                "Run the tasks that were recorded: the same environment, --split and -n."
            )
        turns = rollout.turns[given.turn : given.turn + 1]
        steps = turns[0].steps[given.steps_taken : given.steps_taken + 1] if turns else ()
        return Reply(content=steps[0].content, calls=steps[0].calls) if steps else Reply()
