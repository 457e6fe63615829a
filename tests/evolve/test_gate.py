"""The gate keeps its promise under the null, and finds what is worth finding."""

import math
import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.config import GateConfig
from seal.evolve.gate import (
    ALL_ALIKE,
    OWN_EVIDENCE,
    Bet,
    Futility,
    PairedTest,
    detectable_effect,
    level,
)
from seal.evolve.lineage import GateResult, TestKind

CONFIG = GateConfig()


@cache
def simulated(win: float, lose: float, runs: int, scenarios: int = 240, k: int = 1):
    """Verdicts of so many tests, of scenarios that the child wins or loses at these rates."""
    return [played(f"{run}/{k}", win, lose, scenarios, k) for run in range(runs)]


def played(seed: str, win: float, lose: float, scenarios: int, k: int) -> GateResult:
    draw = random.Random(seed)
    test = PairedTest(CONFIG, "bundle", k)
    for _ in range(scenarios):
        place = draw.random()
        test.add(1.0 if place < win else -1.0 if place < win + lose else 0.0)
        if test.decided:
            break
    return test.result(("a.affordance",))


def fed(differences: list[float | None], kind: TestKind = "bundle", k: int = 1) -> PairedTest:
    test = PairedTest(CONFIG, kind, k)
    for difference in differences:
        test.add(difference)
    return test


def share(results: list[GateResult], verdict: str) -> float:
    return sum(result.verdict == verdict for result in results) / len(results)


def test_useless_rewrites_are_adopted_no_more_often_than_promised():
    null = simulated(0.1, 0.1, 300)
    # 2.5% is the level of the first test; 300 runs may show two standard errors more.
    assert share(null, "accepted") <= 0.025 + 2 * math.sqrt(0.025 * 0.975 / 300)
    assert share(null, "refused") > 0.7, "futility ends most of them"
    assert sorted(result.pairs for result in null)[150] < 160


def test_a_gain_of_ten_points_is_mostly_found_and_one_of_fifteen_nearly_always():
    assert 0.68 <= share(simulated(0.15, 0.05, 200), "accepted") <= 0.86
    assert share(simulated(0.20, 0.05, 150), "accepted") >= 0.93


@pytest.mark.parametrize("scenarios", [60, 240])
def test_the_detectable_effect_is_found_in_about_eighty_of_a_hundred_runs(scenarios: int):
    gain = detectable_effect(CONFIG, scenarios)
    assert 0.70 <= share(simulated(gain + 0.05, 0.05, 200, scenarios), "accepted") <= 0.92
    less = simulated(gain - 0.04 + 0.05, 0.05, 200, scenarios)
    assert share(less, "accepted") < 0.78


def test_more_scenarios_or_a_laxer_level_detect_smaller_effects():
    effects = [detectable_effect(CONFIG, n) for n in (20, 60, 120, 240, 1000)]
    assert effects == sorted(effects, reverse=True)
    assert detectable_effect(CONFIG, 240, k=5) > detectable_effect(CONFIG, 240)
    assert detectable_effect(CONFIG, 1) == 1.0, "one scenario detects nothing"


def test_capital_is_the_mean_over_the_stakes():
    bet = Bet()
    assert bet.capital == pytest.approx(1.0)
    stakes = [(i + 0.5) / 50 for i in range(50)]
    for difference in (1.0, -0.5, 0.0):
        bet.add(difference)
    by_hand = [(1 + stake) * (1 - 0.5 * stake) for stake in stakes]
    assert bet.capital == pytest.approx(math.fsum(by_hand) / 50)
    # The integral of (1 + x)(1 - x/2) over (0, 1) is 1 + 1/4 - 1/6.
    assert bet.capital == pytest.approx(13 / 12, abs=1e-3)


def test_capital_survives_any_number_of_scenarios():
    bet = Bet()
    for _ in range(5000):
        bet.add(1.0)
    assert bet.capital == math.inf
    bet = Bet()
    for _ in range(5000):
        bet.add(-1.0)
    assert 0.0 <= bet.capital < 1e-3


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), max_size=30))
def test_a_bet_is_fair_under_the_null(differences: list[float]):
    """Heads and tails of the next scenario leave the capital, on average, where it is."""
    before, up, down = Bet(), Bet(), Bet()
    for difference in differences:
        for bet in (before, up, down):
            bet.add(difference)
    up.add(0.5)
    down.add(-0.5)
    assert (up.capital + down.capital) / 2 == pytest.approx(before.capital)


