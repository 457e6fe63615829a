"""`seal show RUN` and `seal diagnose`: what a person sees of a run."""

import json

import pytest

from seal.cli import main
from seal.rollout.run import RunSettings, run
from tests.factories import write_environment


@pytest.fixture
def seal(capsys):
    """Runs a command in this process; its exit code and what it printed."""

    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture(autouse=True)
def _run(tmp_path):
    """A run of the lamp by a reader that knows no rule, in `run`."""
    lamp = write_environment(tmp_path / "lamp")
    run(lamp, "sim:lost", RunSettings(split=None), out=tmp_path / "run")


def test_a_rollout_is_shown_with_each_label_under_its_turn(seal, golden):
    code, out, err = seal("show", "run", "--rollout", "lamp-01#0")
    assert (code, err) == (0, "")
    assert out.startswith("lamp-01#0  sim:lost (simulated)  candidate ")
    golden("show_rollout.txt", out)


def test_a_rollout_is_wrapped_at_the_width_of_the_terminal(seal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = seal("show", "run", "--rollout", "lamp-01#0")[1].splitlines()
    assert max(map(len, lines[1:])) <= 60


def test_json_of_a_rollout_has_a_sentence_for_each_diagnosis(seal):
    _, out, _ = seal("show", "run", "--rollout", "lamp-01#0", "--json")
    (shown,) = [json.loads(line) for line in out.splitlines()]
    assert shown["task"] == "lamp-01"
    assert all(one["sentence"] for one in shown["diagnosed"]["diagnoses"])


def test_task_shows_all_rollouts_of_it(seal):
    assert seal("show", "run", "--task", "lamp-01") == seal("show", "run", "--rollout", "lamp-01#0")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("lamp-1#0", "Did you mean 'lamp-"),
        ("lamp-01", "Rollouts of this task: lamp-01#0."),
        ("lamp-01#7", "Did you mean 'lamp-01#0'?"),
        ("", "no rollout ''"),
    ],
)
def test_an_id_that_is_not_there_is_answered_with_near_ones_and_a_command(seal, wrong, said):
    code, out, err = seal("show", "run", "--rollout", wrong)
    assert (code, out) == (2, "")
    assert said in err
    assert "List them with: seal show run" in err


def test_a_rollout_is_asked_of_a_run(seal):
    code, _, err = seal("show", "lamp", "--rollout", "lamp-01#0")
    assert code == 2
    assert "lamp: no run here" in err
