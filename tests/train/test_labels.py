"""Each turn has one label of the paper, the one its code would give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.train.advantage import rollout_weight
from seal.train.labels import TABLE, Failure, Tag, turn_failures, turn_labels
from seal.types import DiagnosedRollout, Diagnosis, Kind
from tests.diagnose.office import call, diagnosed, office_at, task_of


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    return office_at(tmp_path_factory.mktemp("office") / "office")


UNLOCK, ENTER = ("unlock", {"door": "A1"}), ("enter", {"door": "A1"})
NOTE, BAD, READ = ("write", {"text": "a"}), ("write", {"text": "b"}), ("read", {})
TORN, STRAY = ("write", '{"text": "a"'), ("writ", {"text": "a"})
WRITE = [call("write", text="a")]
GO = [call("unlock", door="A1"), call("enter", door="A1")]


def test_every_kind_is_in_the_table_and_every_blame_has_both_names():
    assert set(TABLE) == set(Kind)
    assert all(names.tag and names.failure for kind, names in TABLE.items() if kind.blames)
    assert {names.failure for names in TABLE.values()} == {*Failure, None}
    assert {names.tag for names in TABLE.values()} == {*Tag, None} - {Tag.INSTANCE_MISMATCH}


@pytest.mark.parametrize(
    ("gold", "steps", "tag", "failure"),
    [
        (WRITE, [[NOTE]], "pass", None),
        (WRITE, [[STRAY], [NOTE]], "pass", None),
        (WRITE, [[NOTE], [STRAY]], "pass", None),
        (WRITE, [], "empty_turn_model_response", "missing_tool_call"),
        (WRITE, [[TORN]], "empty_turn_model_response", "invalid_tool_call"),
        (WRITE, [[STRAY], [TORN]], "empty_turn_model_response", "invalid_tool_call"),
        (GO, [[UNLOCK], [("enter", "{")]], "state_mismatch", "invalid_tool_call"),
        (GO, [[("unlock", "{")]], "empty_turn_model_response", "invalid_tool_call"),
        (WRITE, [[BAD]], "state_mismatch", "state_mismatch"),
        (WRITE, [[STRAY], [BAD]], "state_mismatch", "state_mismatch"),
        (WRITE, [[BAD], [STRAY]], "state_mismatch", "invalid_tool_call"),
        (WRITE, [[("write", {})]], "state_mismatch", "argument_mismatch"),
        (GO, [[ENTER]], "state_mismatch", "recovery_failure"),
        (GO, [[UNLOCK]], "state_mismatch", "missing_tool_call"),
        (WRITE, [[READ]], "state_mismatch", "missing_tool_call"),
        ([], [], "correct_abstention", None),
        ([], [[READ]], "spurious_tool_call", None),
        ([], [[NOTE]], "spurious_tool_call", "state_mismatch"),
        (None, [[NOTE]], "pass", None),
    ],
)
def test_the_label_of_a_turn(office, gold, steps, tag, failure):
    task = task_of(gold)
    found = diagnosed(office, task, steps)
    assert (turn_labels(task, found), turn_failures(task, found)) == ((tag,), (failure,))


def test_a_failed_answer_is_a_response_mismatch_unless_the_turn_was_empty(office):
    task = task_of(WRITE, answers={0: ("yes",)})
    assert turn_labels(task, diagnosed(office, task, [[NOTE]])) == ("response_mismatch",)
    assert turn_failures(task, diagnosed(office, task, [[NOTE]])) == ("response_mismatch",)
    assert turn_labels(task, diagnosed(office, task, [])) == ("empty_turn_model_response",)


def test_a_read_that_was_left_out_is_a_response_mismatch(office):
    task = task_of([*WRITE, call("read")])
    left_out = diagnosed(office, task, [[NOTE]])
    assert turn_labels(task, left_out, reads={"read"}) == ("response_mismatch",)
    assert turn_labels(task, left_out) == ("state_mismatch",)
    instead_of_writing = diagnosed(office, task_of(WRITE), [[READ]])
    assert turn_labels(task_of(WRITE), instead_of_writing, reads={"read"}) == ("state_mismatch",)
    nothing_right = diagnosed(office, task, [[("enter", {"door": "A1"})]])
    assert turn_labels(task, nothing_right, reads={"read"}) == ("state_mismatch",)


def test_a_cascade_counts_as_in_the_paper(office):
    task = task_of(WRITE, WRITE, WRITE, WRITE)
    found = diagnosed(office, task, [[NOTE]], [[BAD]], [[NOTE]], [[NOTE]])
    labels = turn_labels(task, found)
    assert labels == ("pass", "state_mismatch", "state_mismatch", "state_mismatch")
    assert rollout_weight(labels) == 1.0


def test_a_success_with_a_harmless_spurious_call_weighs_more_than_one_without(office):
    task = task_of(WRITE, WRITE, WRITE, WRITE, [])
    good = [[[NOTE]]] * 4
    clean, spurious = diagnosed(office, task, *good, []), diagnosed(office, task, *good, [[READ]])
    assert (clean.reward, spurious.reward) == (1.0, 1.0)
    weights = [rollout_weight(turn_labels(task, found)) for found in (clean, spurious)]
    assert weights == pytest.approx([1.16, 1.20])


def built(task, *diagnoses, fault=None):
    return DiagnosedRollout(
        rollout=f"{task.id}#0",
        task=task.id,
        scenario=task.scenario,
        candidate="c",
        reward=0.0,
        diagnoses=diagnoses,
        fault=fault,
    )


def test_a_turn_that_was_never_reached_counts_as_empty():
    task = task_of(WRITE, WRITE, [])
    found = built(task, Diagnosis(turn=0, kind=Kind.PASS))
    assert turn_labels(task, found) == ("pass", "empty_turn_model_response", "correct_abstention")
    assert turn_failures(task, found) == (None, "missing_tool_call", None)


def test_a_rollout_that_could_not_be_diagnosed_has_no_labels_and_weighs_one():
    task = task_of(WRITE, WRITE)
    found = built(task, Diagnosis(turn=0, kind=Kind.UNSCORABLE))
    assert turn_labels(task, found) == turn_failures(task, found) == ()
    assert rollout_weight(turn_labels(task, found)) == 1.0


def test_a_failed_check_and_a_fault_count_without_other_signs_of_harm():
    task = task_of(None, None)
    error = Diagnosis(turn=0, kind=Kind.REFUSED, tool="unlock")
    check = Diagnosis(turn=1, kind=Kind.STATE_MISMATCH)
    assert turn_labels(task, built(task, error, check, fault=error)) == ("state_mismatch",) * 2
    assert turn_labels(task, built(task, error, check, fault=check)) == ("pass", "state_mismatch")


def test_diagnoses_of_another_task_are_refused():
    task = task_of(WRITE)
    with pytest.raises(ValueError, match="asked of diagnoses of"):
        turn_labels(task_of([]), built(task))


kinds = st.builds(
    Diagnosis,
    turn=st.integers(0, 2),
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.UNSCORABLE]),
    tool=st.sampled_from(["write", "read", None]),
    recovered=st.booleans(),
    deviates=st.booleans(),
)


@given(st.lists(kinds, max_size=6), st.randoms(use_true_random=False))
def test_any_diagnoses_give_one_label_a_turn_whatever_their_order(found, random):
    task = task_of(WRITE, [], None)
    labels = turn_labels(task, built(task, *found), reads={"read"})
    failures = turn_failures(task, built(task, *found))
    assert len(labels) == len(failures) == 3
    shuffled = list(found)
    random.shuffle(shuffled)
    assert turn_labels(task, built(task, *shuffled), reads={"read"}) == labels
    assert turn_failures(task, built(task, *shuffled)) == failures


CALLS = [UNLOCK, ENTER, NOTE, BAD, READ, TORN, STRAY]
golds = st.sampled_from([[], WRITE, GO, [call("read")]])
turns = st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=2), max_size=3)
GOOD = {"pass", "correct_abstention"}


@settings(max_examples=60)
@given(st.lists(st.tuples(golds, turns), min_size=1, max_size=3))
def test_a_rollout_failed_if_and_only_if_a_turn_of_it_has_a_kind_of_failure(office, rows):
    task = task_of(*(gold for gold, _ in rows))
    found = diagnosed(office, task, *(steps for _, steps in rows))
    labels = turn_labels(task, found, reads={"read"})
    failures = turn_failures(task, found)
    assert (found.reward == 1.0) == (failures == (None,) * len(rows))
    for label, failure in zip(labels, failures, strict=True):
        assert failure is None or label not in GOOD
        assert failure is not None or label in {*GOOD, "spurious_tool_call"}
