"""Every gold call gets the attempt that stood for it, and no attempt stands for two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.attempts import Attempt, attempts_of, differing, is_exact, match_gold, same_value
from seal.types import CallError, GoldCall, Step, ToolCall, ToolResult, Turn
from tests.diagnose.office import office_at

REFUSED = CallError(kind="refused", code="no", message="No.")


@pytest.fixture(scope="module")
def contract(tmp_path_factory):
    return office_at(tmp_path_factory.mktemp("office") / "office").template.contract


def attempt(step, tool, error=None, **arguments):
    return Attempt(step, ToolCall(id=f"{step}", tool=tool, arguments="{}"), arguments, error)


def write(text, **more):
    return GoldCall(tool="write", arguments={"text": text, **more})


def steps(matches):
    return [match.attempt.step if match.attempt else None for match in matches]


def test_an_exact_attempt_is_given_out_before_one_that_is_near(contract):
    tries = [attempt(0, "write", text="b"), attempt(1, "write", text="a")]
    assert steps(match_gold(contract, [write("a"), write("c")], tries)) == [1, 0]


def test_an_exact_attempt_that_succeeded_goes_before_one_that_did_not(contract):
    tries = [attempt(0, "write", REFUSED, text="a"), attempt(1, "write", text="a")]
    (match,) = match_gold(contract, [write("a")], tries)
    assert (match.attempt.step, match.satisfied) == (1, True)


def test_the_attempt_that_differs_least_stands_for_a_call_and_the_later_of_equals(contract):
    tries = [
        attempt(0, "write", text="x", size=2),
        attempt(1, "write", text="a", size=9),
        attempt(2, "write", text="y", size=1),
        attempt(3, "write", text="x", size=5),
    ]
    assert steps(match_gold(contract, [write("a", size=1)], tries)) == [2]


def test_an_error_that_a_later_call_corrected_stands_for_nothing_while_that_call_is_free(contract):
    tries = [
        attempt(0, "write", REFUSED, text="a", size=7),
        attempt(1, "write", text="b", size=7),
    ]
    assert steps(match_gold(contract, [write("a", size=1)], tries)) == [1]


def test_an_error_keeps_its_call_if_the_later_one_stands_for_another(contract):
    tries = [
        attempt(0, "write", REFUSED, text="a", size=7),
        attempt(1, "write", text="b", size=7),
    ]
    gold = [write("a", size=1), write("b", size=1)]
    assert steps(match_gold(contract, gold, tries)) == [0, 1]


def test_an_attempt_of_another_tool_stands_for_nothing(contract):
    assert steps(match_gold(contract, [write("a")], [attempt(0, "read")])) == [None]
    assert steps(match_gold(contract, [], [attempt(0, "read")])) == []


def test_a_default_left_out_or_spelt_out_is_the_same(contract):
    assert is_exact(contract, write("a"), attempt(0, "write", text="a", size=1, bold=False))
    assert is_exact(contract, write("a", size=1), attempt(0, "write", text="a"))
    assert not is_exact(contract, write("a"), attempt(0, "write", text="a", size=2))


def test_65_is_65_0_and_true_is_not_1(contract):
    assert is_exact(contract, write("a", size=1.0), attempt(0, "write", text="a", size=1))
    assert not is_exact(contract, write("a", size=1), attempt(0, "write", text="a", size=True))
    assert not same_value({"a": [0]}, {"a": [False]})
    assert same_value({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2.0}]})


UNKNOWN = CallError(kind="unknown_tool", code="unknown_tool", message="No.")


@pytest.mark.parametrize(
    ("tool", "text", "stands_for"),
    [("do_write", "b", 1), ("do_write", "a", 0), ("", "b", 1), ("do_read", "", 2)],
)
def test_a_call_that_reached_no_tool_stands_for_the_gold_call_it_looks_like(
    contract, tool, text, stands_for
):
    lost = ToolCall(id="0", tool=tool, arguments=f'{{"text": "{text}"}}' if text else "{}")
    unlock = GoldCall(tool="unlock", arguments={"door": "A1"})
    gold = [write("a"), write("b"), GoldCall(tool="read"), unlock]
    tries = [Attempt(0, lost, {"text": text}, UNKNOWN), attempt(1, "unlock", door="A1")]
    matches = match_gold(contract, gold, tries)
    assert steps(matches)[:3] == [0 if place == stands_for else None for place in range(3)]
    astray = match_gold(contract, gold[:3], [*tries, *tries[:1]])
    assert steps(astray) == [0, 0, None]


def test_what_differs_is_named_in_the_order_of_the_contract(contract):
    tried = attempt(0, "write", note=1, bold=True, text="b")
    assert differing(contract["write"], write("a", size=2), tried) == [
        "text",
        "size",
        "bold",
        "note",
    ]


def test_a_call_whose_arguments_cannot_be_read_is_never_exact(contract):
    broken = Attempt(0, ToolCall(id="0", tool="read", arguments="{"), None, REFUSED)
    assert not is_exact(contract, GoldCall(tool="read"), broken)


gold_calls = st.lists(st.sampled_from("abc").map(write), max_size=4)
tries = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=5)


@given(gold_calls, tries)
def test_no_attempt_stands_for_two_calls_and_every_exact_pair_is_found(contract, gold, made):
    attempts = [
        attempt(step, "write", None if went else REFUSED, text=text)
        for step, (text, went) in enumerate(made)
    ]
    matches = match_gold(contract, gold, attempts)
    assert [match.gold for match in matches] == gold
    used = [step for step in steps(matches) if step is not None]
    assert len(used) == len(set(used)) == min(len(gold), len(made))
    for letter in "abc":
        wanted = sum(call.arguments["text"] == letter for call in gold)
        there = sum(text == letter for text, _ in made)
        exact = [m for m in matches if m.exact and m.gold.arguments["text"] == letter]
        assert len(exact) == min(wanted, there)
        succeeded = sum(text == letter and went for text, went in made)
        assert sum(m.satisfied for m in exact) == min(wanted, succeeded)


def test_attempts_are_read_from_a_turn_and_those_over_the_limit_left_out():
    calls = [
        ToolCall(id="a", tool="write", arguments='{"text": "a"}'),
        ToolCall(id="b", tool="write", arguments="{"),
        ToolCall(id="c", tool="read", arguments=""),
        ToolCall(id="d", tool="read", arguments=" " * 101),
    ]
    results = [ToolResult(call_id=made.id, content="") for made in calls]
    turn = Turn(
        user="Hi.",
        steps=(
            Step(content="", calls=tuple(calls[:1]), results=tuple(results[:1])),
            Step(content="", calls=tuple(calls[1:]), results=tuple(results[1:])),
        ),
        stop="call_limit",
    )
    found = attempts_of(turn, 100)
    assert [(one.step, one.call.id, one.arguments) for one in found] == [
        (0, "a", {"text": "a"}),
        (1, "b", None),
        (1, "c", {}),
    ]
