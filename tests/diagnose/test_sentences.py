"""Each kind of diagnosis has one sentence, which says where, what, and what gold does there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.sentences import sentence
from seal.types import GOLD_SUSPECT, Diagnosis, Kind

REFUSAL = "There is no such room."
CASES = [
    (Kind.MALFORMED_CALL, {"tool": "book", "step": 0, "found": '{"day": "mo"'}),
    (Kind.MALFORMED_CALL, {"step": 0, "found": "{}"}),
    (Kind.UNKNOWN_TOOL, {"tool": "boook", "expected": "There is no tool 'boook'."}),
    (Kind.ARGUMENT_MISSING, {"tool": "book", "argument": "day", "found": "null"}),
    (Kind.ARGUMENT_UNEXPECTED, {"tool": "book", "argument": "note", "found": '"please"'}),
    (
        Kind.ARGUMENT_TYPE,
        {"tool": "book", "argument": "room", "found": "4", "expected": "'room' is no text"},
    ),
    (
        Kind.ARGUMENT_VALUE,
        {"tool": "book", "argument": "room", "found": '"Z1"', "expected": "Not one of A1, B2."},
    ),
    (
        Kind.REFUSED,
        {
            "tool": "book",
            "argument": "room",
            "code": "unknown_room",
            "found": '"north"',
            "expected": REFUSAL,
        },
    ),
    (
        Kind.REFUSED,
        {"tool": "enter", "code": "locked", "found": "null", "expected": "It is locked"},
    ),
    (
        Kind.REFUSED,
        {
            "tool": "book",
            "argument": "room",
            "code": "unknown_room",
            "found": '"north"',
            "expected": REFUSAL,
            "recovered": True,
        },
    ),
    (
        Kind.WRONG_ARGUMENT,
        {"tool": "book", "argument": "hour", "found": '"14.00"', "expected": '"2 pm"'},
    ),
    (
        Kind.WRONG_ARGUMENT,
        {"tool": "book", "argument": "length", "found": "null", "expected": "60"},
    ),
    (
        Kind.WRONG_ARGUMENT,
        {"tool": "book", "argument": "length", "found": "60", "expected": "null"},
    ),
    (Kind.WRONG_ARGUMENT, {"tool": "book"}),
    (Kind.WRONG_TOOL, {"tool": "look", "found": 'look{"day": 1}', "expected": "book(day=1)"}),
    (Kind.MISSING_CALL, {"tool": "book", "expected": 'book(day="mo")'}),
    (Kind.NO_CALL, {"tool": "book", "expected": 'book(day="mo")'}),
    (Kind.SPURIOUS_CALL, {"tool": "book", "found": 'book{"day": "mo"}', "expected": "no call"}),
    (
        Kind.STATE_MISMATCH,
        {"tool": "book", "found": "rooms = 2", "expected": "rooms = 1"},
    ),
    (Kind.STATE_MISMATCH, {"tool": "book", "expected": "is_booked"}),
    (Kind.OUTPUT_MISSING, {"tool": "look", "expected": '["A1"]'}),
    (Kind.ANSWER_MISMATCH, {"found": "Done.", "expected": "42"}),
    (Kind.ANSWER_MISMATCH, {"found": " ", "expected": "42"}),
    (Kind.RECOVERY_FAILURE, {"tool": "book", "code": "unknown_room", "expected": REFUSAL}),
    (Kind.RECOVERY_FAILURE, {"code": "malformed_call", "expected": "This is not a call."}),
    (
        Kind.LIMIT_REACHED,
        {"tool": "book", "found": "calls: look, look", "expected": 'book(day="mo")'},
    ),
    (Kind.LIMIT_REACHED, {"tool": "book", "expected": 'book(day="mo")'}),
    (Kind.CASCADE, {}),
    (Kind.PASS, {}),
    (Kind.CORRECT_ABSTENTION, {}),
    (Kind.UNSCORABLE, {"found": "ModelFailure: gone\nsecond line"}),
    (Kind.UNSCORABLE, {"code": GOLD_SUSPECT, "found": "gold fails the check is_lit"}),
]


def test_every_kind_has_its_sentence(golden):
    said = [(kind.value, sentence(Diagnosis(turn=2, kind=kind, **more))) for kind, more in CASES]
    assert {kind for kind, _ in CASES} == set(Kind)
    golden("sentences.txt", "".join(f"{kind:<20}{text}\n" for kind, text in said))


texts = st.text(max_size=300)


@given(
    kind=st.sampled_from(Kind),
    tool=st.sampled_from(["book", None]),
    argument=st.sampled_from(["day", None]),
    code=st.sampled_from(["taken", None]),
    expected=texts,
    found=texts,
    recovered=st.booleans(),
)
def test_whatever_was_found_makes_one_line_of_bounded_length(**fields):
    said = sentence(Diagnosis(turn=0, **fields))
    assert said == " ".join(said.split(" "))
    assert "\n" not in said
    assert 10 < len(said) < 500
    assert "None" not in said or "None" in fields["expected"] + fields["found"]


@pytest.mark.parametrize("value", ["2 pm", 65.0, ["a"], None])
def test_a_value_is_shown_as_it_was_sent(value):
    shown = json.dumps(value)
    given_ = Diagnosis(
        turn=0, kind=Kind.ARGUMENT_VALUE, tool="book", argument="hour", found=shown, expected="No."
    )
    assert f"hour={shown}" in sentence(given_)
