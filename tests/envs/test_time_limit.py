"""A call that does not come to an end is ended, wherever it runs; what comes after it is not."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from seal.envs import declared, load_environment
from seal.envs import template as template_module
from seal.envs.time_limit import TookTooLong, within
from seal.errors import SealError, TemplateError
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
    assert within(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 // 0)


def test_what_does_not_end_is_ended_and_the_thread_goes_on():
    for _ in range(2):
        with pytest.raises(TookTooLong):
            within(endless, wait=0.1)
        assert within(lambda: sum(range(1000))) == 499500


def test_only_the_thread_whose_time_is_up_is_ended():
    def work(number: int) -> str:
        try:
            return within(
                lambda: (number % 2 and endless()) or "done", wait=0.1 if number % 2 else 30
            )
        except TookTooLong:
            return f"ended in {threading.current_thread().name}"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    assert [text == "done" for text in found] == [number % 2 == 0 for number in range(8)]


def test_a_call_at_the_edge_of_its_time_leaves_nothing_behind():
    for _ in range(30):
        try:
            within(lambda: time.sleep(0.02), wait=0.001)
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


def sleeping() -> None:
    time.sleep(1000)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_what_waits_is_ended_in_the_main_thread(handler):
    # A shell lets what it runs in the background ignore the user's interrupts.
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(TookTooLong):
            within(sleeping, wait=0.1)
        assert within(lambda: 3) == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_waiting_for_others_is_no_work():
    assert within(lambda: time.sleep(0.8) or "done", work=0.3) == "done"
    with pytest.raises(TookTooLong, match=r"still at work after 0\.3 s"):
        within(endless, work=0.3)


def test_a_call_within_a_call_has_its_own_limit():
    def outer() -> str:
        with pytest.raises(TookTooLong):
            within(endless, wait=0.1)
        return "went on"

    assert within(outer) == "went on"
    with pytest.raises(TookTooLong):
        within(lambda: within(lambda: 3) and endless(), wait=0.1)


def test_an_interrupt_of_the_users_is_not_taken_for_the_limit():
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        within(interrupted)


LOOP = "while True:\n            pass"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "COLOURS = {",
            "while True:\n    pass\nCOLOURS = {",
            "cannot be imported: it was still at",
        ),
        (
            "    def reset(",
            f"    @classmethod\n    def draw(cls, rng):\n        {LOOP}\n\n    def reset(",
            "draw(rng) of Lamp: it was still at",
        ),
        (
            'requires="plug_in"',
            "requires=lambda drawn: [None for _ in iter(int, 1)]",
            "dim: requires: it was still at",
        ),
    ],
)
def test_an_environment_that_does_not_load_says_which_line_is_at_work(
    tmp_path, monkeypatch, before, after, said
):
    for module in (template_module, declared):
        monkeypatch.setattr(module, "within", partial(within, work=0.3))
    folder = write_environment(tmp_path / "lamp", world=edited(WORLD, before, after))
    with pytest.raises(TemplateError) as error:
        load_environment(folder)
    assert str(error.value).startswith(f"{folder}/env.py:")
    assert said in str(error.value)


GENERATE = """\
    @classmethod
    def generate(cls, drawn, rng):
        {}

    def reset("""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (LOOP, "generate scenario train-0: it was still at work after 0.3 s"),
        (
            "while True:\n            yield Task(turns=(UserTurn(user='x', gold=()),))",
            "Lamp.generate yields more than 1000 tasks",
        ),
    ],
)
def test_a_generator_that_does_not_end_is_ended(tmp_path, monkeypatch, body, said):
    monkeypatch.setattr(template_module, "within", partial(within, work=0.3))
    world = edited(WORLD, "    def reset(", GENERATE.format(body))
    world = edited(world, "import Rule, Task", "import Rule, Task, UserTurn")
    folder = write_environment(tmp_path / "lamp", world=world)
    (folder / "tasks.jsonl").unlink()
    template = load_environment(folder)
    with pytest.raises(SealError, match=said):
        template.tasks("train")
