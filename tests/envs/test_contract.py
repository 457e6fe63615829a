"""Type hints are the contract: calls are checked against them strictly, and never repaired."""

import json
from enum import Enum
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, JsonValue

from seal.envs import Environment, load_environment
from seal.envs.contract import (
    Accepted,
    Contract,
    Prose,
    accept,
    build_tool,
    hint_of,
    parse_arguments,
    without_prose,
)
from seal.errors import TemplateError
from seal.types import Rule, ToolCall
from tests.factories import WORLD, edited, write_environment


class Point(BaseModel):
    """A nested argument."""

    x: int
    label: str = ""


class Tree(BaseModel):
    """An argument type that contains itself."""

    children: list["Tree"]


class Colour(Enum):
    """Values that are no JSON by themselves."""

    WARM = "warm"


def checker(**hints):
    """Checks the arguments of a tool with these hints, all of them required."""
    made = build_tool("act", {n: (hint, ...) for n, hint in hints.items()}, prose=Prose())
    contract = Contract({"act": made})

    def check(arguments):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return accept(contract, ToolCall(id="1", tool="act", arguments=text), ["act"])

    return check


def verdict(result):
    return "accepted" if isinstance(result, Accepted) else (result.kind, result.argument)


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (int, [9, 9.0, -1, 0, 10**30], ["9", 9.5, True, None, [9]]),
        (float, [9, 9.0, 9.5], ["9.5", True, None]),
        (str, ["", "9", "é\U0001f600"], [9, None, True, ["a"]]),
        (bool, [True, False], [1, 0, "true", None]),
        (list[int], [[], [1, 2.0]], [["1"], [1.5], "1", {"0": 1}, None]),
        (dict[str, int], [{}, {"a": 1}], [{"a": "1"}, [], None]),
        (Optional[int], [None, 3], ["3", 3.5]),  # noqa: UP045 - as authors write it
        (int | str, [3, "3"], [None, 3.5, []]),
        (tuple[int, str], [[1, "a"]], [["1", "a"], [1], [1, "a", 2]]),
        (set[str], [["a", "b"]], [[1], "ab"]),
        (Colour, ["warm"], [1, None]),
        (Point, [{"x": 1}, {"x": 9.0, "label": "a"}], [{"x": "9"}, {}, {"x": 1, "label": 3}, 7]),
        (list[Point], [[], [{"x": 1}]], [[{"x": "1"}], {"x": 1}]),
        (Point | None, [None, {"x": 1}], [{"x": "1"}, "x"]),
        (JsonValue, [None, 1, "a", [1, {"a": None}]], []),
    ],
)
def test_values_pass_by_their_own_type_only(hint, right, wrong):
    check = checker(value=hint)
    assert [verdict(check({"value": value})) for value in right] == ["accepted"] * len(right)
    for value in wrong:
        kind, argument = verdict(check({"value": value}))
        assert (kind, argument) in {("argument_type", "value"), ("argument_value", "value")}, value


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (Literal["a", 3], ["a", 3, 3.0], ["b", "3", 4]),
        (Annotated[int, Field(ge=1, lt=5)], [1, 4], [0, 5]),
        (Annotated[str, Field(pattern="^[a-z]+$", max_length=3)], ["abc"], ["abcd", "A", ""]),
        (Annotated[list[int], Field(min_length=1, max_length=2)], [[1]], [[], [1, 2, 3]]),
        (Annotated[int, Field(multiple_of=5)], [10], [11]),
        (Colour, ["warm"], ["cold"]),
    ],
)
def test_a_value_outside_enum_range_or_pattern_is_told_from_a_wrong_type(hint, right, wrong):
    check = checker(value=hint)
    assert {verdict(check({"value": value})) for value in right} == {"accepted"}
    assert {verdict(check({"value": v})) for v in wrong} == {("argument_value", "value")}


def test_a_tool_gets_the_types_of_its_hints_and_the_record_what_was_sent():
    check = checker(point=Point, at=float, count=int)
    accepted = check('{"point": {"x": 9.0}, "at": 2, "count": 3.0}')
    assert accepted.arguments == {"point": Point(x=9), "at": 2.0, "count": 3}
    assert type(accepted.arguments["at"]) is float
    assert accepted.given == {"point": {"x": 9}, "at": 2, "count": 3}


def test_what_a_tool_does_to_its_arguments_does_not_change_the_record():
    accepted = checker(items=list[JsonValue])({"items": [[1], 2]})
    accepted.arguments["items"][0].append(9)
    assert accepted.given == {"items": [[1], 2]}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ("argument_missing", "a")),
        ({"a": 1}, ("argument_missing", "b")),
        ({"a": 1, "b": 2, "c": 3}, ("argument_unexpected", "c")),
        ({"a": "1", "b": 2, "c": 3}, ("argument_unexpected", "c")),
        ({"b": "2", "a": "1"}, ("argument_type", "a")),
        ({"a": 1, "b": 2, "argument_0": 3}, ("argument_unexpected", "argument_0")),
        ({"argument_0": 1, "b": 2}, ("argument_missing", "a")),
    ],
)
def test_one_problem_is_told_at_a_time_and_missing_arguments_first(arguments, expected):
    assert verdict(checker(a=int, b=int)(arguments)) == expected


ODD = ["schema", "json", "model_config", "title", "copy", "description", "properties", "type"]
ODD += ["items", "required", "default", "class_", "_private", "self_", "model_fields", "validate"]


def test_arguments_may_have_any_name():
    check = checker(**dict.fromkeys(ODD, int))
    accepted = check(dict.fromkeys(ODD, 1))
    assert accepted.arguments == dict.fromkeys(ODD, 1)
    for name in ODD:
        assert verdict(check({**dict.fromkeys(ODD, 1), name: "x"})) == ("argument_type", name)


