"""Many rollouts are the same rollouts, however many workers make them."""

import threading
import time

import pytest

from seal.envs import load_environment
from seal.errors import ModelFailure
from seal.models.simulated import SimulatedPolicy
from seal.rollout.agent import Arena
from seal.rollout.batch import GIVE_UP_AFTER, Job, RolloutSettings, roll_out_all
from tests.factories import write_environment
from tests.scripted import Scripted


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return Arena(load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp")))


def jobs(arena, samples=1):
    return [Job(task, sample) for task in arena.template.tasks(None) for sample in range(samples)]


def made(arena, policy, settings=None, todo=None):
    outcomes = roll_out_all(arena, todo or jobs(arena), policy, settings or RolloutSettings())
    return [outcome.rollout for outcome in outcomes]


def timeless(rollouts):
    return sorted((r.model_copy(update={"seconds": 0.0}) for r in rollouts), key=lambda r: r.id)


def test_workers_change_no_record(lamp):
    todo = jobs(lamp, samples=2)
    alone = made(lamp, SimulatedPolicy("lost"), RolloutSettings(seed=5), todo)
    assert [one.id for one in alone] == [f"{job.task.id}#{job.sample}" for job in todo]
    for workers in (2, 8):
        together = made(lamp, SimulatedPolicy("lost"), RolloutSettings(5, workers=workers), todo)
        assert timeless(together) == timeless(alone)


def test_a_seed_decides_the_records(lamp):
    first, again, other = (
        made(lamp, SimulatedPolicy("lost"), RolloutSettings(seed=seed)) for seed in (1, 1, 2)
    )
    assert timeless(first) == timeless(again) != timeless(other)
    assert {one.seed for one in other} == {2}


class Gauge(Scripted):
    """Knows how many act at the same time."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.lock = threading.Lock()

    def act(self, given):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.002)
        with self.lock:
            self.now -= 1
        return super().act(given)


def test_as_many_act_at_once_as_there_are_workers(lamp):
    gauge = Gauge()
    assert len(made(lamp, gauge, RolloutSettings(workers=4))) == 40
    assert 2 <= gauge.most <= 4


class Failing(Scripted):
    """Fails at the given calls of a rollout's first step."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails
        self.asked = 0

    def act(self, given):
        if given.turn == 0 and given.steps_taken == 0:
            self.asked += 1
            if self.fails(self.asked):
                raise ModelFailure("no server at http://127.0.0.1:1")
        return super().act(given)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_model_that_fails_from_the_start_raises_what_it_said_and_spends_no_more(lamp, workers):
    policy = Failing(lambda _: True)
    with pytest.raises(ModelFailure, match=r"^no server at http://127\.0\.0\.1:1$"):
        made(lamp, policy, RolloutSettings(workers=workers))
    assert policy.asked <= GIVE_UP_AFTER + workers


def test_one_job_whose_model_fails_raises_at_once(lamp):
    with pytest.raises(ModelFailure, match="no server"):
        made(lamp, Failing(lambda _: True), todo=jobs(lamp)[:1])


@pytest.mark.parametrize("workers", [1, 3])
def test_failures_after_something_went_through_are_recorded(lamp, workers):
    rollouts = made(lamp, Failing(lambda asked: asked > 1), RolloutSettings(workers=workers))
    assert len(rollouts) == 40
    failed = [one for one in rollouts if one.failure]
    assert len(failed) == 39
    assert {one.reward for one in failed} == {None}


def test_few_failures_before_something_goes_through_are_recorded(lamp):
    rollouts = made(lamp, Failing(lambda asked: asked < GIVE_UP_AFTER))
    assert [bool(one.failure) for one in rollouts] == [True] * 2 + [False] * 38


def test_an_error_of_our_own_is_raised_and_not_recorded(lamp):
    class Broken(Scripted):
        def act(self, given):
            raise KeyError(given.turn)

    for workers in (1, 3):
        with pytest.raises(KeyError):
            made(lamp, Broken(), RolloutSettings(workers=workers))


def test_stopping_early_leaves_no_job_behind(lamp):
    gauge = Gauge()
    before = set(threading.enumerate())
    outcomes = roll_out_all(lamp, jobs(lamp), gauge, RolloutSettings(workers=3))
    next(outcomes)
    outcomes.close()
    assert gauge.now == 0
    assert set(threading.enumerate()) <= before


def test_no_jobs_are_no_outcomes(lamp):
    for workers in (1, 3):
        assert list(roll_out_all(lamp, [], Scripted(), RolloutSettings(workers=workers))) == []
