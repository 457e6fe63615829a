"""What once went wrong from the command line: stale words, silent failures, steered terminals."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import seal
from seal.errors import EnvironmentFailure, SealError
from seal.models.budget import Budget
from tests.factories import edited, lamp_tasks, write_environment

COMMAND = [sys.executable, "-c", "import seal.cli, sys; sys.exit(seal.cli.main())"]


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)


def summary(done: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(done.stdout.splitlines()[-1])


def test_a_run_under_edited_words_is_another_run(tmp_path):
    lamp = write_environment(tmp_path / "lamp")
    first = summary(command("run", lamp, "-m", "gold", "--split", "all", "--json"))
    again = summary(command("run", lamp, "-m", "gold", "--split", "all", "--json"))
    assert again["run"] == first["run"]
    (file,) = list((lamp / "tools").glob("dim*.jinja"))[:1]
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("{% endblock %}", " Slowly.{% endblock %}", 1), encoding="utf-8")
    edited_run = summary(command("run", lamp, "-m", "gold", "--split", "all", "--json"))
    assert edited_run["run"] != first["run"]


def test_a_run_is_diagnosed_from_any_folder(tmp_path, monkeypatch):
    write_environment(tmp_path / "lamp")
    monkeypatch.chdir(tmp_path)
    seal.run("lamp", "gold", seal.RunSettings(split=None), out=tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert seal.diagnose(tmp_path / "run").profile.failed == 0


def test_the_first_failure_is_said_when_nothing_was_scored(tmp_path):
    world = 'raise RuntimeError("the bulb is gone")'
    source = (write_environment(tmp_path / "plain") / "env.py").read_text(encoding="utf-8")
    head, _, rest = source.partition("def reset(self, task: Task) -> None:\n")
    lamp = write_environment(
        tmp_path / "lamp",
        world=f"{head}def reset(self, task: Task) -> None:\n        {world}\n{rest}",
    )
    done = command("run", lamp, "-m", "gold", "--split", "all")
    assert done.returncode == 3
    assert "the bulb is gone" in done.stdout


def test_only_a_tool_may_refuse(tmp_path):
    source = (write_environment(tmp_path / "plain") / "env.py").read_text(encoding="utf-8")
    reset = "def reset(self, task: Task) -> None:\n"
    world = edited(source, reset, f'{reset}        raise ToolError("no", "Not today.")\n')
    lamp = seal.load_environment(write_environment(tmp_path / "lamp", world=world))
    with pytest.raises(EnvironmentFailure, match=r"ToolError\('no'\); only a tool may refuse"):
        lamp.new_world(lamp.tasks(None)[0])


def test_a_comparison_with_many_unscored_scenarios_is_undecided(tmp_path):
    lamp = write_environment(tmp_path / "lamp", tasks=lamp_tasks(8))
    for name, policy in (("a", "sim:lost"), ("b", "gold")):
        out = tmp_path / name
        seal.run(lamp, policy, seal.RunSettings(split=None), out=out)
    lines = (tmp_path / "b" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    broken = json.loads(lines[1]) | {"score": {"reward": None, "checks": []}, "failure": "it broke"}
    (tmp_path / "b" / "rollouts.jsonl").write_text(
        "\n".join([lines[0], json.dumps(broken), *lines[2:]]) + "\n", encoding="utf-8"
    )
    done = command("compare", tmp_path / "a", tmp_path / "b")
    assert "undecided" in done.stdout
    assert done.returncode == 1


def test_what_an_earlier_process_spent_counts_against_the_budget():
    budget = Budget(1.0)
    budget.charge(0.9)
    with pytest.raises(SealError, match="used up"), budget.reserve(0.2):
        pass


def test_an_error_cannot_steer_the_terminal():
    done = command("show", "\x1b[31mrooms\u202e")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "\\u001b[31mrooms\\u202e" in done.stderr


def test_an_output_that_cannot_show_a_letter_shows_its_number(tmp_path):
    lamp = write_environment(tmp_path / "lamp")
    toml = (lamp / "env.toml").read_text(encoding="utf-8")
    (lamp / "env.toml").write_text(
        toml.replace('description = "', 'description = "Grüße. '), encoding="utf-8"
    )
    done = subprocess.run(
        [*COMMAND, "show", str(lamp)],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert done.returncode == 0
    assert "Gr\\xfc\\xdfe" in done.stdout


def test_a_temperature_that_no_record_could_hold_is_refused():
    done = command("run", "rooms", "-m", "gold", "-n", "1", "--set", "model.temperature=inf")
    assert done.returncode == 2
    assert "temperature" in done.stderr
