"""A call that does not come to an end is ended, wherever it runs; what comes after it is not."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from seal.envs import load_environment
from seal.envs.time_limit import TookTooLong, within
from seal.rollout.agent import Arena, answer_call
from seal.types import ToolCall
from tests.factories import TOML, WORLD, edited, write_environment


def endless() -> None:
    while True:
        try:
            time.sleep(0)
        except Exception:  # noqa: BLE001 - as a careless tool would
            continue


def test_what_comes_in_time_is_given_back_or_raised():
    assert within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)


def test_what_does_not_end_is_ended_and_the_thread_goes_on():
    for _ in range(2):
        with pytest.raises(TookTooLong):
            within(0.1, endless)
        assert within(5, lambda: sum(range(1000))) == 499500


def test_only_the_thread_whose_time_is_up_is_ended():
    def work(number: int) -> str:
        try:
            return within(0.1 if number % 2 else 30, lambda: (number % 2 and endless()) or "done")
        except TookTooLong:
            return f"ended in {threading.current_thread().name}"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    assert [text == "done" for text in found] == [number % 2 == 0 for number in range(8)]


def test_a_call_at_the_edge_of_its_time_leaves_nothing_behind():
    for _ in range(30):
        try:
            within(0.001, lambda: time.sleep(0.02))
        except TookTooLong:
            continue
    time.sleep(0.6)
    assert sum(range(10000)) == 49995000


def test_a_policy_is_told_that_its_call_was_ended(tmp_path):
    world = edited(
        WORLD,
        "self.level = level",
        "self.level = level\n        while level == 99:\n            pass",
    )
    folder = write_environment(
        tmp_path / "lamp", world=world, toml=f"{TOML}[limits]\ncall_seconds = 0.1\n"
    )
    template = load_environment(folder)
    task = template.tasks("train")[0]
    live, executed = template.new_world(task), []

    def answer(tool: str, arguments: str):
        call = ToolCall(id="x", tool=tool, arguments=arguments)
        return answer_call(Arena(template), ("plug_in", "dim"), call, executed, live)

    answer("plug_in", f'{{"socket": "{task.state["sockets"][0]}"}}')
    ended = answer("dim", '{"level": 99, "colour": "W3"}')
    assert ended.content.startswith("The call was ended after 0.1 seconds.")
    assert (ended.error.kind, ended.error.code) == ("refused", "time_limit")
    assert answer("dim", '{"level": 50, "colour": "W3"}').content == "shines W3"
