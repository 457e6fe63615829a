"""Weights stay within their bounds, change no sign, and do not depend on any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.errors import ConfigError
from seal.train.advantage import (
    REWEIGHTINGS,
    RHO,
    DynamicRho,
    Row,
    close_window,
    observe,
    reweighted,
    rollout_weight,
    step_scale,
    turn_weights,
)
from seal.train.labels import Tag

PASSED, STATE, EMPTY = Tag.PASS, Tag.STATE_MISMATCH, Tag.EMPTY_TURN
labels = st.lists(st.sampled_from([*Tag, "no label of the paper"]), max_size=8).map(tuple)


@st.composite
def rows(draw):
    found = draw(labels)
    turns = len(found) or draw(st.integers(1, 4))
    tokens = draw(st.lists(st.integers(0, 300), min_size=turns, max_size=turns))
    return Row(draw(st.floats(-3, 3)), found, tuple(tokens))


batches = st.lists(rows(), max_size=6)
steps = st.lists(st.tuples(labels, st.none() | st.floats(0, 1)), max_size=12)
names = st.sampled_from(sorted(REWEIGHTINGS))


@pytest.mark.parametrize(
    ("turns", "weight"),
    [
        ([PASSED] * 4, 1.00),
        ([PASSED, STATE, STATE, STATE], 1.00),
        ([EMPTY] * 3, 1.50),
        ([*[PASSED] * 4, Tag.CORRECT_ABSTENTION], 1.16),
        ([*[PASSED] * 4, Tag.SPURIOUS_CALL], 1.20),
        ([Tag.INSTANCE_MISMATCH], 0.60),
        ([PASSED, Tag.RESPONSE_MISMATCH], 0.95),
    ],
)
def test_the_papers_weight_of_a_rollout(turns, weight):
    assert rollout_weight(turns) == pytest.approx(weight, abs=1e-12)


def test_every_label_has_a_weight_in_the_paper():
    assert set(RHO) == set(Tag)


def test_weights_outside_the_bounds_are_clipped():
    assert rollout_weight(["a"], {"a": 9.0}) == 2.0
    assert rollout_weight(["a"], {"a": 0.1}) == 0.5


@given(names, batches, steps)
def test_weights_are_within_bounds_one_per_turn_and_change_no_sign(name, batch, history):
    for rho in (RHO, observe(DynamicRho(), history).rho):
        weights = turn_weights(name, batch, rho)
        assert [len(w) for w in weights] == [len(row.tokens) for row in batch]
        assert all(0.5 <= w <= 2.0 for of_row in weights for w in of_row)
        for row, advantages in zip(batch, reweighted(batch, weights), strict=True):
            assert all((a > 0) == (row.advantage > 0) for a in advantages)
            assert all((a < 0) == (row.advantage < 0) for a in advantages)


@given(names, batches, st.randoms(use_true_random=False))
def test_a_rollouts_weights_do_not_depend_on_its_place_in_the_batch(name, batch, random):
    order = list(range(len(batch)))
    random.shuffle(order)
    weights = turn_weights(name, batch)
    assert turn_weights(name, [batch[i] for i in order]) == [weights[i] for i in order]


@given(labels, st.randoms(use_true_random=False))
def test_the_order_of_turns_does_not_matter(found, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert rollout_weight(shuffled) == rollout_weight(found)


@given(names)
def test_without_labels_all_weights_are_one(name):
    batch = [Row(1.0, (), (3, 4)), Row(-1.0, (), (5,))]
    assert turn_weights(name, batch) == [(1.0, 1.0), (1.0,)]
    assert step_scale(batch, turn_weights(name, batch)) == 1.0


@given(batches)
def test_none_is_grpo(batch):
    assert reweighted(batch, turn_weights("none", batch)) == [
        (row.advantage,) * len(row.tokens) for row in batch
    ]


def test_the_paper_pushes_failures_harder_and_the_scale_says_so():
    won = Row(1.5, (PASSED, PASSED), (10, 10))
    lost = Row(-0.5, (EMPTY, EMPTY), (10, 10))
    assert step_scale([won, lost], turn_weights("paper", [won, lost])) == pytest.approx(1.125)
    assert step_scale([], []) == 1.0


def test_labels_must_be_one_a_turn():
    with pytest.raises(ValueError, match="2 labels for 3 turns"):
        Row(1.0, (PASSED, PASSED), (1, 1, 1))


def test_an_unknown_reweighting_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"(?s)'papr'.*none, paper.*Did you mean 'paper'"):
        turn_weights("papr", [])


def test_dynamic_rho_goes_a_quarter_of_the_way_to_its_target():
    batch = [((PASSED, STATE), 0.0)] * 24 + [((PASSED, STATE), 1.0)] * 8
    after = observe(DynamicRho(), batch)
    # Half of the turns, a quarter of whose rollouts passed, of enough turns: 1 + 1/2 * 3/4.
    assert after.rho["state_mismatch"] == pytest.approx(1 + 0.25 * 0.375)
    assert after.rho["pass"] == 1.0
    assert after.rho["empty_turn_model_response"] == 1.5


def test_dynamic_rho_trusts_few_turns_little():
    after = observe(DynamicRho(), [((STATE,), 0.0)] * 8)
    assert after.rho["state_mismatch"] == pytest.approx(1 + 0.25 * 8 / 32)


def test_dynamic_rho_is_drawn_to_its_target_and_capped():
    state = DynamicRho()
    for _ in range(60):
        state = observe(state, [((Tag.SPURIOUS_CALL, STATE), 0.0)] * 32)
    assert state.rho["spurious_tool_call"] == 2.0
    assert state.rho["state_mismatch"] == pytest.approx(1.5)


def test_a_closed_window_forgets_what_is_cured():
    failing, passing = [((STATE,), 0.0)] * 40, [((PASSED,), 1.0)] * 40
    state = observe(DynamicRho(), failing)
    kept, fresh = observe(state, passing), observe(close_window(state), passing)
    assert fresh.rho["state_mismatch"] < kept.rho["state_mismatch"]
    assert fresh.total == kept.total
    assert fresh.window["pass"].turns == 40
    assert "state_mismatch" not in fresh.window


def test_an_empty_window_gives_way_to_all_that_was_seen():
    state = observe(DynamicRho(), [((STATE,), 0.0)] * 40)
    again = observe(close_window(state), [])
    assert again.window == {}
    assert again.rho["state_mismatch"] > state.rho["state_mismatch"]


def test_unscored_rollouts_move_nothing():
    assert observe(DynamicRho(), [((STATE,), None), ((), 0.0)]) == DynamicRho()


@given(steps, st.randoms(use_true_random=False))
def test_rho_does_not_depend_on_the_order_of_rollouts(batch, random):
    shuffled = list(batch)
    random.shuffle(shuffled)
    assert observe(DynamicRho(), shuffled) == observe(DynamicRho(), batch)


@given(st.lists(steps, max_size=4))
def test_rho_stays_between_its_base_and_the_cap(history):
    state = DynamicRho()
    for batch in history:
        state = observe(state, batch)
    assert set(state.rho) == {str(label) for label in Tag}
    for label, base in RHO.items():
        assert base - 1e-9 <= state.rho[label] <= 2.0


@given(steps)
def test_the_state_survives_a_checkpoint(batch):
    state = observe(DynamicRho(), batch)
    assert DynamicRho.model_validate_json(state.model_dump_json()) == state
