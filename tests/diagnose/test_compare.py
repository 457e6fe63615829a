"""Two runs are compared by their faults, with intervals by scenario."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.compare import compare_diagnoses, difference, independent_interval
from seal.errors import ConfigError
from seal.rollout.run import RunSettings, run
from seal.types import GOLD_SUSPECT, DiagnosedRollout, Diagnosis, Kind
from tests.factories import TOML, edited, write_environment

HOUR = Diagnosis(turn=0, kind=Kind.REFUSED, tool="book", argument="hour", call_id="c")
ROOM = Diagnosis(turn=0, kind=Kind.WRONG_ARGUMENT, tool="book", argument="room")
DOUBT = Diagnosis(turn=0, kind=Kind.UNSCORABLE, code=GOLD_SUSPECT, found="Odd.")


def rollout(number, fault=None, *, scenario=None, reward=None, diagnoses=None):
    return DiagnosedRollout(
        rollout=f"t{number:03d}#0",
        task=f"t{number:03d}",
        scenario=scenario or f"s{number:03d}",
        candidate="c",
        reward=(0.0 if fault else 1.0) if reward is None else reward,
        diagnoses=diagnoses or ((fault,) if fault else ()),
        fault=fault,
    )


def side(hours, rooms, total=40):
    faults = [HOUR] * hours + [ROOM] * rooms + [None] * (total - hours - rooms)
    return [rollout(number, fault) for number, fault in enumerate(faults)]


def test_rows_are_matched_and_say_how_much_each_run_loses_by_them():
    found = difference(side(20, 0), side(2, 4))
    assert (found.paired, found.rollouts, found.scenarios) == (True, (40, 40), (40, 40))
    hour, room = found.rows
    assert (hour.tool, hour.argument, hour.kind) == ("book", "hour", Kind.REFUSED)
    assert (hour.first, hour.second, hour.difference) == (0.5, 0.05, -0.45)
    assert (hour.change, hour.high < 0, hour.examples) == ("fewer", True, ("t000#0", "t001#0"))
    assert (room.change, room.first, room.second) == ("new", 0.0, 0.1)
    assert (found.total.kind, found.total.first, found.total.second) == (None, 0.5, 0.15)
    backwards = difference(side(2, 4), side(20, 0))
    assert [row.change for row in backwards.rows] == ["more", "gone"]


def test_the_differences_of_the_rows_add_up_to_that_of_all_faults():
    found = difference(side(20, 3), side(5, 9))
    assert sum(row.difference for row in found.rows) == pytest.approx(found.total.difference)


def test_a_difference_that_may_be_chance_is_unclear():
    (row,) = difference(side(4, 0), side(3, 0)).rows
    assert (row.change, row.low < 0 < row.high) == ("unclear", True)


def test_the_unit_is_a_scenario():
    one = [rollout(number, HOUR, scenario="same") for number in range(40)]
    (row,) = difference(one, [rollout(number, scenario="same") for number in range(40)]).rows
    assert (row.difference, row.high) == (-1.0, 1.0) or row.high > 0
    assert difference(one, one).scenarios == (1, 1)


def test_what_is_in_one_run_alone_or_in_no_count_is_left_out_and_said():
    unscored = rollout(38, reward=None)
    first = [*side(4, 0, 38), unscored, rollout(39, diagnoses=(DOUBT,), reward=0.0)]
    first[38] = first[38].model_copy(update={"reward": None})
    found = difference(first, side(4, 0, 50))
    assert (found.rollouts, found.left_out) == ((38, 38), (2, 12))


def test_runs_of_other_tasks_are_independent_samples():
    others = [one.model_copy(update={"rollout": f"v-{one.rollout}"}) for one in side(5, 0)]
    found = difference(side(20, 0), others)
    assert (found.paired, found.rollouts) == (False, (40, 40))
    (row,) = found.rows
    assert (row.difference, row.change) == (-0.375, "fewer")
    assert row.low < -0.375 < row.high < 0


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1), st.lists(st.sampled_from([0.0, 1.0])))
def test_an_independent_interval_holds_the_difference_and_mirrors(first, second):
    low, high = independent_interval(first, second)
    assert -1 <= low <= high <= 1
    if second:
        assert low <= sum(second) / len(second) - sum(first) / len(first) <= high
        assert independent_interval(second, first) == pytest.approx((-high, -low))


def test_the_order_of_rollouts_does_not_matter():
    first, second = side(9, 3), side(4, 5)
    wanted = difference(first, second)
    rng = random.Random(0)
    for _ in range(5):
        rng.shuffle(first)
        rng.shuffle(second)
        assert difference(first, second) == wanted


def test_only_runs_of_one_environment_are_compared(tmp_path):
    lamp = write_environment(tmp_path / "lamp")
    other = write_environment(tmp_path / "b", toml=edited(TOML, '"lamp"', '"torch"'))
    settings = RunSettings(split=None, limit=8)
    run(lamp, "sim:lost", settings, out=tmp_path / "one")
    run(lamp, "gold", settings, out=tmp_path / "two")
    run(other, "gold", settings, out=tmp_path / "three")
    found = compare_diagnoses(tmp_path / "one", tmp_path / "two")
    assert {row.change for row in found.rows} == {"gone"}
    with pytest.raises(ConfigError, match="one of torch: they fail at other tools"):
        compare_diagnoses(tmp_path / "one", tmp_path / "three")
    text = (tmp_path / "two" / "run.toml").read_text()
    (tmp_path / "two" / "run.toml").write_text(text.replace('"run"', '"evolve"'))
    with pytest.raises(ConfigError, match="made by `seal evolve`, under many candidates"):
        compare_diagnoses(tmp_path / "one", tmp_path / "two")
    with pytest.raises(ConfigError, match="no run here"):
        compare_diagnoses(tmp_path / "one", tmp_path / "nowhere")
