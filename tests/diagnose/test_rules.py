"""What went wrong is told from what was executed; the first thing that mattered is the fault."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.diagnose import diagnose_rollout
from seal.envs.verify import GoldReplays, answer_of
from seal.types import Kind, Score
from tests.diagnose.office import call, diagnosed, office_at, place, played, task_of


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    return office_at(tmp_path_factory.mktemp("office") / "office")


UNLOCK = ("unlock", {"door": "A1"})
ENTER = ("enter", {"door": "A1"})
NOTE = ("write", {"text": "a"})
READ = ("read", {})
GO = [call("unlock", door="A1"), call("enter", door="A1")]
WRITE = [call("write", text="a")]


def fault(office, gold, *steps, answers=None):
    """The fault of a task of one turn."""
    return place(diagnosed(office, task_of(gold), list(steps), answers=answers).fault)


@pytest.mark.parametrize(
    ("gold", "steps", "expected"),
    [
        (WRITE, [[("write", '{"text": "a"')]], ("malformed_call", "write", None)),
        (WRITE, [[("write", "[]")]], ("malformed_call", "write", None)),
        (WRITE, [[("", '{"text": "a"}')]], ("malformed_call", None, None)),
        (WRITE, [[("writ", {"text": "a"})]], ("unknown_tool", "writ", None)),
        (WRITE, [[("write", {})]], ("argument_missing", "write", "text")),
        (WRITE, [[("write", {"text": "a", "by": 1})]], ("argument_unexpected", "write", "by")),
        (WRITE, [[("write", {"text": ["a"]})]], ("argument_type", "write", "text")),
        (
            GO,
            [[UNLOCK], [("enter", {"door": "A1", "how": "fly"})]],
            ("argument_value", "enter", "how"),
        ),
        (GO, [[("unlock", {"door": "a1"})]], ("refused", "unlock", "door")),
        (GO, [[ENTER]], ("refused", "enter", None)),
        (GO, [[UNLOCK], [("enter", {"door": "B2"})]], ("refused", "enter", "door")),
        (WRITE, [[("write", {"text": "b"})]], ("wrong_argument", "write", "text")),
        (WRITE, [[("write", {"text": "a", "size": 2})]], ("wrong_argument", "write", "size")),
        (WRITE, [[UNLOCK]], ("wrong_tool", "unlock", None)),
        (WRITE, [[READ]], ("wrong_tool", "read", None)),
        (GO, [[UNLOCK]], ("missing_call", "enter", None)),
        ([*GO, *WRITE], [[UNLOCK], [NOTE]], ("missing_call", "enter", None)),
        (WRITE, [], ("no_call", "write", None)),
        ([], [[NOTE]], ("spurious_call", "write", None)),
        ([], [[("writ", {})], [NOTE]], ("spurious_call", "writ", None)),
        ([], [[("write", "{")], [UNLOCK]], ("spurious_call", "write", None)),
        (WRITE, [[NOTE], [UNLOCK]], ("state_mismatch", "unlock", None)),
        (WRITE, [[NOTE], [NOTE]], ("state_mismatch", "write", None)),
    ],
)
def test_each_kind_of_fault_is_told_with_its_tool_and_argument(office, gold, steps, expected):
    assert fault(office, gold, *steps) == expected


def test_a_read_that_was_never_made_is_a_missing_call_and_so_is_its_output(office):
    assert fault(office, [call("read")]) == ("no_call", "read", None)
    assert fault(office, [*WRITE, call("read")], [NOTE]) == ("missing_call", "read", None)


def test_a_read_at_the_wrong_time_obtained_another_output(office):
    found = diagnosed(office, task_of([*WRITE, call("read")]), [[READ], [NOTE]])
    assert place(found.fault) == ("output_missing", "read", None)
    assert found.fault.expected == '[["a", 1, false]]'


def test_an_answer_without_its_text_is_the_fault(office):
    task = task_of(WRITE, answers={0: ["42"]})
    found = diagnosed(office, task, [[NOTE]], answers={0: "Done."})
    assert place(found.fault) == ("answer_mismatch", None, None)
    assert (found.fault.expected, found.fault.found) == ("42", "Done.")
    assert diagnosed(office, task, [[NOTE]], answers={0: "It is 42."}).fault is None


def test_a_limit_that_ended_the_turn_is_the_fault_if_a_call_was_not_made(tmp_path):
    short = office_at(tmp_path / "office", "steps = 2\ncall_chars = 100")
    assert fault(short, GO, [UNLOCK], [READ], [ENTER]) == ("limit_reached", "enter", None)
    assert fault(short, WRITE, [READ], [READ], [NOTE]) == ("limit_reached", "write", None)
    assert fault(short, WRITE, [NOTE], [READ], [READ]) is None
    long = ("write", {"text": "a" * 200})
    assert fault(short, WRITE, [long]) == ("limit_reached", "write", None)
    assert fault(short, GO, [UNLOCK, long]) == ("limit_reached", "enter", None)


def test_a_limit_blames_the_words_that_lengthened_the_plan(tmp_path):
    short = office_at(tmp_path / "office", "steps = 2")
    harmful = short.candidate.with_texts({"unlock.affordance": "Always read first."})
    found = diagnosed(short.under(harmful), task_of(GO), [[READ], [UNLOCK], [ENTER]])
    assert (place(found.fault), found.fault.slot) == (
        ("limit_reached", "enter", None),
        "unlock.affordance",
    )


def test_a_missing_prerequisite_blames_the_refused_call(office):
    found = diagnosed(office, task_of(GO), [[ENTER]])
    assert place(found.fault) == ("refused", "enter", None)
    assert (found.fault.code, found.fault.slot) == ("locked", "enter.recovery.refused")
    assert [d.kind for d in found.diagnoses] == [Kind.REFUSED, Kind.RECOVERY_FAILURE]


def test_a_fault_has_its_evidence(office):
    found = diagnosed(office, task_of(WRITE), [[READ], [("write", {"text": "b"})]])
    one = found.fault
    assert (one.turn, one.step, one.call_id) == (0, 1, "0-1-0")
    assert (one.expected, one.found) == ('"a"', '"b"')
    assert (one.slot, one.deviates, one.recovered) == ("write.constraint.text", True, False)


def test_what_was_refused_is_shown_as_the_policy_sent_it(office):
    one = diagnosed(office, task_of(GO), [[("unlock", {"door": "a1"})]]).fault
    assert (one.expected, one.found, one.code) == ("No such door.", '"a1"', "no_door")
    assert one.slot == "unlock.recovery.refused"


@pytest.mark.parametrize(
    "wrong",
    [
        ("write", "{"),
        ("write", {}),
        ("write", {"text": 1}),
        ("write", {"text": "a", "by": 1}),
        ("writ", {"text": "a"}),
        ("", {"text": "a"}),
    ],
)
def test_an_error_corrected_in_its_turn_is_recovered_and_never_the_fault(office, wrong):
    found = diagnosed(office, task_of(WRITE), [[wrong], [NOTE]])
    assert (found.reward, found.fault) == (1.0, None)
    assert [d.recovered for d in found.diagnoses] == [True]
    then = diagnosed(office, task_of(WRITE), [[wrong], [("write", {"text": "b"})]])
    assert place(then.fault) == ("wrong_argument", "write", "text")
    assert [d.recovered for d in then.diagnoses if d.kind is not Kind.WRONG_ARGUMENT] == [True]


def test_a_call_of_no_tool_is_not_corrected_by_the_call_of_another(office):
    found = diagnosed(
        office, task_of([*WRITE, *GO]), [[("writ", {"text": "a"})], [UNLOCK], [ENTER]]
    )
    assert place(found.fault) == ("unknown_tool", "writ", None)


def test_an_error_without_harm_is_not_the_fault_beside_a_call_that_did_harm(office):
    found = diagnosed(office, task_of(WRITE), [[NOTE], [("unlock", {"door": "x"})], [NOTE]])
    assert place(found.fault) == ("state_mismatch", "write", None)


def test_a_tool_that_had_gone_through_before_its_error_is_no_failed_recovery(office):
    found = diagnosed(office, task_of(WRITE), [[NOTE], [("write", {})]])
    assert [d.kind for d in found.diagnoses] == [Kind.ARGUMENT_MISSING]


def test_a_refusal_that_led_to_another_wrong_call_is_not_the_fault(office):
    steps = [[UNLOCK], [("enter", {"door": "C3", "how": "walk"})]]
    steps.append([("unlock", {"door": "B2"}), ("enter", {"door": "B2", "how": "run"})])
    found = diagnosed(office, task_of(GO), steps)
    assert place(found.fault) == ("wrong_argument", "enter", "door")


def test_calls_of_one_id_are_told_apart_by_their_step(office):
    wrong = [[("unlock", {"door": "x"})], [UNLOCK], [("enter", {"door": "A1", "how": "run"})]]
    outcome = played(office, task_of(GO), wrong)
    turn = outcome.rollout.turns[0]
    same = [
        step.model_copy(
            update={
                "calls": tuple(c.model_copy(update={"id": "c"}) for c in step.calls),
                "results": tuple(r.model_copy(update={"call_id": "c"}) for r in step.results),
            }
        )
        for step in turn.steps
    ]
    twins = outcome.rollout.model_copy(
        update={"turns": (turn.model_copy(update={"steps": tuple(same)}),)}
    )
    given = (office.template, office.gold, task_of(GO), office.candidate)
    kinds = [d.kind for d in diagnose_rollout(*given, twins).diagnoses]
    assert kinds == [Kind.WRONG_ARGUMENT, Kind.REFUSED]
    assert kinds == [d.kind for d in diagnose_rollout(*given, outcome.rollout).diagnoses]


def test_winners_are_diagnosed_too_and_have_no_fault(office):
    found = diagnosed(office, task_of(GO), [[ENTER], [UNLOCK], [ENTER]])
    assert (found.reward, found.fault) == (1.0, None)
    assert [(d.kind, d.recovered) for d in found.diagnoses] == [(Kind.REFUSED, True)]


@pytest.mark.parametrize(
    ("gold", "steps", "kind"),
    [(WRITE, [[NOTE]], "pass"), ([], [], "correct_abstention"), (None, [[NOTE]], "pass")],
)
def test_a_turn_without_a_flaw_says_so(office, gold, steps, kind):
    found = diagnosed(office, task_of(gold), steps)
    assert [d.kind for d in found.diagnoses] == [kind]
    assert not found.diagnoses[0].kind.blames


def test_a_harmless_call_where_none_is_wanted_is_noted_and_no_fault(office):
    found = diagnosed(office, task_of([], WRITE), [[READ]], [[NOTE]])
    assert [d.kind for d in found.diagnoses] == [Kind.SPURIOUS_CALL, Kind.PASS]
    assert (found.reward, found.fault) == (1.0, None)


def test_right_calls_on_a_state_that_had_diverged_are_a_cascade(office):
    task = task_of([call("unlock", door="A1")], WRITE)
    found = diagnosed(office, task, [[("unlock", {"door": "B2"})]], [[NOTE]])
    assert [place(d) for d in found.diagnoses] == [
        ("wrong_argument", "unlock", "door"),
        ("cascade", None, None),
    ]
    assert found.fault == found.diagnoses[0]


def test_a_refusal_for_what_an_earlier_turn_left_undone_is_not_the_fault(office):
    task = task_of([call("unlock", door="A1")], [call("enter", door="A1")])
    found = diagnosed(office, task, [], [[ENTER]])
    assert place(found.fault) == ("no_call", "unlock", None)
    assert found.fault.turn == 0


def test_the_fault_is_in_the_first_turn_that_mattered(office):
    task = task_of(WRITE, WRITE, WRITE)
    harmless = [[("writ", {})], [NOTE]]
    bad = [[("write", {"text": "b"})]]
    found = diagnosed(office, task, harmless, bad, [])
    assert (found.fault.turn, place(found.fault)) == (1, ("wrong_argument", "write", "text"))


def test_a_difference_that_a_later_turn_undoes_is_no_fault(office):
    task = task_of([call("unlock", door="A1")], [call("unlock", door="B2")], WRITE)
    both = ("unlock", {"door": "B2"})
    found = diagnosed(office, task, [[both]], [[UNLOCK]], [[("write", {"text": "b"})]])
    assert (found.fault.turn, place(found.fault)) == (2, ("wrong_argument", "write", "text"))


def test_an_unscored_rollout_is_unscorable_and_has_no_fault(office):
    rollout = played(office, task_of(WRITE), []).rollout
    broken = rollout.model_copy(update={"score": Score(reward=None), "failure": "it burnt"})
    given = (office.template, office.gold, task_of(WRITE), office.candidate)
    found = diagnose_rollout(*given, broken)
    assert [(d.kind, d.found) for d in found.diagnoses] == [(Kind.UNSCORABLE, "it burnt")]
    assert (found.fault, found.reward) == (None, None)


def test_gold_that_fails_makes_a_rollout_unscorable(office):
    rollout = played(office, task_of(WRITE), [[NOTE]]).rollout
    wrong = task_of([call("enter", door="A1")])
    found = diagnose_rollout(office.template, office.gold, wrong, office.candidate, rollout)
    assert [d.kind for d in found.diagnoses] == [Kind.UNSCORABLE]
    assert "a gold call fails" in found.diagnoses[0].found


def test_a_failed_check_of_a_task_without_gold_is_the_fault(office):
    rollout = played(office, task_of(None), [[NOTE]]).rollout
    failed = Score.model_validate({"reward": 0.0, "checks": [{"name": "is_tidy", "passed": False}]})
    given = (office.template, office.gold, task_of(None), office.candidate)
    found = diagnose_rollout(*given, rollout.model_copy(update={"score": failed}))
    assert (place(found.fault), found.fault.expected) == (
        ("state_mismatch", "write", None),
        "is_tidy",
    )


CALLS = [UNLOCK, ENTER, NOTE, READ, ("write", {"text": "b"}), ("write", "{"), ("writ", {})]
CALLS += [("unlock", {"door": "x"}), ("enter", {"door": 1}), ("enter", {"door": "B2"})]
golds = st.sampled_from([None, [], WRITE, GO, [*GO, *WRITE], [call("read")]])
turns = st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=2), max_size=4)


@settings(max_examples=150)
@given(st.lists(st.tuples(golds, turns), min_size=1, max_size=3))
def test_any_rollout_has_a_fault_if_and_only_if_it_failed(office, rows):
    task = task_of(*(gold for gold, _ in rows))
    found = diagnosed(office, task, *(steps for _, steps in rows))
    assert (found.fault is None) == (found.reward == 1.0)
    if found.fault is not None:
        assert found.fault in found.diagnoses
        assert found.fault.kind.blames
        assert not found.fault.recovered
        assert found.fault.deviates
    assert {d.turn for d in found.diagnoses} == set(range(len(rows)))


def test_labels_do_not_depend_on_the_order_of_rollouts(office):
    tasks = [task_of(gold) for gold in (GO, WRITE, [])]
    tasks = [t.model_copy(update={"id": f"t{n}"}) for n, t in enumerate(tasks)]
    plays = [[[ENTER]], [[NOTE], [UNLOCK]], [[NOTE]]]
    rollouts = [played(office, t, p).rollout for t, p in zip(tasks, plays, strict=True)]

    def labels(order):
        gold = GoldReplays(office.template, keep=1)
        return {
            n: diagnose_rollout(office.template, gold, tasks[n], office.candidate, rollouts[n])
            for n in order
        }

    assert labels([0, 1, 2]) == labels([2, 0, 1]) == labels([1, 2, 0])


def test_an_answer_is_the_last_message_of_its_turn(office):
    rollout = played(office, task_of(WRITE), [[NOTE]], answers={0: "Yes."}).rollout
    assert answer_of(rollout.turns[0]) == "Yes."
    assert answer_of(rollout.turns[0].model_copy(update={"steps": ()})) == ""
