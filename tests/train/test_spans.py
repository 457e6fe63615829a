"""Every sampled token belongs to one turn; what was told belongs to none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.models.sampler import Stretch
from seal.train.spans import TokenRecord, per_token, token_record, token_turns, turn_tokens

ids = st.lists(st.integers(0, 50_000), max_size=5)


@st.composite
def dialogues(draw):
    """Stretches of turns, each a user message and then replies with results between them."""
    stretches = []
    for turn in range(draw(st.integers(0, 4))):
        stretches.append(Stretch(draw(ids) or [1]))
        for _ in range(draw(st.integers(0, 3))):
            reply = draw(ids)
            stretches += [Stretch(reply, [-0.5] * len(reply), turn), Stretch(draw(ids))]
    return stretches


@given(dialogues())
def test_every_sampled_token_belongs_to_one_turn_and_told_ones_to_none(stretches):
    record = token_record([7, 8], stretches)
    expected = [(token, stretch.turn) for stretch in stretches for token in stretch.ids]
    turns = token_turns(record)
    assert list(zip(record.completion_ids, turns, strict=True)) == expected
    assert [turn is not None for turn in turns] == record.sampled
    assert sum(turn_tokens(record, 4)) == sum(record.sampled)
    assert [turns.count(turn) for turn in range(4)] == turn_tokens(record, 4)


@given(dialogues())
def test_log_probs_stand_with_the_tokens_they_are_of(stretches):
    record = token_record([], stretches)
    assert record.log_probs == [-0.5 if sampled else 0.0 for sampled in record.sampled]


@given(dialogues(), st.lists(st.floats(0.5, 2), min_size=4, max_size=4))
def test_a_figure_of_a_turn_reaches_its_sampled_tokens_and_no_other(stretches, figures):
    record = token_record([], stretches)
    spread = per_token(record, figures)
    turns = token_turns(record)
    assert spread == [0.0 if turn is None else figures[turn] for turn in turns]


def test_a_rollout_of_two_turns():
    record = token_record(
        [1, 2],
        [
            Stretch([3]),
            Stretch([4, 5], [-1.0, -2.0], 0),
            Stretch([6]),
            Stretch([7], [-3.0], 0),
            Stretch([8, 9]),
            Stretch([10], [-4.0], 1),
        ],
    )
    assert record.turn_of_stretch == [0, 0, 1]
    assert token_turns(record) == [None, 0, 0, None, 0, None, None, 1]
    assert turn_tokens(record, 3) == [3, 1, 0]
    assert record.log_probs == [0.0, -1.0, -2.0, 0.0, -3.0, 0.0, 0.0, -4.0]


def test_two_replies_that_touch_are_one_run():
    record = token_record([], [Stretch([1], [-1.0], 0), Stretch([2], [-2.0], 0)])
    assert (record.turn_of_stretch, record.sampled) == ([0], [True, True])


def test_turns_that_touch_are_refused():
    with pytest.raises(ValueError, match="nothing was heard between turns 0 and 1"):
        token_record([], [Stretch([1], [-1.0], 0), Stretch([], []), Stretch([2], [-2.0], 1)])


@pytest.mark.parametrize("stretch", [Stretch([1, 2], [-1.0], 0), Stretch([1], [-1.0])])
def test_log_probs_must_be_those_of_the_sampled_tokens(stretch):
    with pytest.raises(ValueError, match="1 log-probs in a stretch that needs"):
        token_record([], [stretch])


@pytest.mark.parametrize(
    ("sampled", "log_probs", "turns", "reason"),
    [
        ([True], [0.0, 0.0], [0], "1 marks of what was sampled"),
        ([True, True], [0.0], [0], "1 log-probs"),
        ([True, False], [0.0, 0.0], [0, 1], "1 runs of sampled tokens and 2 turns"),
        ([True, True], [0.0, 0.0], [-1], "not in order from 0"),
    ],
)
def test_a_record_whose_lists_do_not_fit_is_refused(sampled, log_probs, turns, reason):
    with pytest.raises(ValueError, match=reason):
        TokenRecord([], [1, 2], sampled, log_probs, turns)


def test_a_record_that_goes_back_to_an_earlier_turn_is_refused():
    with pytest.raises(ValueError, match="not in order"):
        TokenRecord([], [1, 2, 3], [True, False, True], [0.0] * 3, [1, 0])


def test_tokens_of_a_turn_that_the_task_does_not_have_are_refused():
    record = token_record([], [Stretch([1], [-1.0], 2)])
    with pytest.raises(ValueError, match="turn 2 of a task of 2 turns"):
        turn_tokens(record, 2)
