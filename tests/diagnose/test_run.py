"""A run folder is diagnosed from what it holds, with the environment it was made with."""

import json

import pytest

import seal
from seal.diagnose.compare import compare_diagnoses
from seal.diagnose.rescore import rescore
from seal.envs import load_environment
from seal.errors import ConfigError
from seal.records import RunFolder
from seal.rollout.run import RunSettings, run
from seal.types import DiagnosedRollout, Score
from tests.factories import WORLD, write_environment

LOST = RunSettings(split=None)


@pytest.fixture
def made(tmp_path):
    house = write_environment(tmp_path / "me@home" / "lamp")
    return house, run(house, "sim:lost", LOST, out=tmp_path / "run"), RunFolder(tmp_path / "run")


def test_every_rollout_is_diagnosed_and_kept_beside_the_rollouts(made):
    _, result, folder = made
    told = []
    found = seal.diagnose(folder.path, lambda *now: told.append(now))
    assert [one.rollout for one in found.diagnosed] == [one.id for one in result.rollouts]
    assert told == [(done, 40) for done in range(41)]
    assert tuple(folder.lines("diagnoses", DiagnosedRollout).read()) == found.diagnosed
    profile = json.loads((folder.path / "profile.json").read_text())
    assert profile.pop("seal") == 1
    assert profile == found.profile.model_dump(mode="json")
    failed = sum(one.reward < 1 for one in result.rollouts)
    assert found.profile.failed == failed > 10
    assert sum(one.fault is not None for one in found.diagnosed) == failed


def test_diagnosing_twice_changes_nothing(made):
    _, _, folder = made
    first = seal.diagnose(folder.path)
    kept = (folder.path / "diagnoses.jsonl").read_bytes()
    assert seal.diagnose(folder.path) == first
    assert (folder.path / "diagnoses.jsonl").read_bytes() == kept


def test_a_run_of_a_world_that_changed_since_is_not_diagnosed(made):
    house, _, folder = made
    (house / "env.py").write_text(WORLD.replace("plugged in", "in"))
    with pytest.raises(ConfigError, match="Tools, rules, tasks or world have changed since"):
        seal.diagnose(folder.path)


def test_other_seed_texts_since_do_not_matter(made):
    house, _, folder = made
    before = seal.diagnose(folder.path)
    (house / "slots.toml").write_text('[dim]\naffordance = "Other words."\n')
    assert seal.diagnose(folder.path).diagnosed == before.diagnosed


def test_a_run_under_evolved_words_says_so(tmp_path):
    house = load_environment(write_environment(tmp_path / "lamp"))
    words = house.original.with_texts({"dim.constraint.level": "In {unit}."})
    settings = RunSettings(split=None, candidate=words)
    run(house, "sim:lost", settings, out=tmp_path / "run")
    rows = seal.diagnose(tmp_path / "run").profile.rows
    assert rows
    assert {row.evolved for row in rows} == {True}


def test_a_record_that_broke_gives_way_to_one_that_did_not_and_to_nothing_else(made):
    _, result, folder = made
    lines = folder.lines("rollouts", type(result.rollouts[0]))
    first, second = result.rollouts[:2]
    broken = {"score": Score(reward=None), "failure": "ModelFailure: gone"}
    lines.append(first.model_copy(update=broken))
    lines.append(second.model_copy(update={"seconds": 9.0}))
    found = {one.id: one for one in folder.rollouts()}
    assert (found[first.id], found[second.id].seconds) == (first, 9.0)
    assert len(found) == 40


def test_what_broke_is_unscorable_and_in_no_count(made):
    _, result, folder = made
    (folder.path / "rollouts.jsonl").unlink()
    broken = {"score": Score(reward=None), "failure": "ModelFailure: gone"}
    first, *others = result.rollouts
    lines = folder.lines("rollouts", type(first))
    lines.append(first.model_copy(update=broken), *others)
    found = seal.diagnose(folder.path)
    assert found.diagnosed[0].diagnoses[0].kind == "unscorable"
    assert found.profile.rollouts == 39


def test_what_fits_no_task_is_left_out_and_counted(made):
    _, result, folder = made
    first, *others = result.rollouts
    lines = folder.lines("rollouts", type(first))
    step = first.turns[0].steps[0]
    unanswered = first.turns[0].model_copy(
        update={"steps": (step.model_copy(update={"results": ()}),)}
    )
    odd = [
        {"task": "lamp-99"},
        {"sample": 1, "turns": (*first.turns, *first.turns)},
        {"sample": 2, "turns": (), "failure": None},
        {"sample": 3, "turns": (unanswered, *first.turns[1:])},
    ]
    lines.rewrite([*(first.model_copy(update=update) for update in odd), *others])
    with lines.path.open("a") as file:
        file.write('{"task": "lamp-0')
    found = seal.diagnose(folder.path)
    assert (found.misfits, found.torn, found.profile.rollouts) == (4, True, 39)
    assert [one.rollout for one in found.diagnosed] == [one.id for one in others]


@pytest.mark.parametrize("name", ["command", "environment", "folder", "contract", "candidate"])
@pytest.mark.parametrize("value", ["", "3"])
def test_settings_that_lack_what_a_run_was_made_with_are_named(made, name, value):
    _, _, folder = made
    lines = folder.settings_path.read_text().splitlines()
    put = f"{name} = {value}" if value else ""
    wrong = [put if one.startswith(f"{name} = ") else one for one in lines]
    folder.settings_path.write_text("\n".join(wrong))
    for command in (seal.diagnose, rescore, lambda path: compare_diagnoses(path, path)):
        with pytest.raises(ConfigError, match=rf"run\.toml: {name} (is missing|3 is no text)"):
            command(folder.path)


def test_where_there_is_no_run_it_says_so(tmp_path):
    with pytest.raises(ConfigError, match="no run here"):
        seal.diagnose(tmp_path / "nowhere")
