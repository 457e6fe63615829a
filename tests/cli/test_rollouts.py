"""`seal show RUN` and `seal diagnose`: what a person sees of a run."""

import json

import pytest

from seal.cli import main
from seal.cli.diagnosis import print_differences, print_profile
from seal.cli.rollouts import _print_rollouts
from seal.diagnose import Profile, ProfileRow
from seal.diagnose.compare import difference
from seal.rollout.run import RunSettings, run
from seal.types import Kind, Score
from tests.diagnose.test_compare import rollout, side
from tests.factories import TOML, WORLD, edited, lamp_tasks, write_environment


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


def test_a_rollout_is_shown_with_each_label_under_its_turn(seal):
    code, out, err = seal("show", "run", "--rollout", "lamp-01#0")
    assert (code, err) == (0, "")
    assert out.startswith("lamp-01#0  sim:lost (simulated)  candidate ")
    first, second = out.split("\n  turn 1  ")
    assert "\n    -- pass\n" not in second
    assert first.endswith(
        '    step 0  plug_in{"socket": "E2"}\n      plugged in\n    agent: Done.\n    -- pass'
    )
    label = second[second.index("    >> ") :].splitlines()
    assert label[0] == "    >> argument_type  dim.level  step 0"
    assert label[1].startswith('       In turn 1, dim got level="a quarter": ')
    assert label[2] == "       slot dim.constraint.level"
    assert "  check failed: is_lit\n" in second


def test_a_rollout_is_wrapped_at_the_width_of_the_terminal(seal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = seal("show", "run", "--rollout", "lamp-01#0")[1].splitlines()
    assert max(map(len, lines[1:])) <= 60


def test_json_of_a_rollout_has_a_sentence_for_each_diagnosis(seal):
    _, out, _ = seal("show", "run", "--rollout", "lamp-01#0", "--json")
    (shown,) = [json.loads(line) for line in out.splitlines()]
    assert shown["task"] == "lamp-01"
    assert all(one["sentence"] for one in shown["diagnosed"]["diagnoses"])


@pytest.mark.parametrize("name", ["env.toml", "env.py"])
def test_a_rollout_is_shown_without_labels_where_its_environment_is_gone(seal, tmp_path, name):
    _, labelled, _ = seal("show", "run", "--rollout", "lamp-01#0")
    (tmp_path / "lamp" / name).unlink()
    code, out, err = seal("show", "run", "--rollout", "lamp-01#0")
    assert (code, "no labels: " in err, "lamp" in err) == (0, True, True)
    assert [line for line in out.splitlines() if line in labelled.splitlines()] == out.splitlines()
    assert ">> " not in out
    code, out, err = seal("show", "run", "--rollout", "lamp-01#0", "--json")
    assert (code, json.loads(out)["diagnosed"]) == (0, None)


def test_a_rollout_that_can_have_no_labels_is_shown_and_it_is_said(seal, tmp_path):
    path = tmp_path / "run" / "rollouts.jsonl"
    kept = path.read_text()
    path.write_text(kept.replace('"task":"lamp-01"', '"task":"lamp-99"'))
    code, out, err = seal("show", "run", "--rollout", "lamp-99#0")
    assert (code, "turn 1  user:" in out) == (0, True)
    assert err == "no labels: lamp-99#0 fits no task of lamp.\n"
    path.write_text(f"{kept}{{")
    (tmp_path / "run" / "candidates").rename(tmp_path / "gone")
    code, out, err = seal("show", "run", "--rollout", "lamp-01#0")
    assert (code, "turn 1  user:" in out) == (0, True)
    assert "no labels: run: no candidate" in err
    assert seal("diagnose", "run")[0] == 2
    (tmp_path / "gone").rename(tmp_path / "run" / "candidates")
    path.write_text(f"{kept.replace('lamp-01', 'lamp-99')}{{")
    _, out, _ = seal("diagnose", "run")
    assert out.splitlines()[-2].endswith(
        "of 39 rollouts failed; left out: 1 that fit no task, 1 half written"
    )
    summary = json.loads(seal("diagnose", "run", "--json")[1].splitlines()[-1])
    assert (summary["misfits"], summary["torn"], summary["unscorable"]) == (1, True, 0)


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


def test_the_profile_names_two_rollouts_of_every_row(golden, capsys):
    kinds = [Kind.REFUSED, Kind.MISSING_CALL, Kind.ARGUMENT_UNEXPECTED]
    rows = [
        ProfileRow(
            tool="book_room",
            argument=None if kind is Kind.MISSING_CALL else "hour",
            kind=kind,
            evolved=evolved,
            faults=faults,
            share=round(faults / 20, 3),
            count=faults,
            mean_reward=0.1,
            recovery_rate=None if kind is Kind.MISSING_CALL else 0.25,
            slots=() if faults < 1 else ("book_room.recovery.refused", "book_room.affordance"),
            examples=("train-001#0", "train-012#0")[: int(faults)],
        )
        for kind, faults, evolved in zip(kinds, (12.5, 3, 0.5), (False, True, False), strict=True)
    ]
    print_profile(Profile(rows=tuple(rows), rollouts=40, failed=20), every=False)
    golden("diagnose_table.txt", capsys.readouterr().out)


def test_the_profile_ends_with_how_to_see_a_rollout(seal):
    code, out, err = seal("diagnose", "run")
    assert (code, err) == (0, "")
    assert out.splitlines()[-2] == "35 of 40 rollouts failed"
    shown = out.splitlines()[-1].removeprefix("Look at one with: seal ").split()
    code, text, _ = seal(*shown)
    assert (code, ">> " in text) == (0, True)


def test_the_profile_fits_eighty_columns(seal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, seal("diagnose", "run")[1].splitlines())) <= 80


