"""Stored rollouts are judged anew after a verdict was mended, and only if they still can be."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

import seal
from seal.diagnose.rescore import rescore
from seal.errors import ConfigError
from seal.records import RunFolder
from seal.rollout.run import RunSettings, run
from seal.types import Rollout, Score
from tests.factories import SLOTS, WORLD, edited, lamp_tasks, write_environment

ALL = RunSettings(split=None)
STRICT = edited(
    edited(
        edited(
            WORLD, '        self.colour = ""\n', '        self.colour = ""\n        self._odd = 0\n'
        ),
        '            raise ToolError("no_colour"',
        '            self._odd += 1\n            raise ToolError("no_colour"',
    ),
    "return self.level > 0",
    "return self.level > 0 and not self._odd",
)
"""A lamp whose check holds a refusal against the policy, also one that it has learned from."""
TEACHING = f'{SLOTS}\n[dim.recovery]\nrefused = "Colours: {{allowed}}."\n'


@pytest.fixture
def made(tmp_path):
    house = write_environment(tmp_path / "lamp", slots=TEACHING)
    run(house, "sim:expert", ALL, out=tmp_path / "run")
    return house, RunFolder(tmp_path / "run")


def rewards(folder):
    return {one.id: one.reward for one in folder.rollouts()}


def test_without_a_change_nothing_changes(made):
    _, folder = made
    files = {path: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}
    found = rescore(folder.path)
    assert (found.changed, found.rollouts, found.kept) == (0, 40, 0)
    assert found.before == found.after
    assert {path: path.read_bytes() for path in folder.path.iterdir() if path.is_file()} == files


def test_a_mended_check_changes_the_scores_that_it_decides_and_keeps_the_old(made):
    house, folder = made
    before = rewards(folder)
    (house / "env.py").write_text(STRICT)
    with pytest.raises(ConfigError, match=r"seal diagnose .*run --rescore"):
        seal.diagnose(folder.path)
    told = []
    found = rescore(folder.path, lambda *now: told.append(now))
    after = rewards(folder)
    assert told[-1] == (40, 40)
    assert set(found.now_fail) == {name for name in before if before[name] != after[name]}
    assert found.changed == len(found.now_fail) == 6
    assert found.before > found.after == sum(after.values()) / 40
    assert json.loads((folder.path / "result.json").read_text())["score"] == found.after
    kept = list(folder.lines("rollouts.before", Rollout).read())
    assert {one.id: one.reward for one in kept} == before
    assert seal.diagnose(folder.path).profile.failed == 40 - sum(after.values())
    assert rescore(folder.path).changed == 0
    (house / "env.py").write_text(WORLD)
    assert rescore(folder.path).changed == 6
    kept = list(folder.lines("rollouts.before", Rollout).read())
    assert {one.id: one.reward for one in kept} == before == rewards(folder)


def test_rollouts_that_came_later_are_kept_too(made):
    house, folder = made
    first, *others = folder.rollouts()
    before = rewards(folder)
    lines, kept = folder.lines("rollouts", Rollout), folder.lines("rollouts.before", Rollout)
    lines.rewrite(others)
    (house / "env.py").write_text(STRICT)
    rescore(folder.path)
    (house / "env.py").write_text(WORLD)
    lines.append(first)
    found = rescore(folder.path)
    assert {one.id: one.reward for one in kept.read()} == before == rewards(folder)
    # As if it had been killed before it came to the settings.
    contract = folder.settings()["contract"]
    settings = folder.settings_path.read_text()
    folder.settings_path.write_text(settings.replace(contract, "0" * 16))
    again = rescore(folder.path)
    assert (again.rollouts, again.before) == (40, found.after)
    kept.path.unlink()
    folder.settings_path.write_text(settings.replace(contract, "0" * 16))
    assert rescore(folder.path).changed == 0


def test_where_the_old_scores_cannot_be_kept_all_stays_as_it_was(made):
    house, folder = made
    files = (folder.path / "rollouts.jsonl").read_bytes()
    (folder.path / "rollouts.before.jsonl").mkdir()
    (house / "env.py").write_text(STRICT)
    with pytest.raises(ConfigError, match=r"rollouts\.before\.jsonl: cannot be read"):
        rescore(folder.path)
    assert (folder.path / "rollouts.jsonl").read_bytes() == files


def test_a_run_without_rollouts_is_told_so(made):
    _, folder = made
    lines = folder.path / "rollouts.jsonl"
    lines.write_text(lines.read_text().splitlines(keepends=True)[0])
    with pytest.raises(ConfigError, match="no rollout yet"):
        rescore(folder.path)


def test_mended_gold_is_enough_of_a_change(made):
    house, folder = made
    tasks = lamp_tasks()
    tasks[1]["turns"][1]["gold"][0]["arguments"]["level"] = 51
    (house / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    before = rewards(folder)
    found = rescore(folder.path)
    assert found.changed == (before["lamp-01#0"] == 1.0)
    assert rewards(folder)["lamp-01#0"] == 0.0


def test_a_rollout_that_broke_in_its_verifier_is_scored_at_last(tmp_path):
    broken = edited(WORLD, "return self.level > 0", "return 1 / self.level > 0")
    house = write_environment(tmp_path / "lamp", world=broken)
    run(house, "sim:lost", ALL, out=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    dark = [name for name, reward in rewards(folder).items() if reward is None]
    assert dark
    (house / "env.py").write_text(WORLD)
    found = rescore(folder.path)
    assert found.before > found.after
    assert (found.now_fail, found.kept) == (tuple(sorted(dark)), 0)
    assert all(one.failure is None for one in folder.rollouts())


def test_a_rollout_that_broke_off_keeps_what_it_has(made):
    house, folder = made
    first = folder.rollouts()[0]
    gone = {"score": Score(reward=None), "failure": "ModelFailure: gone", "turns": ()}
    folder.lines("rollouts", Rollout).rewrite([first.model_copy(update=gone)])
    (house / "env.py").write_text(STRICT)
    found = rescore(folder.path)
    assert (found.kept, found.changed, found.after) == (1, 0, None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('return "plugged in"', 'return "in"', "the call is answered with something else now"),
        ('"no_colour"', '"colourless"', "the call failed (no_colour), and fails otherwise"),
        ("It cannot shine so.", "No such light.", "the call is answered with something else now"),
        ("if not self.plugged:", "if False:", "the call failed (no_power), and goes through now"),
        ("def plug_in(", "def connect(", "goes through|went through, and fails now|no such tool"),
    ],
)
def test_a_world_that_answers_otherwise_is_no_ground_for_a_verdict(tmp_path, old, new, why):
    house = write_environment(tmp_path / "lamp")
    run(house, "sim:lost", ALL, out=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    kept = (folder.path / "rollouts.jsonl").read_bytes()
    (house / "env.py").write_text(edited(WORLD, old, new))
    if "connect" in new:
        text = (house / "env.py").read_text().replace('requires="plug_in"', 'requires="connect"')
        (house / "env.py").write_text(text)
        tasks = (house / "tasks.jsonl").read_text().replace("plug_in", "connect")
        (house / "tasks.jsonl").write_text(tasks)
    with pytest.raises(ConfigError, match="cannot be judged anew") as refusal:
        rescore(folder.path)
    assert any(part in str(refusal.value) for part in why.split("|"))
    assert "seal" in str(refusal.value) or "--fresh" in str(refusal.value)
    assert (folder.path / "rollouts.jsonl").read_bytes() == kept


def test_other_tasks_are_no_ground_for_a_verdict(made):
    house, folder = made
    tasks = lamp_tasks()
    tasks[0]["turns"][0]["user"] = "Something else."
    (house / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    with pytest.raises(ConfigError, match="the user says something else in turn 0 now"):
        rescore(folder.path)
    (house / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks[1:]))
    with pytest.raises(ConfigError, match=r"lamp-00#0 cannot .* there is no such task now"):
        rescore(folder.path)


def test_runs_whose_decisions_rest_on_their_scores_are_refused(made):
    _, folder = made
    text = folder.settings_path.read_text().replace('command = "run"', 'command = "evolve"')
    folder.settings_path.write_text(text)
    with pytest.raises(ConfigError, match="made by `seal evolve`"):
        rescore(folder.path)


def test_a_run_that_another_process_writes_is_left_alone(made):
    _, folder = made
    with (
        folder.opened(folder.settings()),
        pytest.raises(ConfigError, match="another process is writing"),
    ):
        rescore(folder.path)


KILLED = textwrap.dedent("""
    import os, signal, sys
    from seal.diagnose import rescore
    from seal import records

    place, count = int(sys.argv[1]), 0
    replace = records.Path.replace

    def dying(path, target):
        global count
        if count == place:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        return replace(path, target)

    records.Path.replace = dying
    rescore.rescore(sys.argv[2])
""")


@pytest.mark.parametrize("place", range(5))
def test_wherever_it_is_killed_the_same_command_ends_it_and_nothing_is_lost(made, tmp_path, place):
    house, folder = made
    before = rewards(folder)
    (house / "env.py").write_text(STRICT)
    shutil.copytree(folder.path, tmp_path / "whole")
    wanted = rescore(tmp_path / "whole")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(place), str(folder.path)],
        capture_output=True,
        check=False,
        env={**os.environ},
    )
    assert done.returncode in ((-signal.SIGKILL,) if place < 4 else (0,)), done.stderr
    if place < 4:
        assert rescore(folder.path) == wanted
    assert rewards(folder) == rewards(RunFolder(tmp_path / "whole"))
    kept = list(folder.lines("rollouts.before", Rollout).read())
    assert {one.id: one.reward for one in kept} == before
    assert not list(folder.path.glob("*.partial")) or place == 4
    assert seal.diagnose(folder.path).profile.rollouts == 40
