"""What the loop does between the steps of training: evaluate the policy, evolve the words.

All of it rests on rollouts that are kept as they are made, by policy version. A run that resumes
goes through the generations before its checkpoint once more, on the kept rollouts alone, and so
comes to the same words, tests and scores.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from seal.config import LoopConfig
from seal.envs import EnvironmentTemplate
from seal.envs.suspects import without_suspects
from seal.errors import ConfigError
from seal.evolve.evidence import Rewriter
from seal.evolve.ledger import Ledger, RecordedRewriter
from seal.evolve.lineage import Generation
from seal.evolve.search import SPENT, Search
from seal.loop.outcome import Checkpoint, Stage, StepFigures, best_of
from seal.models.local import LocalPolicy
from seal.models.protocol import Policy, PolicyInput, Reply
from seal.records import RunFolder, write_json
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings
from seal.rollout.scores import summarize
from seal.soundness.facts import collect_facts
from seal.train.collect import Collected
from seal.types import Candidate, Rollout, Task

CHUNK = 24
"""Gate scenarios rolled out at once: a local policy is quick only where many go together."""


class Watch(Protocol):
    """What wants to know how a training run is going."""

    def stage(self, text: str) -> None:
        """A new stage began."""
        ...

    def lesson(self, step: int, total: int, loss: float) -> None:
        """The warm start learned from one step's lessons, steps counted from 1."""
        ...

    def advance(self, rollouts: int) -> None:
        """So many more rollouts of the stage were made."""
        ...

    def generation(self, generation: Generation) -> None:
        """The search of a generation is over."""
        ...

    def step(self, figures: StepFigures) -> None:
        """The rollouts of a GRPO step are made and weighed."""
        ...

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """The policy was evaluated at a boundary."""
        ...


@dataclass(slots=True)
class Named:
    """A policy that is no more than its name and version: not loaded yet, or trained past.

    All that it can answer with are rollouts that are kept.
    """

    name: str
    version: str

    def act(self, given: PolicyInput) -> Reply:
        """Refuse.

        Raises:
            ConfigError: Always: a rollout was asked for that is not kept.
        """
        raise ConfigError(
            f"a rollout of {given.task.id} by version {self.version} of the policy is missing from "
            "this run's rollouts.jsonl.\nStart the run over with --fresh."
        )


