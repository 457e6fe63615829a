"""Gold as a script that can be spoilt, and what is seen when a script is played for real."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, Played
from seal.rollout.agent import Arena, roll_out
from seal.types import CallError, Rollout, Sampling, Task
from tests.scripted import Scripted

Call = tuple[str, dict[str, Any] | str]
"""A tool's name, and its arguments or the raw text in their place."""
Steps = list[list[Call]]


@dataclass(frozen=True)
class Script:
    """What a policy does on a task: the steps and the answer of every turn."""

    task: Task
    turns: tuple[Steps, ...]
    answers: tuple[str, ...]

    def with_turn(self, index: int, steps: Steps, answer: str | None = None) -> "Script":
        """The script with another turn."""
        turns, answers = list(self.turns), list(self.answers)
        turns[index] = steps
        if answer is not None:
            answers[index] = answer
        return replace(self, turns=tuple(turns), answers=tuple(answers))


@dataclass(frozen=True)
class Place:
    """A turn of a task, and what there is to spoil it with."""

    stage: "Stage"
    task: Task
    index: int
    calls: tuple[Call, ...]
    """Gold's calls."""

    @property
    def tools(self) -> list[str]:
        """The tools that the turn shows, in the order of the contract."""
        hidden = self.task.turns[self.index].hidden
        names = self.task.tools or tuple(self.stage.template.contract.tools)
        return [name for name in names if name not in hidden]

    @property
    def elsewhere(self) -> list[Call]:
        """Gold's calls of the other turns whose tools are shown here."""
        turns = [turn for k, turn in enumerate(self.task.turns) if k != self.index]
        calls = [(one.tool, dict(one.arguments)) for turn in turns for one in turn.gold or ()]
        return [call for call in calls if call[0] in self.tools]

    def schema(self, tool: str, argument: str) -> dict[str, Any]:
        """The schema of one argument."""
        found: Any = self.stage.template.contract[tool].parameters["properties"]
        return dict(found[argument])

    def laid_out(self, calls: Iterable[Call], rng: random.Random, *, apart: bool = False) -> Steps:
        """Calls as steps: one each, or all at once, as the limit and chance have it."""
        made = list(calls)
        fits = len(made) < self.stage.template.limits.steps
        return [[call] for call in made] if fits and (apart or rng.random() < 0.5) else [made]


@dataclass
class Stage:
    """An environment to play scripts in."""

    template: EnvironmentTemplate
    values: dict[tuple[str, str], list[Any]] = field(default_factory=lambda: defaultdict(list))
    """The values that gold gives each argument of each tool, over all tasks."""
    reads: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.arena = Arena(self.template, contract_hash="planted")
        for task in self.template.tasks(None):
            for turn in task.turns:
                for call in turn.gold or ():
                    self._learn(call.tool, call.arguments)

    def _learn(self, tool: str, arguments: Mapping[str, Any]) -> None:
        for name, value in arguments.items():
            if value not in self.values[tool, name]:
                self.values[tool, name].append(value)
        if not self.template.contract[tool].mutates and arguments not in self.reads[tool]:
            self.reads[tool].append(dict(arguments))

    @property
    def gold(self) -> GoldReplays:
        return self.arena.gold

    def places(self, task: Task) -> list[Place]:
        """The turns of a task."""
        return [
            Place(self, task, k, tuple((c.tool, dict(c.arguments)) for c in turn.gold or ()))
            for k, turn in enumerate(task.turns)
        ]

    def script(self, task: Task, rng: random.Random) -> Script:
        """Gold, laid out by chance."""
        turns = tuple(place.laid_out(place.calls, rng) for place in self.places(task))
        turns = tuple([step for step in steps if step] for steps in turns)
        return Script(task, turns, tuple(" ".join(t.answer) or "Done." for t in task.turns))

    def play(self, script: Script) -> "Seen":
        """Play a script under the original words."""
        policy = Scripted(*script.turns, answers=dict(enumerate(script.answers)))
        done = roll_out(self.arena, script.task, policy, sample=0, seed=0, sampling=Sampling())
        if done.played is None or done.rollout.reward is None:
            raise AssertionError(done.rollout.failure)
        return Seen(self, script, done.rollout, done.played, self.gold.of(script.task))


@dataclass(frozen=True)
class Seen:
    """A script as it was played, and gold's replay. The labels are told from these alone."""

    stage: Stage
    script: Script
    rollout: Rollout
    played: Played
    gold: Played

    @property
    def passed(self) -> bool:
        return self.rollout.reward == 1.0

    def error(self, turn: int, step: int, place: int) -> CallError | None:
        """The error of one call."""
        steps = self.rollout.turns[turn].steps
        if step >= len(steps) or place >= len(steps[step].results):
            return None
        return steps[step].results[place].error

    def errors(self, turn: int) -> list[tuple[str, CallError]]:
        """The tools of a turn's calls that failed, each with its error."""
        return [
            (call.tool, result.error)
            for step in self.rollout.turns[turn].steps
            for call, result in zip(step.calls, step.results, strict=True)
            if result.error
        ]

    def state_differs(self, turn: int) -> bool:
        return self.gold.turns[turn].state != self.played.turns[turn].state

    def missing(self, turn: int) -> list[str]:
        """The tools of gold's calls whose output the turn lacks, by the verifier's own message."""
        start = f"turn {turn} output of "
        names = [check.name for check in self.rollout.score.checks if not check.passed]
        return [name.removeprefix(start) for name in names if name.startswith(start)]

    def at_risk(self, turn: int) -> bool:
        """A turn whose calls may be gold's and whose outcome is not, or that saw an error."""
        same = _outputs(self.gold, turn) == _outputs(self.played, turn)
        return self.state_differs(turn) or bool(self.errors(turn)) or not same


def _outputs(played: Played, turn: int) -> Counter[str]:
    return Counter(done.output for done in played.turns[turn].executed)


def text_of(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def flat(steps: Sequence[Sequence[Call]]) -> list[Call]:
    return [call for step in steps for call in step]
