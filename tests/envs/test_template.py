"""An environment folder is read whole: what is wrong is said with its line, all at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.registry import shipped_environments
from seal.envs.template import SCENARIOS, seed_texts_toml
from seal.errors import ConfigError, EnvironmentFailure, TemplateError
from seal.types import SPLITS, Task
from tests.factories import TOML, WORLD, edited, lamp_tasks, write_environment


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp"))


def complaint(folder, **overrides):
    with pytest.raises(TemplateError) as caught:
        load_environment(write_environment(folder / "lamp", **overrides)).tasks(None)
    return str(caught.value).replace(f"{folder}/lamp/", "")


def test_splits_have_their_shares_and_nothing_is_in_two(lamp):
    counts = {split: len(lamp.tasks(split)) for split in SPLITS}
    assert counts == {"train": 12, "gate": 12, "validation": 6, "test": 10}
    scenarios = [{task.scenario for task in lamp.tasks(split)} for split in SPLITS]
    assert len(set().union(*scenarios)) == sum(map(len, scenarios)) == 40
    assert lamp.tasks(None) == tuple(task for split in SPLITS for task in lamp.tasks(split))


def test_a_split_that_a_task_names_is_kept(tmp_path):
    tasks = [{**task, "split": "test"} for task in lamp_tasks(5)] + lamp_tasks(9)[5:]
    template = load_environment(write_environment(tmp_path / "lamp", tasks=tasks))
    assert {f"lamp-0{n}" for n in range(5)} <= {task.id for task in template.tasks("test")}


def test_two_loads_give_the_same_tasks(lamp):
    again = load_environment(lamp.folder)
    assert again.tasks(None) == lamp.tasks(None)
    assert again.contract_parts == lamp.contract_parts


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("name = ", "env.toml: not TOML"),
        ("", "env.toml: cannot be read (No such file"),
        ('name = "a"', "env.toml: description: Field required."),
        (f"{TOML}licnce = 'x'", "env.toml: licnce: no such key.\nKeys: name, description, "),
        (
            f"{TOML}[limits]\nstep = 3",
            "env.toml: limits.step: no such key.\nKeys: steps, call_chars, call_seconds.\nD",
        ),
        (f"{TOML}[limits]\nsteps = 0", "env.toml: limits.steps: Input should be greater than"),
        (f'trusted = "one"\n{TOML}', 'env.toml: trusted: Input should be a list, found "one".'),
        (f"{TOML}[slots]\nhint = 3", "env.toml: slots.hint"),
        (f"{TOML}entry = 'world.py'", "world.py: no such file.\nenv.toml's `entry` names it."),
        (f"{TOML}entry = 'no.such.module'", "no.such.module: cannot be imported: ModuleNotFound"),
    ],
)
def test_what_is_wrong_with_the_manifest_is_said(tmp_path, toml, message):
    folder = write_environment(tmp_path / "lamp", toml=toml or TOML)
    if not toml:
        (folder / "env.toml").unlink()
    with pytest.raises((TemplateError, ConfigError)) as caught:
        load_environment(folder)
    said = str(caught.value).replace(f"{folder}/", "")
    assert message in said if toml else "without env.toml" in said


def test_all_problems_of_the_manifest_are_said_at_once(tmp_path):
    said = complaint(tmp_path, toml="nme = 'a'\n[limits]\nsteps = 'x'\n")
    assert [line.split(": ")[1] for line in said.splitlines() if "env.toml" in line] == [
        "name",
        "description",
        "limits.steps",
        "nme",
    ]


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ("x = 1", "env.py: 0 subclasses of Environment here"),
        (f"{WORLD}\n\nclass Other(Lamp):\n    pass\n", "env.py: 2 subclasses of Environment here"),
        ("def", "env.py:1: cannot be imported: SyntaxError"),
        ("1 / 0", "env.py:1: cannot be imported: ZeroDivisionError"),
        (
            WORLD.replace("@tool", "#@tool")
            .replace("    #@tool(\n", "")
            .replace('        requires="plug_in",\n', "")
            .replace('        level=Rule(unit="percent", minimum=1, maximum=100),\n', "")
            .replace("        colour=Rule(allowed=COLOURS),\n    )\n", ""),
            "Lamp has no tools",
        ),
        (
            edited(WORLD, 'Rule(unit="percent"', 'Rule(units="percent"'),
            "env.py:29: cannot be imported: Rule: units: no such key.\nKeys: allowed, format, unit",
        ),
        (
            f"{WORLD}\nraise SystemExit\n",
            f"env.py:{WORLD.count(chr(10)) + 2}: cannot be imported: it",
        ),
        (f"import sys\nsys.exit(0)\n{WORLD}", "env.py:2: cannot be imported: it ends the program"),
        (
            edited(WORLD, "    def reset(", '    verify_state = "every_trun"\n\n    def reset('),
            "env.py: Lamp.verify_state is 'every_trun'.\nIt may be: final, every_turn.\n"
            "Did you mean 'every_turn'?",
        ),
        (
            edited(WORLD, "    def reset(", '    verify_output = "all"\n\n    def reset('),
            "env.py: Lamp has no use for 'verify_output'.\nOptions of the verifier: verify_state, "
            "verify_outputs.\nDid you mean 'verify_outputs'?",
        ),
        (
            edited(
                WORLD,
                "    def reset(",
                "    @classmethod\n    def draw(cls, rng): pass\n\n    def reset(",
            ),
            "env.py: draw(rng) of Lamp returned None; return a dict.",
        ),
        (
            edited(
                WORLD,
                "    def reset(",
                "    @classmethod\n    def draw(cls, rng):\n        return {}[1]\n\n    def reset(",
            ),
            "env.py:15: draw(rng) of Lamp: KeyError: 1",
        ),
    ],
)
def test_what_is_wrong_with_the_world_is_said(tmp_path, world, message):
    assert message in complaint(tmp_path, world=world)


def test_a_tool_may_be_called_like_an_option_of_the_verifier(tmp_path):
    world = edited(WORLD, "def plug_in", "def verify_it").replace('"plug_in"', '"verify_it"')
    folder = write_environment(tmp_path / "lamp", world=world, tasks=[])
    assert "verify_it" in load_environment(folder).contract.tools


def test_a_module_that_failed_is_read_again_once_it_is_mended(tmp_path):
    folder = write_environment(tmp_path / "lamp", world=f"{WORLD}\n1 / 0\n")
    for _ in range(2):
        with pytest.raises(TemplateError, match="ZeroDivisionError"):
            load_environment(folder)
    (folder / "env.py").write_text(WORLD)
    assert load_environment(folder).name == "lamp"


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ("[dim", "slots.toml: not TOML"),
        ('[dim]\naffordence = "x"', "slots.toml: no slot 'dim.affordence' in the words.\nDid you"),
        ('[dim]\naffordance = "In {unit}."', "slots.toml: dim.affordance: no placeholder '{unit}'"),
        (f'[dim]\naffordance = "{"x" * 241}"', "slots.toml: dim.affordance: 241 characters"),
        (
            "[dim]\naffordance = 3\nrecovery.refused = ['a']",
            "slots.toml: dim.affordance: 3 is no text; write it in quotes.",
        ),
        ("[dim]\nrecovery.refused = ['a']", "slots.toml: dim.recovery.refused: ['a'] is no text"),
    ],
)
def test_what_is_wrong_with_the_seed_texts_is_said(tmp_path, slots, message):
    assert complaint(tmp_path, slots=slots).startswith(message)


def test_the_original_words_are_the_seed_texts_and_nothing(lamp):
    assert set(lamp.original.texts) == set(lamp.renderer.slots)
    assert {k: v for k, v in lamp.original.texts.items() if v} == {
        "dim.affordance": "Sets level and colour at once."
    }


@settings(max_examples=20)
@given(st.data())
def test_evolved_words_can_be_made_the_authors_own(lamp, tmp_path_factory, data):
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}"), max_size=9)
    chosen = st.dictionaries(st.sampled_from(sorted(lamp.renderer.slots)), texts)
    words = lamp.original.with_texts(data.draw(chosen))
    folder = tmp_path_factory.mktemp("words") / "lamp"
    promoted = load_environment(write_environment(folder, slots=seed_texts_toml(words)))
    assert promoted.original.texts == words.texts


GENERATING = edited(
    edited(
        WORLD, "from seal.types import Rule, Task", "from seal.types import Rule, Task, UserTurn"
    ),
    "    def reset(self, task: Task)",
    "    @classmethod\n"
    "    def draw(cls, rng):\n"
    '        return {"wall": rng.choice("NESW"), "number": rng.randint(0, 999)}\n\n'
    "    @classmethod\n"
    "    def generate(cls, conventions, rng):\n"
    "        for _ in range(2):\n"
    "            user = f\"{conventions['wall']} {rng.randint(0, 10**9)}\"\n"
    '            state = {"sockets": []}\n'
    '            yield Task(id="", scenario="", turns=(UserTurn(user=user),), state=state)\n\n'
    "    def reset(self, task: Task)",
)


def generating(folder, world=GENERATING):
    path = write_environment(folder / "lamp", world=world)
    (path / "tasks.jsonl").unlink()
    return path


def made_by(folder, body):
    """A world whose generator has this body, in line 16."""
    method = f"    @classmethod\n    def generate(cls, conventions, rng):\n        {body}\n\n"
    world = edited(WORLD, "    def reset(", f"{method}    def reset(")
    task = 'TASK = Task(turns=({"user": "Hi.", "gold": []},), state={"sockets": []})\n'
    return generating(folder, edited(world, "COLOURS = {", f"{task}COLOURS = {{"))


def test_a_generator_gives_scenarios_that_differ_between_splits_and_never_by_the_call(tmp_path):
    folder = generating(tmp_path)
    template = load_environment(folder)
    assert template.generated
    for split in SPLITS:
        tasks = template.tasks(split)
        assert len({task.scenario for task in tasks}) == SCENARIOS[split] == len(tasks) / 2
        assert {task.split for task in tasks} == {split}
        assert len({task.id for task in tasks}) == len(tasks)
    said = [task.turns[0].user for task in template.tasks(None)]
    assert len(set(said)) == len(said)
    assert load_environment(folder).tasks(None) == template.tasks(None)
    assert tuple(template.scenario("gate", 7)) == template.tasks("gate")[14:16]


def test_conventions_come_from_their_seed(tmp_path):
    folder = generating(tmp_path)
    drawn = {seed: load_environment(f"{folder}@{seed}").conventions for seed in range(5)}
    assert len({tuple(conventions.values()) for conventions in drawn.values()}) > 3
    assert load_environment(folder).conventions == drawn[0]
    assert load_environment(f"{folder}@3").conventions == drawn[3]
    assert load_environment(f"{folder}@3").name == "lamp@3"
    assert load_environment(f"{folder}@0").name == "lamp"
    other = load_environment(f"{folder}@3").tasks("test")
    assert other != load_environment(f"{folder}@4").tasks("test")


def test_a_generator_that_fails_is_the_environments_failure(tmp_path):
    world = edited(GENERATING, "for _ in range(2):", "for _ in range(2 // 0):")
    with pytest.raises(EnvironmentFailure, match="lamp: generate scenario train-0: ZeroDivision"):
        load_environment(generating(tmp_path, world)).tasks("train")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return TASK", "it gave a Task by itself.\nWrite: yield Task("),
        ("return None", "it gave None."),
        ("yield 7", "it gave 7."),
        ("yield {'turns': []}", "it gave {'turns': []}."),
        ("return 'tasks'", "it gave 'tasks'."),
    ],
)
def test_what_a_generator_gives_is_tasks(tmp_path, body, said):
    template = load_environment(made_by(tmp_path, body))
    with pytest.raises(TemplateError) as caught:
        template.tasks("train")
    assert f"env.py: Lamp.generate must yield Tasks; {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("yield Task(turn=())", "Task: turns: Field required.; turn: no such key.\nKeys: id, "),
        (
            "yield Task(turns=({'user': 1},))",
            "turns.0.user: Input should be a valid string, found 1",
        ),
        ("raise SystemExit", "it ends the program"),
    ],
)
def test_a_generator_whose_task_cannot_be_made_is_said_in_our_own_words(tmp_path, body, said):
    with pytest.raises(EnvironmentFailure) as caught:
        load_environment(made_by(tmp_path, body)).tasks("train")
    assert "env.py:16: lamp: generate scenario train-0: " in str(caught.value)
    assert said in str(caught.value)
    assert "pydantic.dev" not in str(caught.value)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ("{'tool': 'dimm'}", "turn 0: no tool 'dimm'.\nTools: plug_in, dim."),
        (
            "{'tool': 'plug_in', 'arguments': {'socket': 'N'}, 'as_said': {'sokket': 'n'}}",
            "turn 0: plug_in has no argument 'sokket'.\nArguments: socket.\nDid you mean 'socket'",
        ),
    ],
)
def test_a_generated_task_speaks_of_what_is_there(tmp_path, gold, said):
    body = f"yield Task(turns=({{'user': 'Hi.', 'gold': [{gold}]}},))"
    with pytest.raises(TemplateError) as caught:
        load_environment(made_by(tmp_path, body)).tasks("train")
    assert f"env.py: lamp: generate scenario train-0: {said}" in str(caught.value)


def test_a_generator_need_not_name_its_tasks(tmp_path):
    template = load_environment(made_by(tmp_path, "return [TASK]"))
    assert [task.id for task in template.tasks("test")][:2] == ["test-000", "test-001"]


def test_a_world_that_changes_what_it_was_given_does_not_change_the_task(tmp_path):
    world = edited(WORLD, 'list(task.state["sockets"])', 'task.state["sockets"]')
    world = edited(world, "self.plugged = socket", "self.plugged = self.sockets.pop()")
    template = load_environment(write_environment(tmp_path / "lamp", world=world))
    (task, *_) = template.tasks("train")
    before = task.model_dump_json()
    template.new_world(task).call("plug_in", {"socket": task.state["sockets"][0]})
    assert task.model_dump_json() == before


def test_a_reset_that_fails_is_the_environments_failure(lamp):
    task = Task(id="a", scenario="a", turns=({"user": "x"},), state={})
    with pytest.raises(EnvironmentFailure, match="lamp: reset for task a: KeyError"):
        lamp.new_world(task)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "romos",
            "romos: no such environment.\nEnvironments: bfcl, home, orders, rooms, or a folder",
        ),
        ("rooms@x", "rooms@x: 'x' is no convention seed; write a number, such as rooms@7."),
        ("rooms@-1", "'-1' is no convention seed"),
        ("rooms@", "'' is no convention seed"),
        ("rooms@²", "'²' is no convention seed"),
        (".", ".: a folder without env.toml"),
        ("../rooms", "../rooms: no such environment"),
    ],
)
def test_an_environment_that_is_not_there_is_answered_with_those_that_are(name, message):
    with pytest.raises(ConfigError) as caught:
        load_environment(name)
    assert message in str(caught.value)


def test_a_misspelt_environment_gets_a_guess():
    with pytest.raises(ConfigError, match="Did you mean 'rooms'"):
        load_environment("romos")
    assert {"bfcl", "orders", "rooms"} <= set(shipped_environments())


def test_a_folder_may_have_an_at_sign_in_its_name(tmp_path):
    folder = write_environment(tmp_path / "me@home" / "lamp")
    assert load_environment(folder).name == "lamp"
    assert load_environment(f"{folder}@2").convention_seed == 2
    assert load_environment(write_environment(tmp_path / "lamp@home")).convention_seed == 0
