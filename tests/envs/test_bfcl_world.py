import copy
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.envs.bfcl_world import plain
from seal.errors import ToolError

pytestmark = pytest.mark.bfcl


def world_with(bfcl, tasks, task_id, **state):
    """A fresh world of a task, some of whose services start elsewhere."""
    task = tasks[task_id]
    return bfcl.new_world(task.model_copy(update={"state": {**task.state, **state}}))


def task_with(tasks, tool, group):
    return next(t.id for t in tasks.values() if t.group == group and tool in t.tools)


def test_arguments_are_text_and_never_evaluated(bfcl, tasks):
    world = world_with(bfcl, tasks, task_with(tasks, "echo", "base"))
    text = "__import__('os').getpid()"
    assert json.loads(world.call("echo", {"content": text})) == {"terminal_output": text}
    assert "sort(x)" in world.call("echo", {"content": "use sort(x)"})


def test_default_lists_of_a_tweet_stay_in_their_world(bfcl, tasks):
    name = task_with(tasks, "post_tweet", "base")
    start = {"TwitterAPI": {"authenticated": True, "tweet_counter": 0}}
    for _ in range(2):
        world = world_with(bfcl, tasks, name, **start)
        assert json.loads(world.call("post_tweet", {"content": "x"}))["mentions"] == []
        world.call("mention", {"tweet_id": 0, "mentioned_usernames": ["@bob"]})


def test_padding_of_long_context_stays_in_its_world(bfcl, tasks):
    name = task_with(tasks, "book_flight", "long_context")
    start = {"TravelAPI": {"access_token": "t", "token_expires_in": 2}}
    booking = {"access_token": "t", "card_id": "2345678923456789", "travel_class": "economy"}
    booking |= {"travel_date": "2026-01-01", "travel_from": "SFO", "travel_to": "LAX"}
    asked = {"access_token": "t", "card_id": "2345678923456789"}
    before = world_with(bfcl, tasks, name, **start).call("get_credit_card_balance", asked)
    world = world_with(bfcl, tasks, name, **start)
    world.call("book_flight", booking)
    assert world.call("get_credit_card_balance", asked) != before
    fresh = world_with(bfcl, tasks, name, **start)
    assert fresh.call("get_credit_card_balance", asked) == before


def test_worlds_that_take_turns_do_what_they_do_alone(bfcl):
    for task in bfcl.tasks("validation"):
        alone = bfcl.new_world(task)
        mixed = [bfcl.new_world(task), bfcl.new_world(task)]
        for call in (call for turn in task.turns for call in turn.gold or ()):
            outputs = [world.call(call.tool, call.arguments) for world in [*mixed, alone]]
            assert len(set(outputs)) == 1, (task.id, call)
        states = [world.state() for world in [*mixed, alone]]
        assert states[0] == states[1] == states[2]


def test_a_state_is_a_copy_and_the_task_stays_as_it_was(bfcl, tasks):
    task = tasks["base_4"]
    before = copy.deepcopy(task.state)
    world = bfcl.new_world(task)
    state = world.state()
    kept = copy.deepcopy(state)
    world.call("touch", {"file_name": "new.txt"})
    assert state == kept
    assert world.state() != kept
    assert task.state == before


def test_precision_of_one_calculation_does_not_reach_the_next_nor_the_process(bfcl, tasks):
    import decimal

    import mpmath

    world = world_with(bfcl, tasks, task_with(tasks, "logarithm", "base"))
    asked = {"value": 20, "base": 10}
    with mpmath.workdps(37), decimal.localcontext(prec=9):
        first = world.call("logarithm", {**asked, "precision": 5})
        precise = world.call("logarithm", {**asked, "precision": 50})
        assert len(precise) > len(first) + 30
        assert world.call("logarithm", {**asked, "precision": 5}) == first
        world.call("square_root", {"number": 2, "precision": 5})
        assert mpmath.mp.dps == 37
        assert decimal.getcontext().prec == 9


def test_precision_does_not_cross_threads(bfcl, tasks):
    name = task_with(tasks, "logarithm", "base")
    world = world_with(bfcl, tasks, name)
    asked = [{"value": 20, "base": 10, "precision": p} for p in (3, 17, 60)]
    alone = [world.call("logarithm", one) for one in asked]
    with ThreadPoolExecutor(3) as pool:
        mixed = list(pool.map(lambda one: world.call("logarithm", one), asked * 200))
    assert mixed == alone * 200


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("power", {"base": 7, "exponent": 10**9}),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**9}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
    ],
)
def test_a_calculation_without_end_is_refused(bfcl, tasks, tool, arguments):
    world = world_with(bfcl, tasks, task_with(tasks, tool, "base"))
    with pytest.raises(ToolError) as refusal:
        world.call(tool, arguments)
    assert refusal.value.code == "too_large"


def test_directories_that_hold_themselves_or_grow_do_not_stop_the_world(bfcl, tasks):
    root = {"r": {"type": "directory", "contents": {}}}
    name = task_with(tasks, "cp", "base")
    world = world_with(bfcl, tasks, name, GorillaFileSystem={"root": root})
    for directory in ("a", "b"):
        world.call("mkdir", {"dir_name": directory})
    world.call("cp", {"source": "a", "destination": "a"})
    assert world.state() == world.state()
    with pytest.raises(ToolError, match="recursion"):
        world.call("du", {})
    with pytest.raises(ToolError) as refusal:
        world.call("cp", {"source": "a", "destination": "b"})
    assert refusal.value.code == "too_large"


def test_a_deep_directory_leaves_a_state(bfcl, tasks):
    root = {"r": {"type": "directory", "contents": {}}}
    name = task_with(tasks, "cp", "base")
    world = world_with(bfcl, tasks, name, GorillaFileSystem={"root": root})
    for _ in range(2000):
        world.call("mkdir", {"dir_name": "d"})
        world.call("cd", {"folder": "d"})
    assert len(json.dumps(world.state())) < 10_000


def refusal_of(world, tool, arguments):
    with pytest.raises(ToolError) as refusal:
        world.call(tool, arguments)
    return refusal.value


def test_errors_have_the_apis_own_text_and_a_code_without_values(bfcl, tasks):
    world = world_with(bfcl, tasks, task_with(tasks, "cat", "base"))
    refusal = refusal_of(world, "cat", {"file_name": "secret.txt"})
    assert refusal.code == "no_such_file"
    assert refusal.message == "cat: 'secret.txt': No such file or directory"
    name = task_with(tasks, "get_watchlist", "base")
    world = world_with(bfcl, tasks, name, TradingBot={"authenticated": False})
    assert refusal_of(world, "get_watchlist", {}).code == "not_logged_in"
    assert refusal_of(world, "get_order_history", {}).code == "not_logged_in"


def test_an_exception_of_the_api_is_speech_without_paths(bfcl, tasks):
    world = world_with(bfcl, tasks, task_with(tasks, "lockDoors", "base"))
    refusal = refusal_of(world, "lockDoors", {"unlock": False, "door": ["roof"]})
    assert refusal.code == "execution_error"
    assert refusal.message == "Error during execution: 'roof'"
    assert refusal.__cause__ is None


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("#01a")
kept = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers(0, 2) | st.text("#01", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(kept, kept)
def test_plain_states_are_equal_exactly_when_the_originals_are(one, other):
    assert (plain(one) == plain(other)) == (one == other)
    assert plain(one) == plain(copy.deepcopy(one))
    json.dumps(plain(one))
