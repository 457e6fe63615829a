"""A task whose gold is in doubt is found without a model, and stays so until a person says no."""

import json

import pytest

from seal.envs import load_environment
from seal.envs.suspects import known_defects, suspects_among, suspicion, without_suspects
from seal.envs.verify import GoldReplays
from seal.errors import TemplateError
from tests.factories import TOML, WORLD, edited, lamp_tasks, write_environment

LISTED = edited(
    edited(
        WORLD,
        "    def reset(",
        "    @classmethod\n    def quarantined(cls):\n"
        "        return (Quarantined(task='lamp-03', status='suspect', reason='It looks wrong.',"
        " source='A look.'),)\n\n    def reset(",
    ),
    "from seal.envs import Environment, check, tool",
    "from seal.envs import Environment, check, tool\nfrom seal.envs.environment import Quarantined",
)
UNRULED = edited(
    edited(WORLD, "        colour=Rule(allowed=COLOURS),\n", ""),
    "        if colour not in COLOURS.values():\n"
    '            raise ToolError("no_colour", "It cannot shine so.", argument="colour")\n',
    "",
)
"""A lamp that takes any colour, with no rule that says which."""


def found(folder, **changes):
    template = load_environment(write_environment(folder, **changes))
    return {
        one.task: one.reason
        for one in suspects_among(template, GoldReplays(template), template.tasks(None))
    }


@pytest.mark.parametrize("name", ["rooms", "orders@3", "home@5"])
def test_no_task_of_the_environments_that_ship_is_suspect(name):
    template = load_environment(name)
    tasks = [task for split in ("train", "gate") for task in template.tasks(split)]
    gold = GoldReplays(template)
    assert suspects_among(template, gold, tasks) == []
    assert without_suspects(template, gold, tasks) == tasks


def test_a_task_that_the_environment_lists_is_suspect(tmp_path):
    assert found(tmp_path / "lamp", world=LISTED) == {"lamp-03": "It looks wrong."}


def test_gold_that_fails_its_own_check_is_suspect(tmp_path):
    tasks = lamp_tasks()
    tasks[7]["checks"] = ["is_lit"]
    assert found(tmp_path / "lamp", tasks=tasks) == {
        "lamp-07": "Gold itself fails the check is_lit."
    }


def test_gold_that_no_rule_leads_to_is_suspect(tmp_path):
    reasons = found(tmp_path / "lamp", world=UNRULED)
    # Five tasks want no call, and in one the user happens to say W3, as a socket.
    assert len(reasons) == 34
    assert reasons["lamp-00"] == (
        "A reader that is told every rule sends dim(level=50, colour='warm') in turn 0; the tool "
        "takes it, and the verdict does not."
    )


def test_a_rule_that_is_declared_and_untold_makes_no_task_suspect(tmp_path):
    silent = edited(
        WORLD,
        "        if colour not in COLOURS.values():\n"
        '            raise ToolError("no_colour", "It cannot shine so.", argument="colour")\n',
        "",
    )
    assert found(tmp_path / "lamp", world=silent, tools={}, slots="") == {}


def test_a_rule_that_contradicts_gold_makes_it_suspect(tmp_path):
    tasks = lamp_tasks()
    tasks[0]["turns"][0]["gold"][1]["arguments"]["colour"] = "C9"
    assert set(found(tmp_path / "lamp", tasks=tasks)) == {"lamp-00"}


def test_a_value_that_the_dialogue_says_needs_no_rule(tmp_path):
    tasks = lamp_tasks()
    for task in tasks:
        task["turns"][0]["user"] += " Warm is W3, cold is C9."
    assert found(tmp_path / "lamp", world=UNRULED, tasks=tasks) == {}


def test_gold_that_breaks_is_broken_and_not_suspect(tmp_path):
    tasks = lamp_tasks()
    tasks[0]["turns"][0]["gold"][0]["arguments"]["socket"] = "nowhere"
    assert found(tmp_path / "lamp", tasks=tasks) == {}


def test_what_a_person_trusts_is_not_suspect(tmp_path):
    toml = f'trusted = ["lamp-03"]\n{TOML}'
    assert found(tmp_path / "lamp", world=LISTED, toml=toml) == {}
    template = load_environment(tmp_path / "lamp")
    assert known_defects(template) == {}
    tasks = lamp_tasks()
    tasks[3]["turns"][1]["gold"][0]["arguments"]["colour"] = "W3"
    (tmp_path / "lamp" / "tasks.jsonl").write_text("".join(f"{json.dumps(t)}\n" for t in tasks))
    template = load_environment(tmp_path / "lamp")
    task = next(task for task in template.tasks(None) if task.id == "lamp-03")
    assert suspicion(template, GoldReplays(template), task) is None


def test_a_misspelt_trusted_task_is_an_error_with_a_guess(tmp_path):
    with pytest.raises(TemplateError, match=r"env.toml: trusted: no task 'lamp-3'") as refusal:
        found(tmp_path / "lamp", toml=f'trusted = ["lamp-3"]\n{TOML}')
    assert "Did you mean 'lamp-" in str(refusal.value)
