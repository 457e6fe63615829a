"""An environment folder is read whole: what is wrong is said with its line, all at once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.registry import shipped_environments
from seal.envs.template import SCENARIOS, read_tasks, seed_texts_toml
from seal.errors import ConfigError, EnvironmentFailure, TemplateError
from seal.types import SPLITS, Task
from tests.factories import TOML, WORLD, edited, lamp_task, lamp_tasks, write_environment


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp"))


def complaint(folder, **overrides):
    with pytest.raises(TemplateError) as caught:
        load_environment(write_environment(folder / "lamp", **overrides)).tasks(None)
    return str(caught.value).replace(f"{folder}/lamp/", "")


def broken_tasks(folder, *lines):
    path = write_environment(folder / "lamp") / "tasks.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(TemplateError) as caught:
        load_environment(folder / "lamp").tasks(None)
    return str(caught.value).replace(f"{folder}/lamp/", "")


def row(number=0, **changes):
    return json.dumps({**lamp_task(number), **changes})


def gold(**call):
    return {"turns": [{"user": "Hi.", "gold": [call]}]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "tasks.jsonl:2: not JSON: "),
        ("[" * 3000, "tasks.jsonl:2: not JSON"),
        ("[]", "tasks.jsonl:2: Input should be a valid dictionary"),
        (row(1, senario="x"), "tasks.jsonl:2: senario: Extra inputs are not permitted.\nDid you"),
        (row(1, turns=[]), "tasks.jsonl:2: turns: Tuple should have at least 1 item"),
        (row(1, split="dev"), "tasks.jsonl:2: split: Input should be 'train', 'gate', "),
        (row(1, **gold(tool="dimm")), "2: turn 0: no tool 'dimm'.\nTools: plug_in, dim.\nDid you"),
        (
            row(1, **gold(tool="dim", arguments={"levle": 3})),
            "tasks.jsonl:2: turn 0: dim has no argument 'levle'.\nArguments: level, colour.\nDid",
        ),
        (
            row(1, **gold(tool="dim", arguments={}, as_said={"level": "half"})),
            "tasks.jsonl:2: turn 0: dim: 'level' is in as_said and not in arguments",
        ),
        (row(1, tools=["dim", "plugin"]), "2: no tool 'plugin'.\nDid you mean 'plug_in'?"),
        (row(1, turns=[{"user": "a", "hidden": ["x"]}]), "tasks.jsonl:2: no tool 'x'."),
        (row(0), "tasks.jsonl:2: a second task 'lamp-00'; ids must differ."),
    ],
)
def test_a_wrong_line_of_tasks_is_named_with_its_number(tmp_path, line, message):
    assert message in broken_tasks(tmp_path, row(0), line)


def test_all_problems_of_all_lines_are_said_at_once(tmp_path):
    said = broken_tasks(
        tmp_path,
        "{",
        row(1),
        "",
        row(2, group=7, senario="x", **gold(tool="dimm")),
        row(1, tools=["x"]),
        row(3, **gold(tool="dim", arguments={"a": 1, "b": 2})),
    )
    assert [line.split(": ")[:2] for line in said.splitlines() if "tasks.jsonl:" in line] == [
        ["tasks.jsonl:1", "not JSON"],
        ["tasks.jsonl:4", "group"],
        ["tasks.jsonl:4", "senario"],
        ["tasks.jsonl:5", "a second task 'lamp-01'; ids must differ."],
        ["tasks.jsonl:5", "no tool 'x'."],
        ["tasks.jsonl:6", "turn 0"],
        ["tasks.jsonl:6", "turn 0"],
    ]


def test_a_file_without_tasks_says_what_to_write(tmp_path):
    assert broken_tasks(tmp_path, "", "") == (
        "tasks.jsonl: no tasks. Write one JSON object a line."
    )


def test_tasks_in_another_encoding_are_named(tmp_path):
    folder = write_environment(tmp_path / "lamp")
    (folder / "tasks.jsonl").write_bytes(b'{"id": "\xe4"}\n')
    with pytest.raises(TemplateError, match=r"tasks\.jsonl: cannot be read: UnicodeDecodeError"):
        load_environment(folder).tasks("train")


def test_a_line_ends_where_json_says_it_does(tmp_path, lamp):
    path = tmp_path / "tasks.jsonl"
    turns = [{"user": "one\u2028two\u0085three", "gold": []}]
    line = json.dumps({**lamp_task(0), "turns": turns}, ensure_ascii=False)
    path.write_bytes(f"{line}\r\n{row(1)}".encode())
    first, second = read_tasks(path, lamp.contract)
    assert (first.turns[0].user, second.id) == ("one\u2028two\u0085three", "lamp-01")


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(st.lists(names, min_size=1, max_size=30), st.randoms())
def test_splits_are_by_scenario_and_do_not_depend_on_the_order(lamp, tmp_path_factory, made, rng):
    rows = [row(0, id=str(i), scenario=name) for i, name in enumerate(made)]
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    tasks = read_tasks(path, lamp.contract)
    assert [task.id for task in tasks] == [str(i) for i in range(len(made))]
    splits = {(task.scenario, task.split) for task in tasks}
    assert len(splits) == len(set(made))
    assert all(split in SPLITS for _, split in splits)
    rng.shuffle(rows)
    path.write_text("\n".join(rows), encoding="utf-8")
    assert {(t.scenario, t.split) for t in read_tasks(path, lamp.contract)} == splits


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
        (f"{TOML}licnce = 'x'", "env.toml: licnce: Extra inputs are not permitted.\nDid you mean"),
        (f"{TOML}[limits]\nstep = 3", "env.toml: limits.step: Extra inputs are not permitted.\nD"),
        (f"{TOML}[limits]\nsteps = 0", "env.toml: limits.steps: Input should be greater than"),
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
        ("def", "env.py: cannot be imported: SyntaxError"),
        ("1 / 0", "env.py: cannot be imported: ZeroDivisionError"),
        (
            WORLD.replace("@tool", "#@tool")
            .replace("    #@tool(\n", "")
            .replace('        requires="plug_in",\n', "")
            .replace('        level=Rule(unit="percent", minimum=1, maximum=100),\n', "")
            .replace("        colour=Rule(allowed=COLOURS),\n    )\n", ""),
            "Lamp has no tools",
        ),
    ],
)
def test_what_is_wrong_with_the_world_is_said(tmp_path, world, message):
    assert message in complaint(tmp_path, world=world)


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


def test_a_reset_that_fails_is_the_environments_failure(lamp):
    task = Task(id="a", scenario="a", turns=({"user": "x"},), state={})
    with pytest.raises(EnvironmentFailure, match="lamp: reset for task a: KeyError"):
        lamp.new_world(task)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("romos", "romos: no such environment.\nEnvironments: bfcl, rooms, or a folder"),
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
    assert {"bfcl", "rooms"} <= set(shipped_environments())


def test_a_folder_may_have_an_at_sign_in_its_name(tmp_path):
    folder = write_environment(tmp_path / "me@home" / "lamp")
    assert load_environment(folder).name == "lamp"
    assert load_environment(f"{folder}@2").convention_seed == 2
    assert load_environment(write_environment(tmp_path / "lamp@home")).convention_seed == 0
