"""A success is worth 1, a failure less than half, and abstaining alone nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.diagnose import diagnose_rollout
from seal.train.rewards import outcome_reward, passed_turns, progress_reward
from seal.types import DiagnosedRollout, Diagnosis, Kind, Score
from tests.diagnose.office import call, office_at, played, task_of


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    return office_at(tmp_path_factory.mktemp("office") / "office")


NOTE, BAD = ("write", {"text": "a"}), ("write", {"text": "b"})
READ, STRAY = ("read", {}), ("writ", {})
WRITE = [call("write", text="a")]
RIGHT, WRONG = [[NOTE]], [[BAD]]


def scored(office, task, *turns, answers=None):
    """Task, diagnoses and rollout of scripted turns."""
    outcome = played(office, task, *turns, answers=answers)
    given = (office.template, office.gold, task, office.candidate, outcome.rollout)
    return task, diagnose_rollout(*given, outcome.played), outcome.rollout


def progress(office, golds, *turns, answers=None, wanted=None):
    task = task_of(*golds, answers=wanted)
    return progress_reward(*scored(office, task, *turns, answers=answers))


@pytest.mark.parametrize(
    ("golds", "turns", "expected"),
    [
        ([WRITE, WRITE], [RIGHT, RIGHT], 1.0),
        ([WRITE, WRITE], [RIGHT, WRONG], 0.25),
        ([WRITE, WRITE], [WRONG, RIGHT], 0.0),
        ([WRITE, WRITE, WRITE, WRITE], [RIGHT, RIGHT, RIGHT, WRONG], 0.375),
        # An abstention weighs half of a call turn, and alone it is worth nothing.
        ([WRITE, [], WRITE], [RIGHT, [], WRONG], 0.3),
        ([[], WRITE], [[], WRONG], 0.0),
        # A call where none is wanted is no abstention, even if it does no harm.
        ([WRITE, [], WRITE], [RIGHT, [[READ]], WRONG], 0.2),
        ([WRITE, [], WRITE], [RIGHT, [[READ]], RIGHT], 1.0),
        # Errors on the way to the right end are forgiven.
        ([WRITE, WRITE], [[[STRAY], [NOTE]], WRONG], 0.25),
        # What comes after the fault is worth nothing.
        ([WRITE, WRITE, WRITE], [RIGHT, WRONG, RIGHT], 0.5 / 3),
        ([[]], [[]], 1.0),
        ([[]], [[[NOTE]]], 0.0),
    ],
)
def test_progress_is_half_of_what_was_passed_before_the_fault(office, golds, turns, expected):
    assert progress(office, golds, *turns) == pytest.approx(expected)


def test_a_turn_that_nothing_verifies_earns_nothing_on_its_own(office):
    assert progress(office, [None, WRITE], RIGHT, WRONG) == 0.0
    said = {0: ("done",)}
    turns = {"answers": {0: "It is done."}, "wanted": said}
    assert progress(office, [None, WRITE], RIGHT, WRONG, **turns) == 0.25


def test_a_turn_whose_answer_fails_is_the_fault(office):
    said = {0: ("done",)}
    turns = {"answers": {0: "No."}, "wanted": said}
    assert progress(office, [WRITE, WRITE], RIGHT, RIGHT, **turns) == 0.0


def test_an_unscored_rollout_has_no_reward(office):
    task, found, rollout = scored(office, task_of(WRITE), RIGHT)
    broken = rollout.model_copy(update={"score": Score(reward=None)})
    assert outcome_reward(broken) is None
    assert progress_reward(task, found, broken) is None


def test_a_failure_that_could_not_be_diagnosed_has_no_progress_and_a_success_has(office):
    task, _, lost = scored(office, task_of(WRITE), WRONG)
    for reward, expected in ((0.0, None), (1.0, 1.0)):
        rollout = lost.model_copy(update={"score": Score(reward=reward)})
        assert progress_reward(task, without_fault(rollout, Kind.UNSCORABLE), rollout) == expected


def test_a_failure_without_a_fault_earns_nothing(office):
    task, _, rollout = scored(office, task_of(WRITE, WRITE), RIGHT, WRONG)
    found = without_fault(rollout, Kind.PASS)
    assert (passed_turns(task, found), progress_reward(task, found, rollout)) == ([], 0.0)


def test_a_turn_that_deviates_is_not_passed_even_before_the_fault(office):
    task, found, _ = scored(office, task_of(WRITE, WRITE, WRITE), RIGHT, RIGHT, WRONG)
    assert passed_turns(task, found) == [0, 1]
    corrected = Diagnosis(turn=1, kind=Kind.REFUSED, recovered=True, deviates=True)
    found = found.model_copy(update={"diagnoses": (*found.diagnoses, corrected)})
    assert passed_turns(task, found) == [0]


def without_fault(rollout, kind):
    return DiagnosedRollout(
        rollout=rollout.id,
        task=rollout.task,
        scenario=rollout.scenario,
        candidate=rollout.candidate,
        reward=rollout.reward,
        diagnoses=(Diagnosis(turn=0, kind=kind),),
    )


def test_diagnoses_of_another_rollout_are_refused(office):
    task, found, rollout = scored(office, task_of(WRITE), WRONG)
    with pytest.raises(ValueError, match="diagnoses of"):
        progress_reward(task, found, rollout.model_copy(update={"sample": 1}))
    with pytest.raises(ValueError, match="progress of"):
        progress_reward(task_of(WRITE, WRITE), found, rollout)


CALLS = [NOTE, BAD, READ, STRAY, ("write", "{"), ("unlock", {"door": "x"})]
golds = st.sampled_from([None, [], WRITE, [call("unlock", door="A1")], [call("read")]])
turns = st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=2), max_size=3)


@settings(max_examples=60)
@given(st.lists(st.tuples(golds, turns), min_size=1, max_size=4))
def test_progress_is_one_for_a_success_and_below_a_half_for_a_failure(office, rows):
    task = task_of(*(gold for gold, _ in rows))
    task, found, rollout = scored(office, task, *(steps for _, steps in rows))
    reward = progress_reward(task, found, rollout)
    assert reward is not None
    if outcome_reward(rollout) == 1.0:
        assert reward == 1.0
    else:
        assert 0.0 <= reward < 0.5
        passed = passed_turns(task, found)
        assert all(index < found.fault.turn for index in passed)
        if not any(task.turns[index].gold != () for index in passed):
            assert reward == 0.0
