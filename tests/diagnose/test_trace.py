"""What a turn is blamed for, judged from where gold stood; and what leaves no trace until later."""

import pytest

from seal.diagnose.trace import differing_parts
from seal.envs import load_environment
from seal.rollout.agent import Arena
from tests.diagnose.office import call, diagnosed, place, task_of
from tests.factories import TOML, write_environment

WORLD = '''
from seal.envs import Environment, check, tool
from seal.errors import ToolError
from seal.types import Task


class Shed(Environment):
    """A shed with shelves; where one stands in it is not to be seen."""

    verify_state = "VERIFY"

    def reset(self, task: Task) -> None:
        self.shelves = {}
        self.light = False
        self._at = "door"

    @tool
    def go(self, to: str) -> str:
        self._at = to
        return "there"

    @tool
    def put(self, thing: str, day: str = "today") -> str:
        if thing in self.shelves.get(day, {}):
            raise ToolError("there", "It is there already.", argument="thing")
        self.shelves.setdefault(day, {})[thing] = self._at
        return "put"

    @tool
    def take(self, thing: str) -> str:
        if thing not in self.shelves.get("today", {}):
            raise ToolError("gone", "It is not there.")
        del self.shelves["today"][thing]
        return "taken"

    @tool
    def press(self) -> str:
        self.light = not self.light
        return "click"

    @tool(mutates=False)
    def look(self) -> str:
        return f"{self.light} {self.shelves}"

    @check
    def is_lit(self) -> bool:
        return self.light

    @check
    def is_dark(self) -> bool:
        return not self.light
'''
GO, PUT, PRESS, LOOK = ("go", {"to": "A"}), ("put", {"thing": "x"}), ("press", {}), ("look", {})
THERE, DOWN = [call("go", to="A")], [call("put", thing="x")]


def shed_at(folder, verify):
    path = write_environment(
        folder,
        toml=f"{TOML}\n[limits]\nsteps = 4\n",
        world=WORLD.replace("VERIFY", verify),
        tools={},
        slots="",
        tasks=[task_of([call("look")]).model_dump(mode="json")],
    )
    return Arena(load_environment(path))


@pytest.fixture(scope="module")
def shed(tmp_path_factory):
    return shed_at(tmp_path_factory.mktemp("shed") / "shed", "final")


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """The shed of which every turn must leave gold's state."""
    return shed_at(tmp_path_factory.mktemp("strict") / "shed", "every_turn")


def turns(found):
    """The kinds said of each turn."""
    kinds = {}
    for one in found.diagnoses:
        kinds.setdefault(one.turn, []).append(one.kind.value)
    return list(kinds.values())


def fault(found):
    return (found.fault.turn, *place(found.fault))


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ([[("go", {"to": "B"})]], (0, "wrong_argument", "go", "to")),
        ([[GO], [("go", {"to": "B"})]], (0, "state_mismatch", "go", None)),
        ([[LOOK]], (0, "wrong_tool", "look", None)),
        ([[("goo", {"to": "A"})]], (0, "unknown_tool", "goo", None)),
    ],
)
def test_what_leaves_no_trace_is_the_fault_if_a_later_turn_goes_wrong_for_it(shed, first, expected):
    found = diagnosed(shed, task_of(THERE, [], DOWN), first, [], [[PUT]])
    assert fault(found) == expected
    assert turns(found)[1:] == [["correct_abstention"], ["cascade"]]


def test_a_call_on_abstention_that_leaves_no_trace_is_the_fault_too(shed):
    found = diagnosed(shed, task_of(THERE, [], DOWN), [[GO]], [[("go", {"to": "B"})]], [[PUT]])
    assert fault(found) == (1, "spurious_call", "go", None)
    harmless = diagnosed(shed, task_of(THERE, [], DOWN), [[GO]], [[LOOK]], [[("put", {})]])
    assert fault(harmless) == (2, "argument_missing", "put", "thing")


def test_errors_that_only_came_of_an_earlier_turn_are_not_told_of_a_later_one(shed):
    task = task_of(DOWN, [call("take", thing="x"), call("press")])
    found = diagnosed(shed, task, [], [[("take", {"thing": "x"})], [PRESS]])
    assert turns(found) == [["no_call"], ["cascade"]]


def test_a_fault_of_its_own_is_told_of_a_turn_that_started_astray(shed):
    task = task_of(DOWN, [call("take", thing="x"), call("press")])
    found = diagnosed(shed, task, [], [[("take", {"thing": "x"})]])
    assert turns(found) == [["no_call"], ["missing_call"]]
    assert fault(found)[0] == 0


