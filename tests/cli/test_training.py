"""`seal train` from the command line: what it prints where, its exit codes, its summary."""

import json
import re
from pathlib import Path

import pytest

from seal.cli import main
from tests.evolve.parcels import write_parcels
from tests.loop.fakes import BASE, Trainer, install

SETTINGS = """\
validation_tasks = 20
test_tasks = 20
[train]
generations = 2
steps = 1
max_tokens = 64
[evolve]
budget = 0
profile_tasks = 30
screen_scenarios = 4
[evolve.gate]
scenarios = 60
removal_scenarios = 6
"""


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs `seal train` on the parcel desk, with a stand-in for all that needs torch."""
    monkeypatch.chdir(tmp_path)
    write_parcels(tmp_path / "parcels")
    (tmp_path / "quick.toml").write_text(SETTINGS, encoding="utf-8")
    fake = Trainer(skills=("novice", "expert", "expert"))
    install(fake, monkeypatch)

    def run(*arguments: str, model: str = "local:x", budget: int = 0):
        given = ["train", "parcels", "-m", model, "--config", "quick.toml", *arguments]
        given += ["--set", f"evolve.budget={budget}"]
        code = main(given)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_the_answer_is_on_stdout_and_the_progress_on_stderr(command):
    code, out, err = command("--out", "run", budget=400)
    assert code == 0
    lines = [re.sub(" +", " ", line) for line in out.splitlines()]
    for begins in (
        "parcels local:x rewriter offline",
        "warm start local:/a/base",
        "generation 0: evolve 4 of 4 patches accepted",
        "checkpoint 2 validation score",
        "0 dispatch_parcel.constraint.mass accepted",
        "base original",
        "base evolved",
        "trained original",
        "trained evolved",
        "training: trained over base, original words",
        f"base policy: -m {BASE}",
        f"trained policy: -m {BASE}+run/adapter",
        "4 slots changed; see them with: seal diff run",
        "report: run/report.html",
        "run folder: run",
    ):
        assert any(line.startswith(begins) for line in lines), begins
    assert Path("run/report.html").is_file()
    for said in (
        "rollouts: 128 in 2 GRPO steps, at most 400 to evolve the words, 60 on validation, at most "
        "80 on test",
        "gate: up to 60 scenarios a test",
        "baseline: validation under the original words",
        "generation 0: 4 of 4 patches accepted",
        "  accepted: dispatch_parcel.constraint.mass",
        "step 1 of 2: mean score 0.000, 7 tokens sampled",
        "spent: 4 rollouts, 14 tokens sampled to train on",
    ):
        assert said in err, said
    assert "step 1 of 2" not in out


def test_the_last_line_of_json_is_the_summary(command):
    code, out, err = command("--json", "-q", "--out", "run", budget=400)
    assert (code, err) == (0, "")
    *records, summary = map(json.loads, out.splitlines())
    assert [one["record"] for one in records] == [
        "checkpoint",
        "generation",
        "step",
        "checkpoint",
        "generation",
        "step",
        "checkpoint",
    ]
    cells = {
        (policy, words): summary[policy][words]["score"]
        for policy in ("base", "trained")
        for words in ("original", "evolved")
    }
    assert summary["score"] == cells["trained", "original"] > cells["base", "original"]
    assert {"low", "high", "scored", "total"} <= summary.keys()
    gain = summary["gain"]
    assert gain["effect"] == pytest.approx(cells["trained", "original"] - cells["base", "original"])
    assert gain["low"] < gain["effect"] < gain["high"]
    assert Path(summary["adapter"]).is_dir()
    assert Path(summary["report"]).is_file()
    assert summary["trained_policy"] == f"{BASE}+{summary['adapter']}"


def test_a_finished_run_is_shown_again_from_the_same_command(command):
    _, first, _ = command()
    code, again, err = command()
    assert code == 0
    assert again == first
    assert "GRPO steps, at most" not in err
    assert len(list(Path("runs").iterdir())) == 1


def test_another_seed_or_setting_is_another_run(command):
    command()
    command("--seed", "0")
    assert len(list(Path("runs").iterdir())) == 1
    command("--set", "test_tasks=5")
    assert len(list(Path("runs").iterdir())) == 2


def test_words_that_were_left_alone_are_said_to_be(command):
    code, out, err = command("--out", "run")
    assert code == 0
    assert "no patch was proposed" in out
    assert "no rewrite is in force in the end" in out
    assert "gate:" not in err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("sim:novice", "only local models can be trained, and this is a simulated reader"),
        ("openai/gpt-4o-mini", "and this is a model on a server"),
        ("gold", "and this is a replay of gold calls"),
    ],
)
def test_what_cannot_be_trained_is_the_users_error(command, model: str, said: str):
    code, out, err = command(model=model)
    assert (code, out) == (2, "")
    assert said in err
    assert not Path("runs").exists()


def test_a_setting_that_does_not_exist_is_answered_with_a_guess(command):
    code, _, err = command("--set", "train.stepps=3")
    assert code == 2
    assert "Did you mean 'train.steps'?" in err


def test_the_lineage_commands_work_on_a_training_run(command, capsys):
    command("--out", "run", budget=400)
    assert main(["log", "run"]) == 0
    assert "accepted, bundle evidence: dispatch_parcel" in capsys.readouterr().out
    assert main(["diff", "run"]) == 0
    assert "dispatch_parcel.constraint.mass\n  + Give it in {unit}." in capsys.readouterr().out
    assert main(["show", "run"]) == 0
    assert "policy version  candidate" in capsys.readouterr().out
    assert main(["show", "run", "--task", "validation-001"]) == 0
    shown = capsys.readouterr().out
    assert [f"version v{number}" in shown for number in range(3)] == [True] * 3
    assert main(["diagnose", "run", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    examples = [example for row in rows[:-1] for example in row["examples"]]
    assert examples
    assert all(example.startswith("train-") for example in examples)
    assert main(["promote", "run", "--out", "slots.toml"]) == 0
    assert main(["compare", "run", "run"]) == 2
    assert "seal report run" in capsys.readouterr().err


def test_an_interrupted_run_says_that_it_resumes(command, capsys, monkeypatch):
    install(Trainer(stop_at="step 1"), monkeypatch)
    code, _, err = command("--out", "run")
    assert code == 130
    assert "The same command resumes." in err
    assert main(["report", "run"]) == 0
    assert "this run is unfinished" in capsys.readouterr().err
    install(Trainer(), monkeypatch)
    code, out, err = command("--out", "run")
    assert code == 0
    assert "reading back what was done before" in err
    assert "run folder: run" in out
