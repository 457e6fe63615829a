"""Many rollouts: threads for waiting, and a run folder that can be resumed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from seal.errors import ModelFailure
from seal.models.protocol import Policy
from seal.rollout.agent import Arena, Outcome, roll_out
from seal.types import Sampling, Task

GIVE_UP_AFTER = 3
"""Rollouts that must fail at the model, with none going through, before a batch gives up."""


@dataclass(frozen=True, slots=True)
class Job:
    """One rollout to make."""

    task: Task
    sample: int = 0


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What a batch has in common."""

    seed: int = 0
    sampling: Sampling = Sampling()  # noqa: RUF009 - frozen
    workers: int = 1


def roll_out_all(
    arena: Arena, jobs: Sequence[Job], policy: Policy, settings: RolloutSettings
) -> Iterator[Outcome]:
    """The outcome of every job, in the order in which they end.

    Raises:
        ModelFailure: The model fails from the start; nothing more is tried.
    """
    watch = _Watch(len(jobs))

    def one(job: Job) -> Outcome:
        return roll_out(
            arena,
            job.task,
            policy,
            sample=job.sample,
            seed=settings.seed,
            sampling=settings.sampling,
        )

    if settings.workers == 1:
        for job in jobs:
            yield watch.seen(one(job))
        return
    yield from _in_threads(one, jobs, settings.workers, watch)


def _in_threads(
    one: Callable[[Job], Outcome], jobs: Sequence[Job], workers: int, watch: "_Watch"
) -> Iterator[Outcome]:
    """Never more jobs in flight than workers, so that stopping loses little."""
    waiting = iter(jobs)
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Outcome]] = set()
        try:
            while True:
                for job in waiting:
                    running.add(pool.submit(one, job))
                    if len(running) >= workers:
                        break
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield watch.seen(future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Watch:
    """Notices that a model never answers, before a whole batch is spent on it."""

    def __init__(self, total: int) -> None:
        self._limit = min(total, GIVE_UP_AFTER)
        self._failed = 0
        self._went_through = False

    def seen(self, outcome: Outcome) -> Outcome:
        failure = outcome.rollout.failure or ""
        if not failure.startswith(ModelFailure.__name__):
            self._went_through = True
        else:
            self._failed += 1
        if not self._went_through and self._failed >= self._limit:
            raise ModelFailure(failure.partition(": ")[2])
        return outcome
