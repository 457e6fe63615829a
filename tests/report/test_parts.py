"""The figures, changes and places that the report is made of."""

from hypothesis import given
from hypothesis import strategies as st

from seal.report.charts import SCORES, difference_axis
from seal.report.diff import change
from seal.report.wording import MEANING, clipped, name_parts, signed
from seal.types import Kind

TEXTS = st.text(st.sampled_from("ab {}.\n"), max_size=40)
DIFFERENCES = st.floats(-1, 1)


@given(TEXTS, TEXTS)
def test_the_pieces_of_a_change_join_to_both_texts(before, after):
    found = change(before, after)
    assert "".join(piece.text for piece in found.before) == before
    assert "".join(piece.text for piece in found.after) == after


@given(TEXTS)
def test_a_text_that_stays_has_no_changed_piece(text):
    found = change(text, text)
    assert not any(piece.changed for piece in (*found.before, *found.after))


def test_a_text_that_goes_on_keeps_what_it_said():
    found = change("Use a room.", "Use a room. Call check first.")
    assert [piece.text for piece in found.after if piece.changed] == ["Call check first."]
    assert not any(piece.changed for piece in found.before)


@given(st.lists(DIFFERENCES), DIFFERENCES, DIFFERENCES)
def test_an_axis_holds_zero_and_its_values_in_their_order(values, one, other):
    axis = difference_axis([*values, one, other])
    assert axis.low <= 0 <= axis.high
    assert axis.low <= min(one, other)
    assert max(one, other) <= axis.high
    assert 0 <= axis.at(min(one, other)) <= axis.at(max(one, other)) <= 100
    assert 0 <= axis.zero <= 100


def test_a_score_stands_where_it_is():
    assert SCORES.mark(0.0, 0.25, 1.0).middle == 25.0


@given(st.floats(-1, 1))
def test_a_difference_has_the_sign_it_has(value):
    shown = signed(value)
    assert shown.startswith("+" if value > 0 else "\N{MINUS SIGN}") or float(shown) == 0


@given(st.text(), st.integers(1, 20))
def test_a_clipped_text_begins_as_it_did(text, most):
    shown = clipped(text, most)
    assert shown == text if len(text) <= most else shown.startswith(text[:most])


@given(st.text(st.sampled_from("ab._"), max_size=20))
def test_the_parts_of_a_name_join_to_it(name):
    assert "".join(name_parts(name)) == name


def test_every_kind_has_its_sentence():
    assert set(MEANING) == set(Kind)
    assert all(sentence.endswith(".") for sentence in MEANING.values())
