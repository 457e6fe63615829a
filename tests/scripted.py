"""A policy that says what a test wrote down: a fake at the model seam."""

import json
from collections.abc import Mapping, Sequence

from seal.models.protocol import PolicyInput, Reply
from seal.types import ToolCall, Usage

Step = Sequence[tuple[str, object]]
"""The calls of one agent message: a tool's name, and arguments as a mapping or as raw text."""


class Scripted:
    """Makes the written calls of each turn, a step at a time, then gives the turn's answer."""

    name = "scripted"
    version = "1"

    def __init__(self, *turns: Sequence[Step], answers: Mapping[int, str] | None = None) -> None:
        self.turns = turns
        self.answers = answers or {}

    def act(self, given: PolicyInput) -> Reply:
        steps = self.turns[given.turn] if given.turn < len(self.turns) else ()
        if given.steps_taken >= len(steps):
            return Reply(self.answers.get(given.turn, "Done."), usage=Usage(calls=1))
        calls = tuple(
            ToolCall(
                id=f"{given.turn}-{given.steps_taken}-{place}",
                tool=tool,
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            for place, (tool, arguments) in enumerate(steps[given.steps_taken])
        )
        return Reply(calls=calls, usage=Usage(calls=1))
