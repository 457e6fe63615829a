"""A run is a folder that resumes, and holds in the end what one go would have given."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import seal
from seal.envs import load_environment
from seal.errors import ConfigError, ModelFailure
from seal.models.gold import GoldPolicy
from seal.models.simulated import SimulatedPolicy
from seal.records import RunFolder
from seal.rollout.batch import RolloutSettings
from seal.rollout.run import RunSettings, run, summary_json
from seal.types import Rollout
from tests.factories import WORLD, edited, write_environment
from tests.scripted import Scripted

ALL = RunSettings(split=None)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    return write_environment(tmp_path_factory.mktemp("house") / "lamp")


def timeless(rollouts):
    return sorted((r.model_copy(update={"seconds": 0.0}) for r in rollouts), key=lambda r: r.id)


def recorded(folder):
    return list(RunFolder(folder).lines("rollouts", Rollout).read())


def test_a_run_needs_no_folder(house, tmp_path):
    result = run(house, "gold")
    assert (result.summary.score, result.summary.total) == (1.0, 12)
    assert list(tmp_path.iterdir()) == []


def test_the_records_stand_in_the_order_of_the_tasks(house):
    settings = RunSettings(split=None, limit=9, samples=2, rollouts=RolloutSettings(workers=4))
    tasks = load_environment(house).tasks(None)[:9]
    result = run(house, "sim:novice", settings)
    assert [one.id for one in result.rollouts] == [f"{t.id}#{s}" for t in tasks for s in (0, 1)]


def test_a_folder_holds_settings_words_records_and_result(house, tmp_path):
    result = run(house, "sim:novice", ALL, out=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert folder.settings()["policy"] == "sim:novice"
    assert folder.settings()["split"] == "all"
    assert timeless(recorded(folder.path)) == timeless(result.rollouts)
    assert folder.result() == json.loads(json.dumps(summary_json(result)))
    (words,) = {one.candidate for one in result.rollouts}
    assert folder.candidate(words).texts == load_environment(house).original.texts


class Counting(SimulatedPolicy):
    """Counts its turns, and stops the run after some."""

    def __init__(self, stop_after=None):
        super().__init__("novice")
        self.acted = 0
        self.stop_after = stop_after

    def act(self, given):
        self.acted += 1
        if self.acted == self.stop_after:
            raise KeyboardInterrupt
        return super().act(given)


def test_a_finished_run_is_read_and_not_made_again(house, tmp_path):
    first = run(house, Counting(), ALL, out=tmp_path / "run")
    policy = Counting()
    again = run(house, policy, ALL, out=tmp_path / "run")
    assert policy.acted == 0
    assert again == first


def test_starting_over_makes_every_rollout_again(house, tmp_path):
    run(house, Counting(), ALL, out=tmp_path / "run")
    policy = Counting()
    run(house, policy, ALL, out=tmp_path / "run", fresh=True)
    assert policy.acted > 40
    assert len(recorded(tmp_path / "run")) == 40


def test_an_interrupted_run_resumes_where_it_stopped(house, tmp_path):
    whole = run(house, Counting(), ALL)
    with pytest.raises(KeyboardInterrupt):
        run(house, Counting(stop_after=40), ALL, out=tmp_path / "run")
    kept = recorded(tmp_path / "run")
    assert 0 < len(kept) < 40
    told = []
    resumed = run(
        house, Counting(), ALL, out=tmp_path / "run", progress=lambda *now: told.append(now)
    )
    assert told == [(done, 40) for done in range(len(kept), 41)]
    assert recorded(tmp_path / "run")[: len(kept)] == kept
    assert timeless(resumed.rollouts) == timeless(whole.rollouts)
    assert resumed.summary == whole.summary


SLOW = edited(
    edited(WORLD, "from seal.envs import", "import time\n\nfrom seal.envs import"),
    "        self.level = 0\n",
    "        self.level = 0\n        time.sleep(0.004)\n",
)
CALL = """
import sys
from pathlib import Path
import seal
from seal.rollout.batch import RolloutSettings
rollouts = RolloutSettings(workers=int(sys.argv[3]))
settings = seal.RunSettings(split=None, samples=5, rollouts=rollouts)
seal.run(sys.argv[1], "sim:lost", settings, out=Path(sys.argv[2]))
"""


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_run_that_was_killed_resumes_to_what_one_go_would_have_given(tmp_path, workers):
    house = write_environment(tmp_path / "lamp", world=SLOW)
    out = tmp_path / "run"
    command = [sys.executable, "-c", CALL, str(house), str(out), workers]
    lines = out / "rollouts.jsonl"
    for goal in (20, 60):
        with subprocess.Popen(command) as process:
            while not lines.exists() or lines.read_bytes().count(b"\n") < goal:
                assert process.poll() is None
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
    assert RunFolder(out).result() is None
    killed = len(recorded(out))
    assert 59 <= killed < 200
    subprocess.run(command, check=True)
    whole = seal.run(house, "sim:lost", seal.RunSettings(split=None, samples=5))
    assert timeless(recorded(out)) == timeless(whole.rollouts)
    assert len(recorded(out)) == 200
    assert RunFolder(out).result() == json.loads(json.dumps(summary_json(whole)))


def test_a_torn_record_is_made_again(house, tmp_path):
    whole = run(house, "sim:novice", ALL, out=tmp_path / "run")
    lines = tmp_path / "run" / "rollouts.jsonl"
    lines.write_bytes(lines.read_bytes()[:-100])
    again = run(house, "sim:novice", ALL, out=tmp_path / "run")
    assert timeless(again.rollouts) == timeless(whole.rollouts)
    assert len(recorded(tmp_path / "run")) == 40


class Failing(Scripted):
    """A model that is there for some tasks only."""

    def __init__(self, tasks):
        super().__init__()
        self.tasks = tasks

    def act(self, given):
        if given.task.id in self.tasks:
            raise ModelFailure("the server is gone")
        return super().act(given)


def test_what_broke_is_unscored_and_made_again_when_the_run_resumes(house, tmp_path):
    tasks = {task.id for task in load_environment(house).tasks("train")[3:6]}
    first = run(house, Failing(tasks), out=tmp_path / "run")
    assert (first.summary.scored, first.summary.total) == (9, 12)
    assert summary_json(first)["unscored"] == 3
    assert {one.reward for one in first.rollouts if one.task in tasks} == {None}
    second = run(house, Failing(set()), out=tmp_path / "run")
    assert second.summary.scored == 12
    assert len(recorded(tmp_path / "run")) == 15


def test_a_model_that_never_answers_ends_the_run_and_what_it_left_resumes(house, tmp_path):
    tasks = {task.id for task in load_environment(house).tasks("train")}
    with pytest.raises(ModelFailure, match="the server is gone"):
        run(house, Failing(tasks), out=tmp_path / "run")
    assert RunFolder(tmp_path / "run").result() is None
    assert run(house, Failing(set()), out=tmp_path / "run").summary.scored == 12


@pytest.mark.parametrize(
    ("settings", "differs"),
    [
        (RunSettings(split="gate"), "split: 'train' there, 'gate' now"),
        (RunSettings(limit=3), "limit: None there, 3 now"),
        (RunSettings(samples=2), "samples: 1 there, 2 now"),
        (RunSettings(rollouts=RolloutSettings(seed=1)), "seed: 0 there, 1 now"),
    ],
)
def test_a_folder_of_other_settings_is_refused_and_kept(house, tmp_path, settings, differs):
    run(house, "gold", out=tmp_path / "run")
    kept = recorded(tmp_path / "run")
    with pytest.raises(ConfigError, match=differs):
        run(house, "gold", settings, out=tmp_path / "run")
    assert recorded(tmp_path / "run") == kept


def test_other_words_and_another_policy_are_other_settings(house, tmp_path):
    run(house, "gold", out=tmp_path / "run")
    with pytest.raises(ConfigError, match="policy: 'gold' there, 'sim:novice' now"):
        run(house, "sim:novice", out=tmp_path / "run")
    words = load_environment(house).original.with_texts({"dim.affordance": ""})
    with pytest.raises(ConfigError, match="candidate: "):
        run(house, "gold", RunSettings(candidate=words), out=tmp_path / "run")


def test_workers_are_no_setting_of_the_records(house, tmp_path):
    run(house, "gold", out=tmp_path / "run")
    run(house, "gold", RunSettings(rollouts=RolloutSettings(workers=3)), out=tmp_path / "run")


def test_a_changed_world_is_another_run(tmp_path):
    house = write_environment(tmp_path / "lamp")
    run(house, "gold", out=tmp_path / "run")
    (house / "env.py").write_text(WORLD.replace("plugged in", "in"))
    with pytest.raises(ConfigError, match="contract: "):
        run(house, "gold", out=tmp_path / "run")


def test_a_split_without_tasks_is_answered_with_those_that_have_some(house, tmp_path):
    one = write_environment(tmp_path / "one", tasks=[])
    lines = (house / "tasks.jsonl").read_text().splitlines()
    (one / "tasks.jsonl").write_text(lines[0])
    with pytest.raises(ConfigError) as caught:
        run(one, "gold", RunSettings(split="test"))
    assert "no tasks in split 'test'" in str(caught.value)
    assert "train 1, gate 0, validation 0, test 0" in str(caught.value)


def test_usage_is_added_up(house):
    result = run(house, Scripted())
    assert result.usage.calls == sum(len(one.turns) for one in result.rollouts)


def test_words_in_force_are_those_of_the_settings(house):
    template = load_environment(house)
    words = template.original.with_texts({"dim.constraint.colour": "One of {allowed}."})
    result = run(template, GoldPolicy(), RunSettings(candidate=words))
    assert {one.candidate for one in result.rollouts} == {words.id}
