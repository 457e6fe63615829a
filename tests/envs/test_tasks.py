"""Tasks are read whole: what is wrong is said with its line, all at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.tasks import read_tasks
from seal.errors import TemplateError
from seal.types import SPLITS
from tests.factories import lamp_task, write_environment


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp"))


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
        (row(1, senario="x"), "tasks.jsonl:2: senario: no such key.\nKeys: id, scenario, "),
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
        (
            row(1, tools=["dim", "plugin"]),
            "2: no tool 'plugin'.\nTools: plug_in, dim.\nDid you mean 'plug_in'?",
        ),
        (row(1, turns=[{"user": "a", "hidden": ["x"]}]), "tasks.jsonl:2: no tool 'x'."),
        (
            row(1, checks=["is_litt"]),
            "2: no check 'is_litt'.\nChecks: is_lit.\nDid you mean 'is_lit'",
        ),
        (
            row(1, **gold(tool="dim", args={})),
            "2: turns.0.gold.0.args: no such key.\nKeys: tool, arguments, as_said.\nDid you",
        ),
        (
            row(1, turns=[{"usr": "Hi."}]),
            "2: turns.0.user: Field required.\ntasks.jsonl:2: turns.0.usr: ",
        ),
        (row(1, group=7), "tasks.jsonl:2: group: Input should be a valid string, found 7."),
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
    with pytest.raises(TemplateError, match=r"tasks\.jsonl: not UTF-8 \(byte 8 is 0xe4"):
        load_environment(folder).tasks("train")


def test_a_line_ends_where_json_says_it_does(tmp_path, lamp):
    path = tmp_path / "tasks.jsonl"
    turns = [{"user": "one\u2028two\u0085three", "gold": []}]
    line = json.dumps({**lamp_task(0), "turns": turns}, ensure_ascii=False)
    path.write_bytes(f"{line}\r\n{row(1)}".encode())
    first, second = read_tasks(path, lamp.contract, ["is_lit"])
    assert (first.turns[0].user, second.id) == ("one\u2028two\u0085three", "lamp-01")


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(st.lists(names, min_size=1, max_size=30), st.randoms())
def test_splits_are_by_scenario_and_do_not_depend_on_the_order(lamp, tmp_path_factory, made, rng):
    rows = [row(0, id=str(i), scenario=name) for i, name in enumerate(made)]
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    tasks = read_tasks(path, lamp.contract, ["is_lit"])
    assert [task.id for task in tasks] == [str(i) for i in range(len(made))]
    splits = {(task.scenario, task.split) for task in tasks}
    assert len(splits) == len(set(made))
    assert all(split in SPLITS for _, split in splits)
    rng.shuffle(rows)
    path.write_text("\n".join(rows), encoding="utf-8")
    assert {(t.scenario, t.split) for t in read_tasks(path, lamp.contract, ["is_lit"])} == splits


@pytest.mark.parametrize(
    "turn", [{"user": "Hi.", "glod": []}, {"user": "Hi.", "gold": [{"tool": "dim", "args": {}}]}]
)
def test_a_misspelt_key_is_one_problem_and_no_more(tmp_path, turn):
    said = broken_tasks(tmp_path, row(0, turns=[turn]))
    assert said.count("tasks.jsonl:1: ") == 1
    assert "at least 1 item" not in said
    assert "Did you mean" in said


@pytest.mark.parametrize("key", ["id", "scenario"])
def test_a_task_of_a_file_has_an_id_and_a_scenario_of_its_own(tmp_path, key):
    task = {k: value for k, value in lamp_task(0).items() if k != key}
    assert broken_tasks(tmp_path, json.dumps(task)) == f"tasks.jsonl:1: {key}: Field required."
