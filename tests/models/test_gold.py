"""Gold solves every task, and a replay says what was said."""

import pytest

from seal.envs import load_environment
from seal.models.gold import GoldPolicy, ReplayPolicy
from seal.models.simulated import SimulatedPolicy
from seal.rollout.agent import Arena, roll_out
from seal.types import Sampling, Score
from tests.factories import write_environment


def rollouts(arena, policy, tasks, sample=0):
    return [
        roll_out(arena, task, policy, sample=sample, seed=3, sampling=Sampling()).rollout
        for task in tasks
    ]


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    template = load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp"))
    return Arena(template)


@pytest.fixture(scope="module")
def rooms():
    return Arena(load_environment("rooms"))


def test_gold_solves_every_task(lamp, rooms):
    for arena in (lamp, rooms):
        tasks = arena.template.tasks(None)[:120]
        assert {one.reward for one in rollouts(arena, GoldPolicy(), tasks)} == {1.0}


def test_gold_gives_the_answers_that_a_turn_asks_for(lamp):
    task = lamp.template.tasks("train")[0]
    turns = tuple(turn.model_copy(update={"answer": ("Yes", "42")}) for turn in task.turns)
    (one,) = rollouts(lamp, GoldPolicy(), [task.model_copy(update={"turns": turns})])
    assert one.reward == 1.0
    assert one.turns[-1].steps[-1].content == "Yes 42"


def test_a_replay_reproduces_a_run(rooms):
    tasks = rooms.template.tasks("train")[:60]
    first = rollouts(rooms, SimulatedPolicy("novice"), tasks)
    again = rollouts(rooms, ReplayPolicy("replay:x", first), tasks)
    assert [(one.turns, one.score) for one in again] == [(one.turns, one.score) for one in first]
    assert {one.policy for one in again} == {"replay:x"}
    assert 0.0 < sum(one.reward for one in first) < 60


def test_a_replay_under_other_words_makes_the_same_calls(lamp):
    tasks = lamp.template.tasks("train")
    first = rollouts(lamp, SimulatedPolicy("lost"), tasks)
    words = lamp.candidate.with_texts({"dim.recovery.refused": "Give {required_arguments}."})
    again = rollouts(lamp.under(words), ReplayPolicy("replay:x", first), tasks)
    assert [one.score for one in again] == [one.score for one in first]
    assert [one.turns for one in again] != [one.turns for one in first]


def test_a_task_or_sample_that_was_not_recorded_is_a_failure_of_the_model(lamp):
    task, other = lamp.template.tasks("train")[:2]
    policy = ReplayPolicy("replay:x", rollouts(lamp, GoldPolicy(), [task]))
    for missing in (*rollouts(lamp, policy, [other]), *rollouts(lamp, policy, [task], sample=1)):
        assert missing.reward is None
        assert missing.failure.startswith("ModelFailure: replay:x: no rollout of task lamp-")


def test_what_broke_replays_as_broken_and_not_as_a_failure_to_act(lamp):
    task = next(task for task in lamp.template.tasks(None) if len(task.turns) == 2)
    (whole,) = rollouts(lamp, GoldPolicy(), [task])
    broken = whole.model_copy(
        update={
            "turns": whole.turns[:1],
            "score": Score(reward=None),
            "failure": "EnvironmentFailure: it burnt down",
        }
    )
    (again,) = rollouts(lamp, ReplayPolicy("replay:x", [broken]), [task])
    assert again.reward is None
    assert "it burnt down" in again.failure
    assert again.turns == whole.turns[:1]


def test_the_version_of_a_replay_is_that_of_what_was_said(lamp):
    tasks = lamp.template.tasks("train")[:3]
    first = rollouts(lamp, GoldPolicy(), tasks)
    second = [one.model_copy(update={"seconds": 9.0}) for one in reversed(first)]
    assert ReplayPolicy("a", first).version == ReplayPolicy("b", second).version
    assert ReplayPolicy("a", first[:2]).version != ReplayPolicy("a", first).version
