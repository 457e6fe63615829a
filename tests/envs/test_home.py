"""The smart home: it is sound, its worlds hold together, and it says no as it should."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.contract import Accepted, accept
from seal.envs.verify import GoldReplays, execute, gold_calls, replay, verify
from seal.models.reading import stands_in, states
from seal.soundness import check_environment
from seal.types import ToolCall

HOUSES = {seed: load_environment(f"home@{seed}") for seed in range(10)}
HOME = HOUSES[0]
"""Its alarm guards the doors, its hub sleeps; it counts in tenths of degrees and in seconds."""


def made(world, tool, **arguments):
    """What one call does to a world, refusals included."""
    call = ToolCall(id="c", tool=tool, arguments=json.dumps(arguments))
    accepted = accept(HOME.contract, call, HOME.contract.tools)
    assert isinstance(accepted, Accepted), accepted
    return execute(HOME, world, accepted, "c")


def refusal(world, tool, **arguments):
    error = made(world, tool, **arguments).error
    assert error is not None
    return error


def a_world():
    """A world of the first task, and how that task begins."""
    task = HOME.tasks("train")[0]
    return HOME.new_world(task), task.state


def codes(key):
    return sorted(HOME.conventions[key].values())


def flat(task):
    return [call for turn in task.turns for call in turn.gold]


@pytest.mark.parametrize("seed", [0, 3])
def test_the_house_passes_every_check(seed):
    assert [f.message for f in check_environment(HOUSES[seed]) if not f.passed] == []


def test_seeds_draw_houses_that_differ_in_every_convention():
    drawn = [house.conventions for house in HOUSES.values()]
    for key in drawn[0]:
        assert len({json.dumps(one[key]) for one in drawn}) > 1, key
    # Every house has something that wants to be done first, and not every house both.
    needs = {(one["guarded"], one["sleeps"]) for one in drawn}
    assert needs == {(True, True), (True, False), (False, True)}


def test_the_original_words_state_about_half_of_the_rules():
    stated = []
    for name, tool in HOME.renderer.tools(HOME.original).items():
        contract = HOME.contract[name]
        stated += [states(rule, tool.words()) for rule in contract.rules.values()]
        if contract.rule.requires:
            stated.append(stands_in(contract.rule.requires, tool.words()))
    assert (sum(stated), len(stated)) == (7, 16)


def test_tasks_have_all_their_kinds_of_turns():
    tasks = HOME.tasks("train")
    assert {call.tool for task in tasks for call in flat(task)} == {*HOME.contract.tools}
    turns = {group: {len(t.turns) for t in tasks if t.group == group} for group in LEVELS}
    assert turns == LEVELS
    idle = [turn for task in tasks for turn in task.turns if turn.gold == ()]
    assert 0.2 < len(idle) / sum(len(task.turns) for task in tasks) < 0.4
    assert all(flat(task) for task in tasks)


LEVELS = {"easy": {1, 2}, "medium": {2}, "hard": {3, 4}}


def test_the_longest_turns_have_no_step_to_spend_on_the_harmful_advice():
    harm = HOME.original.texts["set_light.affordance"]
    advised = [name for name in HOME.contract.tools if name != "set_light" and name in harm]
    assert advised == ["house_status", "read_sensor", "wake_hub"]
    steps = HOME.manifest.limits.steps
    for house in HOUSES.values():
        for task in house.tasks("train"):
            longest = max(([call.tool for call in turn.gold] for turn in task.turns), key=len)
            assert len(longest) < steps
            if task.group == "hard":
                assert "set_light" in longest
                assert len({*longest, *advised}) > steps


def test_a_wish_that_depends_on_the_house_has_both_answers():
    fallback = {True: 0, False: 0}
    for task in HOME.tasks(None):
        for turn in task.turns:
            if "if the boiler cannot do that" in turn.user:
                high = int(turn.user.split(" degrees, or to ")[0].rsplit(" ", 1)[1])
                (heat,) = [call for call in turn.gold if call.tool == "set_heating"]
                fallback[high > task.state["limit"]] += 1
                assert (heat.arguments["degrees"] == high * 10) == (high < task.state["limit"])
    assert min(fallback.values()) > 10


def test_a_reading_that_gold_needs_has_to_be_obtained():
    task = next(t for t in HOME.tasks("train") if "as warm as the" in t.turns[0].user)
    calls = gold_calls(task)
    assert [call.tool for call in calls[0]] == ["read_sensor", "set_heating"]
    gold = GoldReplays(HOME).of(task)
    guessed = replay(HOME, task, [calls[0][1:], *calls[1:]])
    answers = [" ".join(turn.answer) for turn in task.turns]
    score = verify(HOME, task, gold, guessed, answers)
    assert [check.name for check in score.checks if not check.passed] == [
        "turn 0 output of read_sensor"
    ]


def test_numbers_in_the_wrong_unit_raise_nothing_and_fail():
    silent = 0
    for task in HOME.tasks("train"):
        calls = gold_calls(task)
        for index, turn in enumerate(task.turns):
            for place, call in enumerate(turn.gold):
                said = {k: v for k, v in call.as_said.items() if k in ("degrees", "duration")}
                if not said:
                    continue
                sent = calls[index][place].model_copy(
                    update={"arguments": json.dumps(call.arguments | said)}
                )
                turns = [*calls[:index], [*calls[index]], *calls[index + 1 :]]
                turns[index][place] = sent
                played = replay(HOME, task, turns)
                assert all(done.error is None for one in played.turns for done in one.executed)
                answers = [" ".join(turn.answer) for turn in task.turns]
                assert verify(HOME, task, GoldReplays(HOME).of(task), played, answers).reward == 0
                silent += 1
    assert silent > 50


def test_what_has_to_be_done_first_is_cited_and_not_said():
    world, given = a_world()
    scene = {"scene": codes("scenes")[0], "start_time": "19:30"}
    shut = next(door for door in codes("doors") if door != given["blocked"])
    for tool, first, arguments, message in [
        ("run_scene", "wake_hub", scene, "No answer."),
        ("open_door", "disarm_house", {"door": shut}, "Not now."),
    ]:
        error = refusal(world, tool, **arguments)
        assert (error.message, error.rule.requires) == (message, first)
        assert HOME.renderer.recovery(tool, error, HOME.original) == (message, None)
        words = HOME.original.with_texts({f"{tool}.recovery.refused": "Call {requires} first."})
        told, slot = HOME.renderer.recovery(tool, error, words)
        assert (told, slot) == (f"{message} Call {first} first.", f"{tool}.recovery.refused")
        made(world, first, **({"pin": given["pin"]} if first == "disarm_house" else {}))
        assert made(world, tool, **arguments).error is None
    assert refusal(world, "run_scene", **scene).code == "no_answer"


def test_refusals_cite_what_holds_at_the_moment_and_never_one_answer():
    world, given = a_world()
    zone, doors, zones = codes("zones")[0], codes("doors"), codes("zones")
    hot = refusal(world, "set_heating", zone=zone, degrees=999)
    assert (hot.code, hot.rule.maximum, hot.rule.unit) == (
        *("too_warm", given["limit"] * 10, "tenths of degrees"),
    )
    windy = refusal(world, "move_blinds", zone=given["window"], position=20)
    assert windy.rule.allowed == tuple(z for z in zones if z != given["window"])
    made(world, "disarm_house", pin=given["pin"])
    blocked = refusal(world, "open_door", door=given["blocked"])
    assert blocked.rule.allowed == tuple(d for d in doors if d != given["blocked"])
    bright = refusal(world, "set_light", zone=zone, level=204)
    assert (bright.rule.minimum, bright.rule.maximum) == (0, 100)
    wrong = refusal(world, "disarm_house", pin="0000")
    assert (wrong.message, wrong.rule.stated()) == ("Wrong code.", {})
    assert refusal(world, "run_fan", zone=zone, mode="gentle", duration=60).code == "unknown_mode"
    late = refusal(world, "run_scene", scene=codes("scenes")[0], start_time="7:30 pm")
    assert (late.code, late.rule.format) == ("unknown_time", '"19:30" for 7:30 pm')


def texts(key):
    return st.sampled_from([*codes(key), *HOME.conventions[key], ""])


NUMBERS = st.integers(-300, 3000)
ARGUMENTS = {
    "zone": texts("zones"),
    "scene": texts("scenes"),
    "door": texts("doors"),
    "mode": texts("modes"),
    "start_time": st.sampled_from(["19:30", "00:00", "7:30 pm", "24:00", "1930"]),
    "pin": st.sampled_from([a_world()[1]["pin"], "1111"]),
    "tone": st.one_of(st.none(), NUMBERS),
    **dict.fromkeys(["level", "degrees", "position", "duration"], NUMBERS),
}
CALLS = st.one_of(
    [
        st.tuples(
            st.just(name), st.fixed_dictionaries({a: ARGUMENTS[a] for a in tool.contract.arguments})
        )
        for name, tool in HOME.contract.tools.items()
    ]
)


@settings(max_examples=60)
@given(st.lists(CALLS, max_size=12))
def test_whatever_is_called_refusals_and_reads_change_nothing_and_numbers_are_kept(calls):
    world, given = a_world()
    for tool, arguments in calls:
        before = world.state()
        done = made(world, tool, **arguments)
        after = world.state()
        if done.error or not HOME.contract[tool].mutates:
            assert after == before
        if done.error:
            assert given["pin"] not in str(done.error.rule)
            assert done.error.message.endswith(".")
            assert not any(mark in done.error.message for mark in ("Error", "/", "{"))
        elif tool in ("set_light", "run_fan"):
            kept = after["lights" if tool == "set_light" else "fans"][arguments["zone"]]
            assert kept == [arguments[name] for name in HOME.contract[tool].arguments[1:]]
    assert given["blocked"] not in world.state()["doors"]
    assert given["window"] not in world.state()["blinds"]
    assert all(degrees <= given["limit"] * 10 for degrees in world.state()["heating"].values())


@given(st.randoms(use_true_random=False))
def test_the_order_of_what_is_done_in_a_turn_does_not_matter(rng):
    task = rng.choice([t for t in HOME.tasks("train") if t.group == "hard"])
    calls = gold_calls(task)
    for turn in calls:
        pairs = [[call] for call in turn if call.tool not in ("wake_hub", "disarm_house")]
        for pair in pairs:
            first = HOME.contract[pair[0].tool].rule.requires
            pair[:0] = [call for call in turn if call.tool == first]
        rng.shuffle(pairs)
        turn[:] = [call for pair in pairs for call in pair]
    score = verify(HOME, task, GoldReplays(HOME).of(task), replay(HOME, task, calls), [])
    assert score.reward == 1.0


def test_two_tasks_are_as_they_were(golden):
    shown = []
    for seed, index in [(0, 2), (5, 0)]:
        for task in HOUSES[seed].scenario("train", index):
            shown.append(f"home@{seed} {task.id} {task.group}")
            for turn in task.turns:
                shown.append(f"  {turn.user}")
                for call in turn.gold:
                    sent, said = json.dumps(call.arguments), json.dumps(call.as_said)
                    shown.append(f"    {call.tool} {sent}, said as {said}")
    golden("home_tasks.txt", "\n".join(shown) + "\n")