@given(wins=st.integers(0, 40), losses=st.integers(0, 40))
def test_evidence_of_futility_is_fair_at_its_boundary(wins: int, losses: int):
    now, up, down = Futility(0.75), Futility(0.75), Futility(0.75)
    for futility in (now, up, down):
        futility.wins, futility.losses = wins, losses
    up.add(1.0)
    down.add(-1.0)
    assert 0.75 * up.e_value + 0.25 * down.e_value == pytest.approx(now.e_value)


def test_the_levels_add_up_to_alpha():
    assert level(0.05, 1) == 0.025
    total = math.fsum(level(0.05, k) for k in range(1, 10_001))
    assert 0.0499 < total < 0.05


def test_a_later_test_needs_more():
    assert [round(fed([], k=k).threshold) for k in (1, 2, 3)] == [40, 120, 240]
    eight_wins = [1.0] * 8
    assert fed(eight_wins, k=1).result(()).verdict == "accepted"
    assert fed(eight_wins, k=2).result(()).verdict == "undecided"


def test_a_hopeless_test_stops_early_and_says_why():
    test = fed([-1.0, 1.0] * 5 + [-1.0] * 4)
    assert test.decided
    result = test.result(("a",))
    assert result.verdict == "refused"
    assert "less than 75% of the differing scenarios favour it" in result.reason


def test_scenarios_without_a_difference_decide_nothing():
    test = fed([0.0] * (ALL_ALIKE - 1))
    assert not test.decided
    assert "used up" in test.result(("a",)).reason
    assert test.result(("a",), "the budget is spent").reason == "the budget is spent"


def test_a_test_stops_when_every_scenario_ends_alike():
    test = fed([0.0] * ALL_ALIKE)
    assert test.decided
    result = test.result(("a",))
    assert (result.verdict, result.effect, result.e_value) == ("undecided", 0.0, 1.0)
    assert result.reason == f"all of {ALL_ALIKE} scenarios end alike"
    assert not fed([0.0] * ALL_ALIKE + [1.0]).decided, "one difference is worth going on for"


def test_above_two_percent_unscored_no_test_is_decided():
    won: list[float | None] = [1.0] * 97
    assert fed([*won, None, None]).result(()).verdict == "undecided", "2 of 99 are more than 2%"
    assert fed([*won, 1.0, None, None]).result(()).verdict == "accepted"


def test_a_winner_with_an_unscored_scenario_goes_on_until_that_is_few():
    test = fed([None, *[1.0] * 20])
    assert test.bet.capital > test.threshold
    assert not test.decided, "more scenarios change this verdict"
    for _ in range(29):
        test.add(1.0)
    assert test.decided
    assert test.result(()).verdict == "accepted"


def test_a_test_that_can_no_longer_be_scored_well_enough_stops():
    assert fed([None] * 5).decided, "5 of 240 are more than 2%, whatever comes"
    assert not fed([None] * 4).decided
    result = fed([*[None] * 5, 1.0]).result(("a",))
    assert (result.verdict, result.unscored, result.pairs) == ("undecided", 5, 1)
    assert "5 of 6 scenarios could not be scored" in result.reason


def test_a_removal_counts_its_effect_for_the_patch_that_is_kept():
    """In a removal test the child is the candidate without the patch."""
    missed = fed([-1.0] * 7, "removal")
    assert missed.against.capital >= OWN_EVIDENCE
    assert missed.decided
    result = missed.result(("a.affordance",))
    assert (result.verdict, result.effect, result.wins) == ("refused", 1.0, 7)
    assert result.reason == "without it the scores are worse"
    assert result.low > 0

    harmful = fed([1.0] * 8, "removal").result(("a.affordance",))
    assert (harmful.verdict, harmful.effect, harmful.losses) == ("accepted", -1.0, 8)
    assert harmful.high < 0
    assert harmful.reason == "capital 56.8 reached 40"

    neither = fed([0.0, 1.0, -1.0] * 5, "removal")
    assert not neither.decided
    assert neither.result(()).reason == "neither clearly better nor worse without it"


def test_a_removal_is_never_called_futile():
    assert not fed([1.0, -1.0] * 20, "removal").decided
