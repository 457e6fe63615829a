"""Many rollouts: threads for waiting, and a run folder that can be resumed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from seal.errors import ModelFailure
from seal.models.protocol import PacedPolicy, Policy
from seal.rollout.agent import Arena, Moves, Outcome, begin, roll_out
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
    if isinstance(policy, PacedPolicy):
        for outcome in at_own_pace(_begun(arena, jobs, policy, settings), policy):
            yield watch.seen(outcome)
        return

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


def _begun(
    arena: Arena, jobs: Sequence[Job], policy: Policy, settings: RolloutSettings
) -> Iterator[tuple[str, Moves]]:
    for job in jobs:
        yield (
            f"{job.task.id}#{job.sample}",
            begin(
                arena,
                job.task,
                policy,
                sample=job.sample,
                seed=settings.seed,
                sampling=settings.sampling,
            ),
        )


def at_own_pace(begun: Iterable[tuple[str, Moves]], policy: PacedPolicy) -> Iterator[Outcome]:
    """Drive rollouts, as many at once as the policy holds; none waits for another's turn to end.

    Args:
        begun: Rollouts from `begin`, by `TASK#SAMPLE`; taken when there is room for one more.
        policy: What acts.
    """
    waiting = iter(begun)
    moves: dict[str, Moves] = {}
    more = True
    while more or moves:
        while more and len(moves) < policy.rows:
            key, fresh = next(waiting, ("", None))
            more = fresh is not None
            if fresh is not None:
                try:
                    policy.submit(next(fresh))
                except StopIteration as end:
                    yield end.value
                else:
                    moves[key] = fresh
        for key, reply in policy.replies() if moves else ():
            try:
                policy.submit(moves[key].send(reply))
            except StopIteration as end:
                del moves[key]
                policy.release(key)
                yield end.value


def _in_threads(
    one: Callable[[Job], Outcome], jobs: Sequence[Job], workers: int, watch: "_Watch"
) -> Iterator[Outcome]:
    """Never more jobs in flight than workers, so that stopping loses little."""
    waiting = iter(jobs)
    pool = ThreadPoolExecutor(workers)
    patient = True
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
    except KeyboardInterrupt:
        # A user who interrupts does not wait for calls under way and their further tries.
        patient = False
        raise
    finally:
        pool.shutdown(wait=patient, cancel_futures=True)


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
