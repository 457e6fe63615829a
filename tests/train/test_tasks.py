"""Tasks whose tools change are told apart, and the user is told."""

import pytest

from seal.cli import main
from seal.errors import ConfigError
from seal.train.tasks import tasks_to_train_on, trainable
from seal.types import Task, UserTurn
from tests.train.bell import TRAINER

pytestmark = TRAINER


def task(name: str, *hidden: tuple[str, ...]) -> Task:
    turns = tuple(UserTurn(user="Do it.", hidden=names) for names in hidden)
    return Task(id=name, scenario=name, turns=turns)


SAME = [task("a", (), ()), task("b", ("x", "y"), ("y", "x")), task("c", ("x",))]
CHANGING = [task("d", (), ("x",)), task("e", ("x",), ("y",))]


def test_tasks_whose_visible_tools_change_are_told_apart():
    assert trainable([*CHANGING, *SAME]) == (SAME, CHANGING)
    assert tasks_to_train_on([*CHANGING, *SAME]) == SAME


def test_an_environment_all_of_whose_tools_change_is_refused():
    with pytest.raises(ConfigError, match="no task to train on"):
        tasks_to_train_on(CHANGING)


def test_the_user_is_told_how_many_tasks_are_left_out(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "env.toml").write_text(
        'name = "desk"\ndescription = "A desk."\nversion = "1"\nlicence = "MIT"\n'
    )
    (tmp_path / "desk" / "env.py").write_text(
        "from seal.envs import Environment, tool\n\n\nclass Desk(Environment):\n"
        "    @tool\n    def ring(self) -> str:\n        return 'rung'\n\n"
        "    @tool\n    def wait(self) -> str:\n        return 'waited'\n"
    )
    shows = '{"user": "Ring.", "gold": [{"tool": "ring"}]'
    lines = []
    for split in ("train", "validation", "test"):
        name = f'"id": "{split}%s", "scenario": "{split}%s", "split": "{split}"'
        lines.append(f'{{{name % (1, 1)}, "turns": [{shows}}}]}}')
        turns = f'[{shows}, "hidden": ["wait"]}}, {shows}}}]'
        lines.append(f'{{{name % (2, 2)}, "turns": {turns}}}')
    (tmp_path / "desk" / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    main(["train", "./desk", "-m", "local:tiny", "--set", "evolve.budget=0"])
    said = capsys.readouterr().err
    assert "train: 1 of 2 tasks; the tools of the others change between turns" in said
