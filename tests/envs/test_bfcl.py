import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from seal.envs.bfcl import BfclEnvironment
from seal.envs.bfcl_data import broken_tasks, parse_call, split_numbers
from seal.envs.contract import accept
from seal.envs.registry import load_environment
from seal.envs.verify import (
    GoldReplays,
    gold_calls,
    replay,
    state_difference,
    verify,
    visible_tools,
)
from seal.errors import EnvironmentFailure, MissingExtra
from seal.types import SPLITS, ToolCall

pytestmark = pytest.mark.bfcl


def broken(status="broken"):
    return {one.task for one in BfclEnvironment.quarantined() if one.status == status}


def test_the_contract_has_every_documented_tool_and_no_prose(bfcl):
    assert len(bfcl.contract.tools) == 128
    assert all(tool.prose.description for tool in bfcl.contract.tools.values())
    assert "description" not in bfcl.contract["cd"].parameters["properties"]["folder"]
    assert bfcl.contract["mean"].parameters["properties"]["numbers"]["items"] == {"type": "number"}
    updates = bfcl.renderer.tools(bfcl.original)["edit_ticket"].parameters["properties"]["updates"]
    assert updates["properties"]["status"]["description"] == "[Optional] New status for the ticket."


def test_splits_are_disjoint_by_scenario_and_hold_everything_that_is_not_broken(bfcl):
    numbers = {split: {str(n) for n in drawn} for split, drawn in split_numbers().items()}
    sizes = {split: len(found) for split, found in numbers.items()}
    assert sizes == {"train": 30, "gate": 60, "validation": 10, "test": 100}
    assert all(not a & b for a, b in itertools.combinations(numbers.values(), 2))
    assert all({task.scenario for task in bfcl.tasks(s)} <= numbers[s] for s in SPLITS)
    ids = [task.id for task in bfcl.tasks(None)]
    assert len(ids) == len(set(ids)) == 800 - len(broken())
    assert not broken() & set(ids)
    assert broken("suspect") < set(ids)
    assert all(task.split == split for split in SPLITS for task in bfcl.tasks(split))


def test_the_training_scenarios_are_the_published_ones():
    order = list(range(200))
    random.Random(42).shuffle(order)
    drawn = split_numbers()
    assert {*drawn["train"], *drawn["gate"], *drawn["validation"]} == set(order[:100])
    assert drawn["train"] == tuple(order[:30])


def test_gold_passes_in_every_task_that_is_not_broken(bfcl, tasks):
    gold = GoldReplays(bfcl)
    for task in tasks.values():
        played = replay(bfcl, task, gold_calls(task))
        assert verify(bfcl, task, gold.of(task), played, []).reward == 1.0, task.id


def test_gold_fails_in_every_broken_task_and_there_are_few(bfcl, package):
    found = list(broken_tasks(package))
    assert {task.id for task in found} == broken()
    assert 0 < len(found) <= 12
    for task in found:
        with pytest.raises(EnvironmentFailure, match=task.id):
            GoldReplays(bfcl).of(task)


def test_every_quarantined_task_exists_once_with_reason_and_source(tasks):
    records = BfclEnvironment.quarantined()
    assert len({one.task for one in records}) == len(records)
    assert {one.task for one in records} <= set(tasks) | broken()
    assert all(one.reason and one.source for one in records)


def test_outputs_of_gold_are_the_official_ones(bfcl, tasks, official, entries):
    gold = GoldReplays(bfcl)
    for task in tasks.values():
        entry, calls = entries[task.id]
        for turn, strings in zip(gold.of(task).turns, calls, strict=True):
            results, _ = official.execute(
                strings,
                entry["initial_config"],
                entry["involved_classes"],
                "outputs",
                entry["id"],
                long_context=task.group == "long_context",
            )
            assert [done.output for done in turn.executed] == results, task.id


def test_the_official_checker_accepts_what_we_accept_of_gold(tasks, official, entries):
    for task_id in sorted(tasks)[::16]:
        entry, calls = entries[task_id]
        steps = [[[call] for call in turn] for turn in calls]
        verdict = official.multi_turn_checker(steps, calls, entry, entry["id"], "accepted")
        assert verdict["valid"], task_id


def perturbed(calls, rng):
    """Gold that skips, repeats or reorders, as a policy might."""
    turns = [list(turn) for turn in calls]
    place = rng.randrange(len(turns))
    turn = turns[place]
    match rng.choice(["skip", "repeat", "reverse", "empty"]):
        case "skip" if turn:
            turn.pop(rng.randrange(len(turn)))
        case "repeat":
            turns[place] = turn + turn
        case "reverse":
            turn.reverse()
        case "empty":
            turn.clear()
    return turns


