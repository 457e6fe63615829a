"""A sound environment passes every check, and each planted defect is caught by its own."""

from pathlib import Path

import pytest

from seal.envs import load_environment
from seal.errors import TemplateError
from seal.soundness import AGREE_CLAIM, TASKS_CLAIM, check_environment, unloadable
from seal.soundness.catalogue import LABEL_CLAIM, REPEAT_CLAIM, SEED_CLAIM, SPLIT_CLAIM
from seal.soundness.gold import DROPPED_CLAIM, GOLD_CLAIM
from seal.soundness.lazy import CLAIM as LAZY_CLAIM
from seal.soundness.leaks import CRASH_CLAIM, LIVE_CLAIM, WORDS_CLAIM
from seal.soundness.rendering import CLAIM as BLOCK_CLAIM
from seal.soundness.verifier import CLAIM as VERIFIER_CLAIM
from seal.soundness.verifier import LOOK_CLAIM
from seal.soundness.worlds import APART_CLAIM, PROCESS_CLAIM, SAME_CLAIM
from tests.factories import SLOTS, TOML, TOOLS, WORLD, edited, lamp_tasks, write_environment


def findings(folder):
    return list(check_environment(load_environment(folder)))


def failures(folder, **overrides):
    """Claims that fail, with the first message of each."""
    found: dict[str, str] = {}
    for finding in findings(write_environment(folder, **overrides)):
        if not finding.passed:
            found.setdefault(finding.check, f"{finding.where}: {finding.message}")
    return found


def test_a_sound_environment_passes_every_check(tmp_path):
    assert failures(tmp_path / "lamp") == {}


def test_every_claim_is_spoken_of_once(tmp_path):
    claims = [finding.check for finding in findings(write_environment(tmp_path / "lamp"))]
    assert len(claims) == len(set(claims)) == 17