def test_arguments_of_any_name_stand_in_the_schema_of_an_environment(tmp_path):
    world = edited(
        WORLD,
        "    @tool\n    def plug_in",
        "    @tool(mutates=False, schema=Rule(unit='m'))\n"
        "    def look(self, schema: str, json: int, model_config: str, title: str) -> str:\n"
        "        return schema + title\n\n"
        "    @tool\n    def plug_in",
    )
    template = load_environment(write_environment(tmp_path / "lamp", world=world))
    names = ("schema", "json", "model_config", "title")
    assert template.contract["look"].arguments == names
    tool = template.renderer.tools(template.original)["look"]
    assert tuple(tool.parameters["properties"]) == names
    assert {f"look.constraint.{name}" for name in names} <= set(template.renderer.slots)


MALFORMED = [
    "{",
    "[]",
    "7",
    "null",
    '"a"',
    " ",
    "{'a': 1}",
    '{"a": NaN}',
    '{"a": -Infinity}',
    '{"a": 1e999}',
    '{"a": 1} {}',
    r'{"a": "\ud800"}',
    r'{"\udfff": 1}',
    '{"a": ' + "1" * 5000 + "}",
    '{"a": ' + "[" * 300 + "]" * 300 + "}",
    '{"a": ' + "[" * 700 + "]" * 700 + "}",
    '{"a": ' + '{"a":' * 9000 + "1" + "}" * 9001,
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_json_object_that_can_be_kept_is_a_malformed_call(text):
    assert parse_arguments(text) is None
    refused = checker(a=JsonValue)(text)
    assert verdict(refused) == ("malformed_call", None)
    assert type(refused).model_validate_json(refused.model_dump_json()) == refused


@given(st.text())
def test_any_text_is_answered(text):
    result = checker(a=int)(text)
    assert isinstance(result, Accepted) or result.model_dump_json()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), json_values))
def test_any_arguments_are_answered_and_the_answer_can_be_kept(arguments):
    result = checker(a=int, b=list[str])(arguments)
    if isinstance(result, Accepted):
        assert result.given == arguments
    else:
        assert type(result).model_validate_json(result.model_dump_json()) == result


def test_nothing_at_all_is_a_call_without_arguments():
    assert verdict(checker()("")) == "accepted"
    assert verdict(checker(a=int)("")) == ("argument_missing", "a")


def test_a_tool_that_is_not_shown_is_unknown():
    check = Contract({"act": build_tool("act", {}, prose=Prose())})
    hidden = accept(check, ToolCall(id="1", tool="act", arguments="{}"), [])
    assert (hidden.kind, hidden.received) == ("unknown_tool", "act")
    nameless = accept(check, ToolCall(id="1", tool="", arguments="{}"), ["act"])
    assert nameless.kind == "malformed_call"


def test_an_argument_error_carries_the_value_and_the_declared_rule():
    rule = Rule(minimum=1)
    made = build_tool("act", {"a": (int, ...)}, prose=Prose(), rules={"a": rule})
    contract = Contract({"act": made})
    error = accept(contract, ToolCall(id="1", tool="act", arguments='{"a": "x"}'), ["act"])
    assert (error.received, error.rule) == ("x", rule)


def test_a_default_may_be_left_out():
    made = build_tool("act", {"a": (int, 3)}, prose=Prose())
    assert made.contract.required == ()
    call = ToolCall(id="1", tool="act", arguments="{}")
    assert accept(Contract({"act": made}), call, ["act"]).arguments == {}


@pytest.mark.parametrize("hint", [Tree, list[Tree], Tree | None, dict[str, Tree]])
def test_a_type_that_contains_itself_is_refused(hint):
    with pytest.raises(TemplateError, match="Tree contains itself"):
        checker(a=hint)


@pytest.mark.parametrize("hint", [type, Environment, "nonsense"])
def test_a_hint_that_is_no_json_type_is_refused(hint):
    with pytest.raises(TemplateError, match="no JSON types"):
        checker(a=hint)


def test_a_contract_has_no_prose_and_arguments_of_those_names_stay():
    class Worded(BaseModel):
        """Prose."""

        title: str = Field(description="Prose.", examples=["Prose."])

    made = build_tool(
        "act",
        {
            "description": (Annotated[int, Field(description="Prose.")], ...),
            "worded": (Worded, ...),
        },
        prose=Prose(),
    )
    assert "Prose" not in json.dumps(made.contract.parameters)
    assert made.contract.arguments == ("description", "worded")
    nested = made.contract.parameters["properties"]["worded"]
    assert nested["properties"] == {"title": {"type": "string"}}


def test_stripping_prose_twice_changes_nothing_more():
    schema = build_tool("act", {"a": (list[Point], ...)}, prose=Prose()).contract.parameters
    assert without_prose(schema) == schema


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "integer"}, 1, "1"),
        ({"type": "float"}, 1.5, "1.5"),
        ({"type": "boolean"}, True, 1),
        ({"type": "array", "items": {"type": "integer"}}, [1], ["1"]),
        ({"type": "dict"}, {"a": [1]}, [1]),
        ({"enum": ["a", 2]}, 2, "b"),
        ({"type": ["string", "null"]}, None, 1),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", 1.5),
    ],
)
def test_an_imported_schema_is_as_strict_as_a_hint(schema, right, wrong):
    check = checker(value=hint_of(schema))
    assert verdict(check({"value": right})) == "accepted"
    assert verdict(check({"value": wrong}))[1] == "value"
