"""What the simulated reader takes a text to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.envs.slots import fill, rule_values
from seal.models.reading import prescribed, says_value, stands_in, states, teaches_abstention
from seal.types import Rule


@pytest.mark.parametrize(
    ("value", "text", "stands"),
    [
        (6, "at most 6", True),
        (6, "at most 6.", True),
        (6, "at most 60", False),
        (6, "at most 16", False),
        (6, "at most 6.5", False),
        (6, "at most 0.6", False),
        (6, "a6", False),
        ("R7", 'blue="R7"', True),
        ("R7", "R77 or AR7", False),
        ("litres", "In litres, please", True),
        ("a.b", "aXb", False),
        (True, "it is true", True),
        ("naïve", "naïve?", True),
        ("", "", True),
    ],
)
def test_a_value_stands_in_a_text_as_a_whole_word(value, text, stands):
    assert stands_in(value, text) is stands


RULE = Rule(allowed={"warm": "W3", "cold": "C9"}, unit="percent", minimum=1, maximum=100)


def test_a_rule_is_stated_only_by_all_of_it():
    assert states(RULE, "warm=W3, cold=C9, from 1 to 100 percent")
    for part in ("warm", "W3", "C9", "percent", "100"):
        said = "warm=W3, cold=C9, from 1 to 100 percent".replace(part, "")
        assert not states(RULE, said), part
    assert not states(Rule(), "anything")
    assert not states(Rule(unit="m"), "")


words = st.text("abcdefgh", min_size=1, max_size=6)


@given(words, words, st.integers(0, 999), st.integers(0, 999), st.text(max_size=10))
def test_a_rule_that_placeholders_write_out_is_stated(unit, form, low, high, noise):
    rule = Rule(unit=unit, format=form, minimum=low, maximum=high)
    text = "In {unit}, as {format}, {minimum} to {maximum}."
    said = fill(text, "constraint", rule_values(rule))
    assert states(rule, f"{noise} {said} {noise}")
    assert not states(rule, "")


def test_only_a_text_of_some_length_can_be_read_off():
    assert says_value("R7", ["Room R7 is blue."])
    assert not says_value("R7", ["Room R77."])
    for short in ("R", 7, 1234, True, None, ["R7"]):
        assert not says_value(short, [f"{short}"])


TOOLS = ["book", "check", "check_in", "look"]


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Call check first.", ["check"]),
        ("Needs look, then check. Books.", ["look", "check"]),
        ("First check_in.", ["check_in"]),
        ("Look before you leap. Call check after.", ["check"]),
        ("Calls check. Then look.", []),
        ("Call book first.", []),
        ("Requires check. Requires check.", ["check"]),
        ("Before this, look. Check_in first.", ["look"]),
        ("The firstborn checks.", []),
        ("", []),
    ],
)
def test_a_plan_is_what_a_sentence_of_order_names(text, plan):
    assert prescribed("book", text, TOOLS) == plan


@pytest.mark.parametrize(
    ("text", "taught"),
    [
        ("If something is missing, ask.", True),
        ("Decline what no tool can do.", True),
        ("Otherwise call nothing.", True),
        ("Do what the user asks with the tools.", False),
        ("A task of masks.", False),
        ("", False),
    ],
)
def test_guidance_teaches_to_ask_or_decline(text, taught):
    assert teaches_abstention(text) is taught