def test_a_call_on_abstention_counts_only_if_a_turn_that_is_judged_finds_it(strict):
    ahead = diagnosed(strict, task_of([], DOWN, [call("press")]), [[PUT]], [[LOOK]], [])
    assert fault(ahead) == (2, "no_call", "press", None)
    astray = diagnosed(strict, task_of([], DOWN), [[("put", {"thing": "y"})]], [[PUT]])
    assert fault(astray) == (0, "spurious_call", "put", None)


def test_a_part_of_the_state_that_was_set_right_is_no_fault_whatever_else_goes_wrong(shed):
    task = task_of(DOWN, [call("put", thing="y")], [call("put", thing="z")])
    late = [[("put", {"thing": "z"})], [PUT]]
    found = diagnosed(shed, task, [], [[("put", {"thing": "w"})]], late)
    assert fault(found) == (1, "wrong_argument", "put", "thing")


def test_a_refusal_names_the_argument_that_is_not_golds(shed):
    task = task_of([*DOWN, call("put", thing="x", day="monday")])
    found = diagnosed(shed, task, [[PUT], [("put", {"thing": "x", "day": "today"})]])
    assert fault(found) == (0, "refused", "put", "day")
    assert (found.fault.expected, found.fault.found) == ("It is there already.", '"today"')


def test_what_makes_no_difference_is_not_blamed_for_what_does(shed):
    gold = [call("go", to="B"), *THERE, *DOWN, call("press")]
    elsewhere = ("go", {"to": "C"})
    found = diagnosed(shed, task_of(gold), [[elsewhere], [GO, PUT]])
    assert fault(found) == (0, "missing_call", "press", None)
    told = task_of(gold, answers={0: ["lit"]})
    found = diagnosed(shed, told, [[elsewhere], [GO, PUT], [PRESS]], answers={0: "dark"})
    assert fault(found) == (0, "answer_mismatch", None, None)


def test_an_error_after_which_the_policy_gave_up_is_the_fault_of_all_it_left_undone(shed):
    gold = [call("go", to="B"), *THERE, *DOWN]
    found = diagnosed(shed, task_of(gold), [[("go", {"to": 1})]])
    assert fault(found) == (0, "argument_type", "go", "to")


def test_of_several_calls_beside_golds_the_one_that_did_harm_is_the_fault(shed):
    found = diagnosed(shed, task_of(DOWN), [[("go", {"to": "door"})], [PUT], [PRESS]])
    assert fault(found) == (0, "state_mismatch", "press", None)


def test_an_answer_that_an_earlier_fault_led_to_is_no_fault(shed):
    task = task_of([call("press")], [call("look")], answers={1: ["True"]})
    found = diagnosed(shed, task, [], [[LOOK]], answers={1: "False"})
    assert turns(found) == [["no_call"], ["cascade"]]
    own = diagnosed(shed, task, [[PRESS]], [[LOOK]], answers={1: "False"})
    assert fault(own) == (1, "answer_mismatch", None, None)


LIT = {"checks": ["is_lit"]}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([[[LOOK]], [[PRESS], [PRESS]]], (1, "state_mismatch", "press", None)),
        ([[[PRESS]], [[PRESS]]], (1, "state_mismatch", "press", None)),
        ([[[("press", "{")]], [[LOOK]]], (0, "malformed_call", "press", None)),
        ([[[LOOK]], [[("presss", {})]]], (1, "unknown_tool", "presss", None)),
        ([[[LOOK]], []], (1, "no_call", None, None)),
        ([[[LOOK]], [[LOOK]] * 9], (1, "limit_reached", "look", None)),
        ([[[("presss", {})], [GO]], [[LOOK]]], (1, "state_mismatch", "look", None)),
    ],
)
def test_a_task_without_gold_is_diagnosed_from_its_checks(shed, steps, expected):
    found = diagnosed(shed, task_of(None, None, **LIT), *steps)
    assert fault(found) == expected


def test_the_turn_that_made_a_check_false_is_at_fault(shed):
    found = diagnosed(shed, task_of(None, None, None, checks=["is_dark"]), [], [[PRESS]], [[LOOK]])
    assert fault(found) == (1, "state_mismatch", "press", None)
    assert found.fault.expected == "is_dark"


def test_a_check_that_fails_though_gold_was_followed_is_a_fault_of_the_last_turn(shed):
    found = diagnosed(shed, task_of(DOWN, THERE, **LIT), [[PUT]], [[GO]])
    assert found.diagnoses[-1] == found.fault or found.suspect


def test_parts_that_differ_are_as_small_as_can_be():
    one = {"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": 0}
    other = {"a": {"b": 1, "c": [2, 1]}, "d": 1, "f": {}, "g": {"h": {"i": 0}}}
    parts = {("a", "c"), ("e",), ("f",), ("g", "h", "i")}
    assert set(differing_parts(one, other)) == set(differing_parts(other, one)) == parts
    assert list(differing_parts(one, one)) == []
