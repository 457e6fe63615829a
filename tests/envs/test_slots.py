"""A slot text is data: it comes out as it went in, but for its placeholders and its blanks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.envs.slots import (
    PLACEHOLDERS,
    RECEIVED_CHARS,
    call_skeleton,
    constraint_values,
    fill,
    parse_text,
    recovery_values,
    rule_values,
)
from seal.errors import RULE_KEYS
from seal.types import Rule, ToolContract

KINDS = list(PLACEHOLDERS)
DIM = ToolContract(
    name="dim",
    parameters={
        "properties": {"level": {"type": "integer"}, "colour": {"enum": ["W3"]}, "note": {}},
        "required": ["level", "colour"],
    },
    rule=Rule(requires="plug_in"),
    rules={"level": Rule(unit="percent", minimum=0, maximum=99.5)},
)


def literal(text):
    """The slot text that says this."""
    return text.replace("{", "{{").replace("}", "}}")


def collapsed(text):
    return " ".join(text.split())


@given(st.text(), st.sampled_from(KINDS))
def test_any_text_can_be_said_and_comes_out_but_for_its_blanks(text, kind):
    assert fill(literal(text), kind, {}) == collapsed(text)


MARKUP = ["{{ 7 * 7 }}", "{% raw %}", "${x}", "{# c #}", "{x!r}", "{0}", "%s", "\\1", "{{{x}}}"]


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize("kind", KINDS)
def test_markup_is_text(text, kind):
    assert fill(literal(text), kind, {"x": "expanded"}) == text


@given(
    st.dictionaries(st.sampled_from(PLACEHOLDERS["recovery"]), st.text(min_size=1), min_size=1),
    st.text("ab{}", max_size=8),
)
def test_what_a_placeholder_brings_in_is_not_looked_at_again(values, text):
    name = next(iter(values))
    values[name] = "{unit}{{}}. {tool}"
    filled = fill(f"<{literal(text)}{{{name}}}>", "recovery", {**values, "unit": "x", "tool": "y"})
    expected = {"unit": "x", "tool": "y"}.get(name, values[name])
    assert filled == f"<{collapsed(text)}{expected}>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In {unit}. At most {maximum}.", "In minutes."),
        ("At most {maximum}! In {unit}?", "In minutes?"),
        ("At most {maximum}.", ""),
        ("Between {minimum} and {unit}. Then stop.", "Then stop."),
        ("Wait...  In {unit}.\nNo   more.", "Wait... In minutes. No more."),
        ("{unit}", "minutes"),
        ("{unit} {unit}", "minutes minutes"),
        ("3.5 {unit}", "3.5 minutes"),
        ("", ""),
        ("   ", ""),
    ],
)
def test_a_sentence_with_an_empty_placeholder_is_dropped(text, expected):
    values = {**dict.fromkeys(PLACEHOLDERS["constraint"], ""), "unit": "minutes"}
    assert fill(text, "constraint", values) == expected


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (
            "guidance",
            "In {unit}.",
            "no placeholder '{unit}' in a guidance text. Placeholders: none",
        ),
        ("affordance", "{tool}", "no placeholder '{tool}' in a affordance text"),
        ("constraint", "{received}", "no placeholder '{received}'"),
        ("constraint", "{unti}", "{allowed}, {format}, {unit}"),
        ("recovery", "{", "a lone '{'"),
        ("recovery", "a } b", "a lone '}'"),
        ("recovery", "{}", "a lone '{}'"),
        ("recovery", "{unit.x}", "a lone '{'"),
        ("recovery", "{Unit}", "a lone '{'"),
        ("recovery", "{% raw %}", "a lone '{'"),
    ],
)
def test_other_placeholders_and_lone_braces_are_errors(kind, text, message):
    with pytest.raises(ValueError, match="for literal braces") as caught:
        parse_text(text, kind)
    assert message in str(caught.value)


@given(st.text("ab .!?{}_unit", max_size=20), st.sampled_from(KINDS))
def test_what_parses_can_be_filled(text, kind):
    try:
        parse_text(text, kind)
    except ValueError:
        return
    assert isinstance(fill(text, kind, dict.fromkeys(PLACEHOLDERS[kind], "v")), str)


def test_every_placeholder_of_a_kind_has_a_value():
    assert set(constraint_values(DIM, "level")) == set(PLACEHOLDERS["constraint"])
    assert set(recovery_values(DIM, Rule(), None, None)) == set(PLACEHOLDERS["recovery"])
    assert set(recovery_values(None, Rule(), None, None)) == set(PLACEHOLDERS["recovery"])


def test_a_constraint_cites_what_is_declared_of_its_own_argument():
    level, colour = constraint_values(DIM, "level"), constraint_values(DIM, "colour")
    assert (level["unit"], level["minimum"], level["maximum"]) == ("percent", "0", "99.5")
    assert {key: colour[key] for key in RULE_KEYS} == dict.fromkeys(RULE_KEYS, "")
    assert level["required_arguments"] == "level, colour"
    assert constraint_values(DIM, "level.inner")["unit"] == "percent"


def test_a_zero_is_something_to_say():
    assert fill("At least {minimum}.", "constraint", constraint_values(DIM, "level"))


def test_accepted_values_are_quoted_and_say_what_they_stand_for():
    assert rule_values(Rule(allowed=("a b", 3, True)))["allowed"] == '"a b", 3, true'
    assert rule_values(Rule(allowed={"blue": "R7"}))["allowed"] == 'blue="R7"'
    assert rule_values(Rule(allowed=()))["allowed"] == ""


@given(st.text(max_size=200))
def test_a_received_value_is_quoted_and_cut(text):
    shown = recovery_values(DIM, Rule(), "colour", text)["received"]
    assert len(shown) <= RECEIVED_CHARS
    assert shown.startswith('"')
    assert shown.endswith('"' if len(shown) < RECEIVED_CHARS else ('"', "…"))


def test_the_example_is_a_form_and_no_answer():
    assert call_skeleton(DIM) == "dim(level=<integer>, colour=<value>)"
    assert recovery_values(DIM, Rule(), None, None)["example"] == call_skeleton(DIM)
