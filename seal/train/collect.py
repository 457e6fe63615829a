"""Rollouts to train on: whole groups, every rollout with its tokens, reward and labels."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from seal.config import TrainConfig
from seal.diagnose import diagnose_rollout
from seal.errors import EnvironmentFailure, ModelFailure
from seal.models.local import LocalPolicy
from seal.models.sampler import Tokens
from seal.rollout.agent import Arena, Outcome
from seal.rollout.batch import Job, RolloutSettings, roll_out_all
from seal.train.labels import Tag, turn_labels
from seal.train.rewards import outcome_reward, progress_reward
from seal.train.spans import TokenRecord, token_record
from seal.types import DiagnosedRollout, Kind, Rollout, Sampling, Task

TRIES = 2
"""How often a group of one task is rolled out before another task takes its place."""
TASKS = 3
"""Tasks that are tried for one group."""


@dataclass(frozen=True, slots=True)
class Collected:
    """One rollout as the trainer takes it."""

    task: Task
    rollout: Rollout
    diagnosed: DiagnosedRollout
    record: TokenRecord
    reward: float
    """What is trained on; the rollout itself has the verifier's word."""
    labels: tuple[Tag, ...]
    """The paper's label of each turn; empty if it could not be diagnosed."""


def task_order(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """As many tasks as asked for: pass after pass over all of them, each in its own order."""
    rng = random.Random(f"order of training tasks {seed}")
    order: list[Task] = []
    while len(order) < count:
        order += rng.sample(tasks, len(tasks))
    return order[:count]


class Collector:
    """Rolls out the groups of a step, and again those that something of ours broke.

    Sample numbers are unique in a run: they follow from step, group and try. So a run that resumes
    makes the same rollouts, and no two rollouts share their draws.

    Args:
        tasks: What may take the place of a task that cannot be rolled out.
        config: Group size, reward, reweighting and sampling.
        seed: The run's seed.
    """

    def __init__(self, tasks: Sequence[Task], config: TrainConfig, seed: int) -> None:
        self._tasks = tasks
        self._config = config
        self._seed = seed
        self._settings = RolloutSettings(
            seed=random.Random(f"training rollouts {seed}").randrange(2**31),
            sampling=Sampling(temperature=config.temperature, max_tokens=config.max_tokens),
        )
        self.again = 0
        """Groups of the last step that had to be rolled out again."""

    def collect(
        self, words: Iterable[Arena], policy: LocalPolicy, tasks: Sequence[Task], step: int
    ) -> list[Collected]:
        """One group for each of these tasks, group after group, each with all its rollouts.

        Every group reads the words of one arena, the arenas being in the order of the tasks.

        A rollout that is unscored, that has no tokens, whose gold is in doubt, or that cannot be
        diagnosed although reward or weights need it, is no zero: its whole group is made again.

        Raises:
            ModelFailure, EnvironmentFailure: No whole group came out of any of the tasks tried.
        """
        arenas = list(islice(words, len(tasks)))
        found: dict[int, list[Collected]] = {}
        why = ""
        self.again = 0
        for attempt in range(TRIES * TASKS):
            groups = {
                place: self._jobs(task, step * len(tasks) + place, attempt)
                for place, task in enumerate(tasks)
                if place not in found
            }
            self.again += len(groups) if attempt else 0
            made: dict[str, Collected | str] = {}
            for arena in {id(arena): arena for arena in arenas}.values():
                here = [jobs for place, jobs in groups.items() if arenas[place] is arena]
                made |= self._roll_out(arena, policy, [job for jobs in here for job in jobs])
            for place, jobs in groups.items():
                group = [made[_key(job)] for job in jobs]
                whole = [one for one in group if isinstance(one, Collected)]
                if len(whole) == len(group):
                    found[place] = whole
                why = next((one for one in group if isinstance(one, str)), why)
            if len(found) == len(tasks):
                return [one for place in sorted(found) for one in found[place]]
        kind = ModelFailure if ModelFailure.__name__ in why else EnvironmentFailure
        raise kind(
            f"step {step}: {len(tasks) - len(found)} of {len(tasks)} groups did not come out "
            f"whole, with {TRIES} tries of each of {TASKS} tasks.\nThe last to break: {why}"
        )

    def _jobs(self, task: Task, group: int, attempt: int) -> list[Job]:
        """The rollouts of one try; from some try on, of another task."""
        other, _ = divmod(attempt, TRIES)
        if other:
            # Seeded by the group alone, so that the tasks tried for it differ.
            others = [one for one in self._tasks if one.id != task.id] or [task]
            drawn = random.Random(f"{self._seed}/{group}").sample(others, len(others))
            task = drawn[(other - 1) % len(drawn)]
        size = self._config.group_size
        first = (group * TRIES * TASKS + attempt) * size
        return [Job(task, first + number) for number in range(size)]

    def _roll_out(
        self, arena: Arena, policy: LocalPolicy, jobs: Sequence[Job]
    ) -> dict[str, Collected | str]:
        """Every job's rollout by its id, or why it cannot be trained on."""
        tasks = {_key(job): job.task for job in jobs}
        made: dict[str, Collected | str] = {}
        policy.keep_tokens = True
        try:
            for outcome in roll_out_all(arena, jobs, policy, self._settings):
                key = outcome.rollout.id
                made[key] = self._collected(arena, tasks[key], outcome, policy.tokens(key))
        finally:
            # Tokens that nobody asks for would pile up.
            policy.keep_tokens = False
        return made

    def _collected(
        self, arena: Arena, task: Task, outcome: Outcome, tokens: Tokens | None
    ) -> Collected | str:
        rollout = outcome.rollout
        if rollout.reward is None:
            return f"{rollout.id}: {rollout.failure or 'it could not be scored'}"
        if tokens is None:
            return f"{rollout.id}: its tools changed in mid-dialogue"
        diagnosed = diagnose_rollout(
            arena.template, arena.gold, task, arena.candidate, rollout, outcome.played
        )
        if diagnosed.suspect:
            return f"{rollout.id}: gold is in doubt ({diagnosed.suspect})"
        progress = self._config.reward == "progress"
        reward = progress_reward(task, diagnosed, rollout) if progress else outcome_reward(rollout)
        reads = [name for name, tool in arena.contracts.items() if not tool.mutates]
        labels = turn_labels(task, diagnosed, reads=reads)
        if reward is None or (self._config.reweighting != "none" and not labels):
            found = (d.found for d in diagnosed.diagnoses if d.kind is Kind.UNSCORABLE)
            return f"{rollout.id}: it could not be diagnosed ({next(found, '')})"
        return Collected(task, rollout, diagnosed, _record(tokens), reward, labels)


def _key(job: Job) -> str:
    return f"{job.task.id}#{job.sample}"


def _record(tokens: Tokens) -> TokenRecord:
    """The rollout's tokens; all that comes before the policy's first word is the prompt."""
    first, *others = tokens.stretches
    return token_record([*tokens.prompt_ids, *first.ids], others)
