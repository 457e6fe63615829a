"""Scores are means over what was scored, with intervals whose unit is a scenario."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.rollout.scores import (
    mean_interval,
    paired,
    scenario_differences,
    summarize,
    wilson,
)
from seal.types import Rollout, Sampling, Score


def rollout(task, reward, *, scenario=None, sample=0, group="all"):
    return Rollout(
        task=task,
        scenario=scenario or task,
        group=group,
        sample=sample,
        environment="e",
        contract="c",
        candidate="w",
        policy="p",
        policy_version="1",
        seed=0,
        sampling=Sampling(),
        turns=(),
        score=Score(reward=reward),
    )


def some(*rewards):
    return [rollout(f"t{number}", reward) for number, reward in enumerate(rewards)]


@pytest.mark.parametrize(
    ("wins", "of", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilsons_interval_has_its_published_values(wins, of, low, high):
    found = wilson([1.0] * wins + [0.0] * (of - wins))
    assert found == pytest.approx((low, high), abs=2e-4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_wilsons_interval_is_in_bounds_and_holds_the_mean(values):
    low, high = wilson(values)
    mean = math.fsum(values) / len(values)
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1


def test_values_that_vary_less_than_coin_flips_have_a_narrower_interval():
    flips, steady = wilson([0.0, 1.0] * 20), wilson([0.4, 0.6] * 20)
    assert steady[1] - steady[0] < 0.5 * (flips[1] - flips[0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (0.0, -1.0, 1.0)),
        ([0.5], (0.5, -0.7950, 1.0)),
        ([1.0, 1.0], (1.0, -0.3487, 1.0)),
        ([1.0, 0.0, 0.0, 1.0], (0.5, -0.2631, 0.9297)),
        ([1.0, 0.0, -1.0] * 30, (0.0, -0.1678, 0.1678)),
    ],
)
def test_the_interval_of_a_mean_difference_has_its_known_values(values, expected):
    assert mean_interval(values) == pytest.approx(expected, abs=2e-4)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_interval_of_a_mean_difference_is_in_bounds_and_holds_the_mean(values):
    mean, low, high = mean_interval(values)
    assert -1 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1
    turned = mean_interval([-value for value in values])
    assert turned == pytest.approx((-mean, -high, -low))


def test_pairs_that_all_agree_are_no_certainty():
    widths = []
    for count in (1, 8, 50, 400):
        mean, low, high = mean_interval([1.0] * count)
        assert (mean, high) == (1.0, 1.0)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0


def test_what_is_unscored_is_left_out_of_the_mean_and_counted():
    summary = summarize(some(1.0, 0.0, None, 1.0, None))
    assert (summary.score, summary.scored, summary.total) == (pytest.approx(2 / 3), 3, 5)
    assert summary.bound == pytest.approx(2 / 5)
    clean = summarize(some(1.0, 0.0, 1.0))
    assert (summary.low, summary.high) == (clean.low, clean.high)
    assert clean.bound == clean.score


def test_nothing_scored_is_no_score():
    for nothing in ([], some(None, None)):
        summary = summarize(nothing)
        assert (summary.score, summary.low, summary.high, summary.bound) == (None,) * 4
        assert (summary.scored, summary.total) == (0, len(nothing))


def test_views_of_one_scenario_are_one_observation():
    views = [rollout(f"v{number}", 1.0, scenario="s") for number in range(50)]
    alone = summarize([rollout("v", 1.0, scenario="s")])
    assert (summarize(views).low, summarize(views).high) == (alone.low, alone.high)


def test_groups_have_scores_of_their_own():
    mixed = [rollout("a", 1.0, group="easy"), rollout("b", 0.0, group="hard")]
    mixed += [rollout("c", 0.0, group="easy"), rollout("d", None, group="odd")]
    assert summarize(mixed).groups == {"easy": 0.5, "hard": 0.0}


def test_a_difference_is_the_second_minus_the_first_per_scenario():
    first = [rollout("a", 0.0, scenario="s"), rollout("b", 1.0, scenario="s"), rollout("c", 1.0)]
    second = [rollout("a", 1.0, scenario="s"), rollout("b", 1.0, scenario="s"), rollout("c", 0.0)]
    assert scenario_differences(first, second) == {"s": 0.5, "c": -1.0}
    summary = paired(first, second)
    assert (summary.effect, summary.pairs, summary.unscored) == (-0.25, 2, 0)
    assert (summary.first, summary.second) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_a_pair_that_is_unscored_on_one_side_counts_for_neither():
    first = some(0.0, 0.0, None)
    second = some(1.0, None, 1.0)
    assert scenario_differences(first, second) == {"t0": 1.0, "t1": None, "t2": None}
    summary = paired(first, second)
    assert (summary.effect, summary.pairs, summary.unscored) == (1.0, 1, 2)
    assert (summary.first, summary.second) == (0.0, 1.0)


def test_samples_pair_with_samples_and_what_has_no_pair_is_left_out():
    first = [rollout("a", 0.0, sample=0), rollout("a", 1.0, sample=1), rollout("b", 1.0)]
    second = [rollout("a", 1.0, sample=1), rollout("a", 1.0, sample=0), rollout("c", 0.0)]
    assert scenario_differences(first, second) == {"a": 0.5}
    summary = paired(first, second)
    assert (summary.pairs, summary.first, summary.second) == (1, 0.5, 1.0)


rewards = st.none() | st.sampled_from([0.0, 0.5, 1.0])


@given(st.lists(st.tuples(st.integers(0, 4), rewards, rewards), max_size=12))
def test_swapping_the_sides_turns_the_difference_around(rows):
    first = [rollout(f"t{i}", a, scenario=f"s{s}") for i, (s, a, _) in enumerate(rows)]
    second = [rollout(f"t{i}", b, scenario=f"s{s}") for i, (s, _, b) in enumerate(rows)]
    there, back = paired(first, second), paired(second, first)
    assert there.effect == pytest.approx(-back.effect)
    assert (there.pairs, there.unscored) == (back.pairs, back.unscored)
    assert there.pairs + there.unscored == len({s for s, _, _ in rows})
    assert paired(first, first).effect == 0.0