def test_the_environment_of_the_design_page_passes_every_check(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "design.md"
    blocks = page.read_text(encoding="utf-8").split("```python\n")[1:]
    (world,) = [b.partition("```")[0] for b in blocks if "def generate" in b]
    folder = write_environment(tmp_path / "kettle", world=world, tools={}, slots="", tasks=[])
    (folder / "tasks.jsonl").unlink(missing_ok=True)
    for name in (folder, f"{folder}@1"):
        assert [f.message for f in check_environment(load_environment(name)) if not f.passed] == []


def test_a_world_that_changes_the_state_it_was_given_harms_nobody(tmp_path):
    world = edited(WORLD, 'list(task.state["sockets"])', 'task.state["sockets"]')
    world = edited(
        world, "self.plugged = socket", "self.sockets.remove(socket)\n        self.plugged = socket"
    )
    assert failures(tmp_path / "lamp", world=world) == {}


def test_shipped_rooms_pass_every_check_under_several_conventions():
    for name in ("rooms", "rooms@3"):
        template = load_environment(name)
        assert [f.message for f in check_environment(template) if not f.passed] == []


def test_an_environment_without_tasks_is_caught(tmp_path):
    found = failures(tmp_path / "lamp", tasks=[])
    assert set(found) == {GOLD_CLAIM}
    assert "there are no tasks" in found[GOLD_CLAIM]


def test_a_gold_call_that_is_refused_is_caught(tmp_path):
    tasks = lamp_tasks()
    tasks[4]["turns"][0]["gold"][0]["arguments"]["socket"] = "nowhere"
    found = failures(tmp_path / "lamp", tasks=tasks)
    assert set(found) == {GOLD_CLAIM}
    assert "lamp-04, turn 0" in found[GOLD_CLAIM]
    assert "Not that one." in found[GOLD_CLAIM]


def test_a_gold_call_that_breaks_its_contract_is_caught(tmp_path):
    tasks = lamp_tasks()
    tasks[4]["turns"][0]["gold"][1]["arguments"]["level"] = "half"
    found = failures(tmp_path / "lamp", tasks=tasks)
    assert set(found) == {GOLD_CLAIM}
    assert "call 1, dim: it breaks its contract: level: Input should" in found[GOLD_CLAIM]


def test_a_check_that_gold_fails_is_caught(tmp_path):
    tasks = lamp_tasks()
    tasks[7]["checks"] = ["is_lit"]
    found = failures(tmp_path / "lamp", tasks=tasks)
    assert set(found) == {GOLD_CLAIM}
    assert "gold fails is_lit" in found[GOLD_CLAIM]


def test_a_verifier_that_doing_nothing_satisfies_is_caught(tmp_path):
    world = WORLD.replace("self.plugged", "self._plugged").replace("self.level", "self._level")
    world = world.replace("self.colour", "self._colour")
    tasks = [{**task, "checks": []} for task in lamp_tasks()]
    found = failures(tmp_path / "lamp", world=world, tasks=tasks)
    assert set(found) == {LAZY_CLAIM, DROPPED_CLAIM}
    assert "passes 40 of 40 tasks (100%)" in found[LAZY_CLAIM]


def test_a_reset_that_draws_without_a_seed_is_caught(tmp_path):
    world = edited(WORLD, "import Rule, Task", "import Rule, Task\nfrom uuid import uuid4")
    world = edited(world, 'self.plugged = ""', 'self.plugged = ""\n        self.tag = str(uuid4())')
    found = failures(tmp_path / "lamp", world=world)
    assert SAME_CLAIM in found
    assert "reset leaves another tag" in found[SAME_CLAIM]


def test_state_that_outlives_a_world_is_caught(tmp_path):
    world = edited(WORLD, "class Lamp", "USED = []\n\n\nclass Lamp")
    world = edited(
        world, 'return "plugged in"', "USED.append(socket)\n        return str(len(USED))"
    )
    assert {SAME_CLAIM, APART_CLAIM} <= set(failures(tmp_path / "lamp", world=world))


def test_state_that_two_worlds_share_is_caught_though_reset_clears_it(tmp_path):
    world = edited(WORLD, "class Lamp", "USED = []\n\n\nclass Lamp")
    world = edited(world, 'self.plugged = ""', 'self.plugged = ""\n        USED.clear()')
    world = edited(
        world, 'return "plugged in"', "USED.append(socket)\n        return str(len(USED))"
    )
    found = failures(tmp_path / "lamp", world=world)
    assert set(found) == {APART_CLAIM}
    assert "plug_in answers differently" in found[APART_CLAIM]


def test_an_output_in_the_order_of_a_set_is_caught(tmp_path):
    world = edited(WORLD, 'return "plugged in"', "return ' '.join(set(self.sockets))")
    assert set(failures(tmp_path / "lamp", world=world)) == {PROCESS_CLAIM}


def test_a_verifier_with_a_memory_is_caught(tmp_path):
    world = edited(WORLD, "class Lamp", "SEEN = []\n\n\nclass Lamp")
    world = edited(
        world,
        "return self.level > 0",
        "SEEN.append(1)\n        return len(SEEN) % 3 > 0",
    )
    assert VERIFIER_CLAIM in failures(tmp_path / "lamp", world=world)


def test_a_block_that_fails_on_one_kind_of_error_alone_is_caught_with_its_line(tmp_path):
    broken = TOOLS["dim"] + (
        "{% block recovery_argument_value %}{{ error.message }}\n"
        "{% if error.allowed %}{{ error.permitted }}{% endif %}{% endblock %}\n"
    )
    found = failures(tmp_path / "lamp", tools={"dim": broken})
    assert set(found) == {BLOCK_CLAIM}
    assert "dim.jinja:6: block recovery_argument_value: " in found[BLOCK_CLAIM]


def test_a_slot_that_is_printed_twice_is_caught(tmp_path):
    doubled = edited(TOOLS["dim"], "{{ constraint.colour }}", "{{ constraint.colour * 2 }}")
    found = failures(tmp_path / "lamp", tools={"dim": doubled})
    assert set(found) == {BLOCK_CLAIM}
    assert "dim.jinja: 'dim.constraint.colour' appears twice in the block" in found[BLOCK_CLAIM]


def test_a_block_that_fails_on_an_evolved_text_alone_is_caught(tmp_path):
    broken = edited(
        TOOLS["dim"], "{{ constraint.colour }}", "{{ constraint.colour[:9] and nothing }}"
    )
    with pytest.raises(TemplateError):
        load_environment(write_environment(tmp_path / "always", tools={"dim": broken}))
    broken = edited(
        TOOLS["dim"],
        "{{ constraint.colour }}",
        "{% if constraint.colour|length > 9 %}{{ nothing }}{% endif %}{{ constraint.colour }}",
    )
    assert set(failures(tmp_path / "lamp", tools={"dim": broken})) == {BLOCK_CLAIM}


def test_a_live_value_that_is_the_answer_is_caught(tmp_path):
    world = edited(
        WORLD,
        "self.sockets = list",
        'self._right = task.state["sockets"][0]\n        self.sockets = list',
    )
    world = edited(world, "allowed=self.sockets)", "format=self._right)")
    found = failures(tmp_path / "lamp", world=world)
    assert set(found) == {LIVE_CLAIM}
    assert "plug_in.socket.format" in found[LIVE_CLAIM]


def test_a_tool_that_crashes_on_an_odd_value_is_caught(tmp_path):
    world = edited(WORLD, "self.level = level", "self.level = 100 * level // level")
    found = failures(tmp_path / "lamp", world=world)
    assert CRASH_CLAIM in found
    assert "ZeroDivisionError" in found[CRASH_CLAIM]


def test_a_seed_text_that_tells_an_answer_is_caught(tmp_path):
    tasks = lamp_tasks()
    tasks[2]["state"]["sockets"][2] = "balcony"
    tasks[2]["turns"][0]["gold"][0]["arguments"]["socket"] = "balcony"
    slots = f'{SLOTS}\n[plug_in]\naffordance = "Try the balcony first."\n'
    found = failures(tmp_path / "lamp", tasks=tasks, slots=slots)
    assert set(found) == {WORDS_CLAIM}
    assert "'balcony'" in found[WORDS_CLAIM]


def test_a_scenario_in_two_splits_is_caught(tmp_path):
    tasks = [{**task, "split": "train"} for task in lamp_tasks()]
    tasks[3] |= {"split": "test", "scenario": tasks[5]["scenario"]}
    found = failures(tmp_path / "lamp", tasks=tasks)
    assert set(found) == {SPLIT_CLAIM}
    assert "lamp-05 is in test and train" in found[SPLIT_CLAIM]


def test_a_missing_licence_is_caught(tmp_path):
    toml = edited(TOML, 'licence = "CC0-1.0"', "")
    assert set(failures(tmp_path / "lamp", toml=toml)) == {LABEL_CLAIM}


def test_a_misspelt_block_is_a_finding_with_its_line(tmp_path):
    tools = {"dim": edited(TOOLS["dim"], "parameter_colour", "parameter_color")}
    with pytest.raises(TemplateError) as refused:
        load_environment(write_environment(tmp_path / "lamp", tools=tools))
    found = unloadable(refused.value)
    assert (found.check, found.passed) == (AGREE_CLAIM, False)
    assert found.where is not None
    assert found.where.endswith("dim.jinja:3")
    assert found.message == "no parameter 'color' in dim."
    assert "Did you mean 'colour'?" in found.remedy


def test_tasks_that_cannot_be_read_or_made_stand_for_all_other_findings(tmp_path):
    tasks = lamp_tasks()
    tasks[1]["turns"][0]["gold"][0]["tool"] = "plug_inn"
    assert set(failures(tmp_path / "lamp", tasks=tasks)) == {AGREE_CLAIM}
    world = edited(
        WORLD,
        "    @tool\n",
        "    @classmethod\n    def generate(cls, conventions, rng):\n"
        "        return [1 / 0]\n\n    @tool\n",
    )
    assert set(failures(tmp_path / "other", world=world, tasks=[])) == {TASKS_CLAIM}


def test_a_tool_whose_effect_nobody_sees_is_caught(tmp_path):
    world = edited(WORLD, 'self.plugged = ""', 'self.plugged = ""\n        self._note = ""')
    world = edited(
        world,
        "    @check\n",
        "    @tool\n    def note(self, text: str) -> str:\n        self._note = text\n"
        '        return "noted"\n\n    @check\n',
    )
    tasks = lamp_tasks()
    for task in tasks:
        if task["turns"][0]["gold"]:
            task["turns"][0]["gold"] += [{"tool": "note", "arguments": {"text": task["id"]}}]
    found = failures(tmp_path / "lamp", world=world, tasks=tasks)
    assert set(found) == {DROPPED_CLAIM}
    assert "note changes something, and all 35 of its gold calls" in found[DROPPED_CLAIM]


def test_tasks_that_repeat_each_other_are_caught(tmp_path):
    tasks = lamp_tasks()
    tasks[9] = {**tasks[1], "id": "lamp-09", "scenario": "lamp-09"}
    found = failures(tmp_path / "lamp", tasks=tasks)
    assert set(found) == {REPEAT_CLAIM}
    assert "1 of 40 scenarios repeat another one" in found[REPEAT_CLAIM]


def test_a_generator_that_draws_from_elsewhere_is_caught(tmp_path):
    world = edited(
        WORLD,
        "    @tool\n",
        "    @classmethod\n    def generate(cls, conventions, rng):\n"
        "        import random\n        from seal.types import GoldCall, UserTurn\n"
        "        socket = f'N{random.randint(1, 10**9)}'\n"
        "        gold = GoldCall(tool='plug_in', arguments={'socket': socket})\n"
        "        turn = UserTurn(user=f'Use {socket}.', gold=(gold,))\n"
        "        yield Task(turns=(turn,), state={'sockets': [socket]})\n\n    @tool\n",
    )
    found = failures(tmp_path / "lamp", world=world, tasks=[])
    assert SEED_CLAIM in found
    assert "train-000 is another one each time" in found[SEED_CLAIM]


def test_a_check_that_changes_the_world_is_caught(tmp_path):
    world = edited(WORLD, "return self.level > 0", "self.level += 1\n        return self.level > 1")
    assert LOOK_CLAIM in failures(tmp_path / "lamp", world=world)


def test_an_answer_in_the_authors_prose_is_caught_with_its_line(tmp_path):
    tasks = lamp_tasks()
    tasks[2]["state"]["sockets"][2] = "balcony"
    tasks[2]["turns"][0]["gold"][0]["arguments"]["socket"] = "balcony"
    words = (
        '{% extends "_tool.jinja" %}\n'
        "{% block parameter_socket %}Such as balcony. {{ constraint.socket }}{% endblock %}\n"
    )
    found = failures(tmp_path / "lamp", tasks=tasks, tools={**TOOLS, "plug_in": words})
    assert set(found) == {WORDS_CLAIM}
    assert "plug_in.jinja:2: the words of plug_in say 'balcony'" in found[WORDS_CLAIM]