def test_states_are_equal_exactly_when_the_official_check_says_so(bfcl, package, official, entries):
    gold = GoldReplays(bfcl)
    rng = random.Random(7)
    said = []
    for task in (*bfcl.tasks("train"), *bfcl.tasks("gate")):
        if task.group == "miss_func":
            continue  # the official executor also runs tools that are held out
        entry, calls = entries[task.id]
        turns = perturbed(calls, rng)
        ours = [
            [_as_call(package, text, f"{i}-{j}") for j, text in enumerate(turn)]
            for i, turn in enumerate(turns)
        ]
        played = replay(bfcl, task, ours)
        for index, (mine, theirs) in enumerate(zip(turns, calls, strict=True)):
            both = [
                official.execute(
                    strings,
                    entry["initial_config"],
                    entry["involved_classes"],
                    name,
                    entry["id"],
                    long_context=task.group == "long_context",
                )[1]
                for strings, name in ((mine, "perturbed"), (theirs, "reference"))
            ]
            equal = not state_difference(
                gold.of(task).turns[index].state, played.turns[index].state
            )
            assert equal == official.state_checker(*both)["valid"], (task.id, index)
            said.append(equal)
    assert 0.1 < sum(said) / len(said) < 0.9


def _as_call(package, text, call_id):
    gold = parse_call(package, text)
    return ToolCall(id=call_id, tool=gold.tool, arguments=json.dumps(gold.arguments))


def test_every_call_of_a_held_out_tool_is_unknown_until_its_reveal(bfcl, tasks):
    held_out = [task for task in tasks.values() if task.group == "miss_func"]
    for task in held_out:
        hidden = [turn.hidden for turn in task.turns]
        reveal = hidden.index(())
        assert reveal > 0
        assert not any(hidden[reveal:])
        for name in hidden[0]:
            call = ToolCall(id="1", tool=name, arguments="{}")
            before = accept(bfcl.contract, call, visible_tools(bfcl, task, hidden[reveal - 1]))
            after = accept(bfcl.contract, call, visible_tools(bfcl, task, hidden[reveal]))
            assert before.kind == "unknown_tool"
            assert getattr(after, "kind", "") != "unknown_tool"
    assert len(held_out) == 200 - sum(name.startswith("miss_func") for name in broken())


def test_the_reveal_turn_says_that_functions_were_added(tasks):
    turn = tasks["miss_func_2"].turns[4]
    assert turn.user == "I have updated some more functions you can choose from. What about now?"
    assert [call.tool for call in turn.gold] == ["cp", "cd", "mv"]


@pytest.mark.parametrize(
    "text",
    [
        "cd(folder=__import__('os').getcwd())",
        "cd(**{'folder': 'x'})",
        "os.remove('x')",
        "cd(folder=f'{1 + 1}')",
        "1 + 1",
    ],
)
def test_a_reference_call_with_anything_but_literals_is_refused(package, text):
    with pytest.raises(ValueError, match=r"no call|no literal|malformed"):
        parse_call(package, text)


def test_positional_arguments_go_by_the_documents_order(package):
    assert parse_call(package, "grep('a.txt', pattern='-1')").arguments == {
        "file_name": "a.txt",
        "pattern": "-1",
    }


PROBE = """
import json
from seal.envs.registry import load_environment
from seal.envs.verify import GoldReplays
from seal.errors import ToolError
from seal.types import content_hash
bfcl = load_environment("bfcl")
gold = GoldReplays(bfcl)
seen = []
for task in bfcl.tasks("validation"):
    turns = gold.of(task).turns
    seen.append([[[d.output for d in t.executed], t.state] for t in turns])
task = next(t for t in bfcl.tasks(None) if "book_flight" in t.tools)
start = {"TravelAPI": {"access_token": "t", "credit_card_list": {"c": {"balance": 1}}}}
world = bfcl.new_world(task.model_copy(update={"state": start}))
try:
    world.call("book_flight", dict(access_token="t", card_id="c", travel_date="2026-01-01",
               travel_from="SFO", travel_to="LAX", travel_class="x"))
except ToolError as refusal:
    seen.append(refusal.message)
print(content_hash(seen), seen[-1])
"""


@pytest.mark.usefixtures("package")
def test_outputs_states_and_messages_do_not_depend_on_the_hash_seed():
    said = {
        subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1
    assert "{'business', 'economy', 'first'}" in said.pop()


@pytest.mark.usefixtures("package")
def test_without_the_data_the_message_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path))
    with pytest.raises(MissingExtra, match="seal fetch bfcl"):
        load_environment("bfcl")