def test_a_difference_is_shown_with_its_interval(golden, capsys, monkeypatch):
    for width in ("80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        print_differences(difference(side(20, 2), [*side(4, 5), rollout(40)]), every=False)
    golden("diagnose_two.txt", capsys.readouterr().out)


def test_two_runs_are_compared_row_by_row(seal, tmp_path):
    run(tmp_path / "lamp", "sim:expert", RunSettings(split=None), out=tmp_path / "other")
    code, out, err = seal("diagnose", "run", "other")
    assert (code, err) == (0, "")
    assert out.startswith("A  run\nB  other\nlost in A")
    assert "Look at one of A with: seal show run --rollout lamp-" in out
    _, out, _ = seal("diagnose", "run", "other", "--json")
    *rows, summary = [json.loads(line) for line in out.splitlines()]
    assert (summary["paired"], summary["rollouts"], summary["first"]) == (True, [40, 40], "run")
    assert sum(row["difference"] for row in rows) == pytest.approx(summary["total"]["difference"])
    assert {row["change"] for row in rows} <= {"new", "gone", "more", "fewer", "unclear"}


def test_suspect_tasks_are_told_with_what_to_do_about_them(seal, tmp_path):
    tasks = lamp_tasks()
    tasks[7]["checks"] = ["is_lit"]
    lamp = write_environment(tmp_path / "odd", tasks=tasks)
    code, out, _ = seal("run", lamp, "-m", "gold", "--split", "all", "--out", "odd-run", "-q")
    assert (code, "40 of 40 scored; 1 suspect ones among them" in out) == (0, True)
    _, out, _ = seal("diagnose", "odd-run")
    assert "1 rollouts of suspect tasks are in no count: gold is in doubt" in out
    assert "  lamp-07: Gold itself fails the check is_lit." in out
    assert f'If gold is right, say so in {lamp}/env.toml: trusted = ["lamp-07"]' in out
    summary = json.loads(seal("diagnose", "odd-run", "--json")[1].splitlines()[-1])
    (suspect,) = summary["suspect"]
    assert (suspect["task"], suspect["rollouts"], summary["rollouts"]) == ("lamp-07", 1, 39)
    _, out, _ = seal("show", "odd-run", "--rollout", "lamp-07#0")
    assert "    -- gold_suspect\n       Gold is in doubt: Gold itself fails the check" in out
    assert "1 suspect ones, of which nothing is learned" in seal("check", lamp)[1]
    (lamp / "env.toml").write_text(f'trusted = ["lamp-07"]\n{TOML}')
    assert "1 of 40 rollouts failed" in seal("diagnose", "odd-run")[1]


def test_a_misspelt_trusted_task_stops_check_and_diagnose(seal, tmp_path):
    (tmp_path / "lamp" / "env.toml").write_text(f'trusted = ["lamp-7"]\n{TOML}')
    for command in (["check", "lamp"], ["diagnose", "run"]):
        code, out, err = seal(*command)
        assert code == 2
        assert "env.toml: trusted: no task 'lamp-7'." in out + err


def test_a_mended_verdict_is_judged_anew_and_told(seal, tmp_path):
    run(tmp_path / "lamp", "sim:expert", RunSettings(split=None), out=tmp_path / "run2")
    world = edited(WORLD, "return self.level > 0", "return self.level > 20")
    (tmp_path / "lamp" / "env.py").write_text(world)
    code, _, err = seal("diagnose", "run2")
    assert (code, "seal diagnose run2 --rescore" in err) == (2, True)
    code, out, err = seal("diagnose", "run2", "--rescore")
    assert (code, out.splitlines()[0]) == (0, "judged anew: 3 of 40 rollouts changed")
    assert "  3 fail now: lamp-" in out
    assert "the rollouts as they were: run2/rollouts.before.jsonl" in err
    summary = json.loads(seal("diagnose", "run2", "--rescore", "--json")[1].splitlines()[-1])
    assert summary["rescored"]["changed"] == 0


def test_what_cannot_be_diagnosed_is_said_in_one_message_and_no_traceback(seal, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "run.toml").write_text((tmp_path / "run" / "run.toml").read_text())
    damaged = tmp_path / "run" / "rollouts.jsonl"
    kept = damaged.read_text()
    for arguments, said in [
        (["nowhere"], "nowhere: no run here"),
        (["lamp"], "lamp: no run here"),
        (["bare"], "bare: no rollout yet, so there is nothing to diagnose"),
        (["run", "lamp"], "lamp: no run here"),
        (["run", "bare"], "bare: no rollout yet"),
        (["run", "run", "--rescore"], "--rescore is for one run, and two are given"),
        (["nowhere", "--rescore"], "nowhere: no run here"),
    ]:
        code, out, err = seal("diagnose", *arguments)
        assert (code, out) == (2, ""), arguments
        assert said in err
        assert "Traceback" not in err
    damaged.write_text(kept.replace('"turns"', '"tturns"', 1))
    for extra in ([], ["--rescore"]):
        code, out, err = seal("diagnose", "run", *extra)
        assert (code, "rollouts.jsonl:2: this line is no Rollout" in err) == (2, True)


def test_an_unscored_rollout_counts_as_no_score_and_not_as_none_earned(tmp_path, capsys):
    result = run(tmp_path / "lamp", "sim:expert", RunSettings(split=None), out=tmp_path / "made")
    good = result.rollouts[0].model_copy(update={"score": Score(reward=1.0)})
    broken = good.model_copy(update={"score": Score(reward=None)})
    _print_rollouts([good, broken], tmp_path, as_json=False, command="evolve")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["candidate", "rollouts", "scored", "mean", "reward"]
    assert lines[-3].split()[1:] == ["2", "1", "1.000"]