class Loop:
    """The generations of one training run, as the trainer calls them.

    Args:
        template: The environment.
        rewriter: What proposes texts.
        config: The settings.
        rollouts: Seed and sampling of the rollouts that are not trained on.
        folder: The run folder.
        watch: Is told how it goes.
    """

    def __init__(
        self,
        template: EnvironmentTemplate,
        rewriter: Rewriter,
        config: LoopConfig,
        rollouts: RolloutSettings,
        folder: RunFolder,
        watch: Watch,
    ) -> None:
        self._template = template
        self._config = config
        self._folder = folder
        self.watch = watch
        self._original = Arena(template)
        self._clock = Clock(folder)
        self._training: tuple[int, float] | None = None
        """The generation whose steps are under way, and when they began."""
        nobody = Named("", "")
        self.ledger = Ledger(nobody, rollouts, config.evolve.budget, folder, watch.advance)
        self.rewriter = RecordedRewriter(rewriter, folder)
        self.checkpoints: list[Checkpoint] = []
        self.generations: list[Generation] = []
        self._search: Search | None = None
        if config.evolve.budget:
            watch.stage("telling facts from live values")
            facts = collect_facts(template)
            self._search = Search(
                self._original,
                facts,
                self.rewriter,
                self.ledger,
                config.evolve,
                watch,
                chunk=CHUNK,
            )
        lines = folder.lines("checkpoints", Checkpoint)
        self._versions = {one.number: one.policy_version for one in lines.read()}
        self._steps = {one.step: one for one in folder.lines("steps", StepFigures).read()}

    @property
    def arena(self) -> Arena:
        """The environment with the words in force."""
        return self._search.arena if self._search else self._original

    @property
    def candidate(self) -> Candidate:
        """The words in force."""
        return self.arena.candidate

    @property
    def steps(self) -> tuple[StepFigures, ...]:
        """The figures of all steps, in their order."""
        return tuple(self._steps[step] for step in sorted(self._steps))

    @property
    def best(self) -> int:
        """The number of the best checkpoint so far."""
        return best_of(self.checkpoints)

    def tasks(self) -> Sequence[Task]:
        """The tasks to train on: those whose gold is not in doubt."""
        tasks = self._template.tasks("train")
        return without_suspects(self._template, self._original.gold, tasks)

    def begin(self, number: int, policy: LocalPolicy) -> Arena | None:
        """Evaluate the policy at a boundary, and evolve the words for the steps to come.

        Returns:
            The words in force; None after the last generation.
        """
        if self._training:
            self._clock.add("train", self._training[0], self._training[1])
            self._training = None
        self._catch_up(number, policy.name)
        self._at(number, policy)
        if number == self._config.train.generations:
            return None
        steps = self._config.train.steps
        self.watch.stage(f"generation {number}: {steps} GRPO step{'s' * (steps != 1)}")
        self._training = number, time.monotonic()
        return self.arena

    def _catch_up(self, number: int, name: str) -> None:
        """Go once more through what came before a checkpoint, on the kept rollouts."""
        if len(self.checkpoints) < number:
            self.watch.stage("reading back what was done before")
        for earlier in range(len(self.checkpoints), number):
            if earlier not in self._versions:
                raise ConfigError(
                    f"{self._folder.path / 'checkpoints.jsonl'}: checkpoint {earlier} is missing.\n"
                    "Restore the file, or start the run over with --fresh."
                )
            self._at(earlier, Named(name, self._versions[earlier]))
        for step in range(number * self._config.train.steps):
            if step not in self._steps:
                raise ConfigError(
                    f"{self._folder.path / 'steps.jsonl'}: step {step} is missing.\n"
                    "Restore the file, or start the run over with --fresh."
                )

    def _at(self, number: int, policy: Policy) -> None:
        self.ledger.policy = policy
        with self._clock.timed("baseline" if number == 0 else "validation", number):
            self._evaluate(number, policy)
        if number < self._config.train.generations:
            with self._clock.timed("evolve", number):
                self._evolve(number)

    def _evaluate(self, number: int, policy: Policy) -> None:
        """Score the policy on validation tasks, under the original words."""
        name = "baseline" if number == 0 else f"checkpoint {number}"
        self.watch.stage(f"{name}: validation under the original words")
        tasks = self._template.tasks("validation")[: self._config.validation_tasks]
        made = self.ledger.roll_out(self._original, [Job(task) for task in tasks], free=True)
        checkpoint = Checkpoint(
            number=number,
            steps=number * self._config.train.steps,
            policy_version=policy.version,
            validation=summarize(made),
        )
        self.checkpoints.append(checkpoint)
        if self._versions.get(number) != policy.version:
            self._folder.lines("checkpoints", Checkpoint).append(checkpoint)
            self._versions[number] = policy.version
        self.watch.checkpoint(checkpoint)

    def _evolve(self, number: int) -> None:
        """One generation of the search, unless its budget was spent before."""
        over = bool(self.generations) and self.generations[-1].reason == SPENT
        if self._search is None or over:
            return
        generation = self._search.generation(number)
        self.generations.append(generation)
        self._folder.save_candidate(self.candidate)
        lines = self._folder.lines("generations", Generation)
        kept = list(lines.read())
        if generation not in kept:
            lines.append(generation)
        profile = self._search.profile.model_dump(mode="json")
        write_json(self._folder.path / "profile.json", {"seal": 1, **profile})

    def seen(self, step: int, collected: Sequence[Collected], figures: Mapping[str, float]) -> None:
        """Keep the rollouts of a GRPO step and its figures."""
        first = collected[0].rollout
        found = StepFigures(
            step=step,
            generation=step // self._config.train.steps,
            candidate=self.candidate.id,
            policy_version=first.policy_version,
            rollouts=len(collected),
            figures={name: round(value, 6) for name, value in figures.items()},
        )
        if self._steps.get(step) != found:
            self._folder.lines("grpo", Rollout).append(*(one.rollout for one in collected))
            self._folder.lines("steps", StepFigures).append(found)
            self._steps[step] = found
        self.watch.step(found)


class Clock:
    """The seconds that each stage of a run took, over all processes that worked on it."""

    def __init__(self, folder: RunFolder) -> None:
        self._lines = folder.lines("stages", Stage)

    @contextmanager
    def timed(self, name: str, generation: int | None = None) -> Iterator[None]:
        """Add the time inside to a stage, also where it is broken off."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(name, generation, began)

    def add(self, name: str, generation: int | None, began: float) -> None:
        """Add the time since then to a stage."""
        seconds = round(time.monotonic() - began, 3)
        self._lines.append(Stage(name=name, generation=generation, seconds=seconds))

    def stages(self) -> list[Stage]:
        """All entries, in their order."""
        return list(self._lines.read())
