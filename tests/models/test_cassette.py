"""Recorded answers: what they are found by, and that they survive threads and torn files."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.errors import ConfigError
from seal.models.budget import Budget, BudgetReached
from seal.models.cassette import Cassette, RecordedAnswer, open_cassette, request_key
from seal.types import Sampling, ToolCall, Usage

REQUEST: dict[str, Any] = {
    "model": "openai/test",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "dim"}}],
    "sampling": Sampling(),
    "seed": 1,
}


def answer(key: str, content: str = "hello") -> RecordedAnswer:
    return RecordedAnswer(
        key=key,
        model="openai/test",
        content=content,
        calls=(ToolCall(id="a", tool="", arguments='{"level": 4'),),
        usage=Usage(calls=1, dollars=0.25),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai/other"},
        {"messages": [{"role": "user", "content": "hi "}]},
        {"tools": []},
        {"sampling": Sampling(temperature=0.1)},
        {"sampling": Sampling(max_tokens=5)},
        {"seed": 2},
        {"seed": None},
    ],
)
def test_every_part_of_a_request_tells_it_from_others(change: dict[str, Any]):
    assert request_key(**{**REQUEST, **change}) != request_key(**REQUEST)


def test_an_answer_comes_back_from_disk_to_the_letter(tmp_path: Path):
    Cassette(tmp_path / "c.jsonl").record(answer("k"))
    assert Cassette(tmp_path / "c.jsonl").find("k") == answer("k")
    assert Cassette(tmp_path / "c.jsonl").find("other") is None


def test_the_first_answer_to_a_request_is_the_one_that_counts(tmp_path: Path):
    cassette = Cassette(tmp_path / "c.jsonl")
    assert cassette.record(answer("k", "first")).content == "first"
    assert cassette.record(answer("k", "second")).content == "first"
    assert Cassette(tmp_path / "c.jsonl").find("k") == answer("k", "first")


def test_threads_record_whole_lines(tmp_path: Path):
    cassette = Cassette(tmp_path / "c.jsonl")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cassette.record(answer(f"k{n % 50}", str(n))), range(200)))
    again = Cassette(tmp_path / "c.jsonl")
    assert all(again.find(f"k{n}") == cassette.find(f"k{n}") is not None for n in range(50))
    assert len((tmp_path / "c.jsonl").read_text().splitlines()) == 51


def test_a_torn_last_line_loses_one_answer_and_no_more(tmp_path: Path):
    path = tmp_path / "c.jsonl"
    cassette = Cassette(path)
    cassette.record(answer("a"))
    cassette.record(answer("b"))
    path.write_bytes(path.read_bytes()[:-9])
    again = Cassette(path)
    assert (again.find("a") is not None, again.find("b")) == (True, None)
    again.record(answer("b", "anew"))
    assert Cassette(path).find("b") == answer("b", "anew")


def test_a_file_that_is_no_cassette_is_named_with_its_line(tmp_path: Path):
    (tmp_path / "c.jsonl").write_text('{"seal": 1}\n{"some": "thing"}\n')
    with pytest.raises(ConfigError, match=r"c\.jsonl:2"):
        Cassette(tmp_path / "c.jsonl")


def test_one_file_is_one_cassette_while_it_is_in_use(tmp_path: Path):
    first = open_cassette(tmp_path / "c.jsonl")
    assert open_cassette(tmp_path / "." / "c.jsonl") is first
    assert open_cassette(tmp_path / "d.jsonl") is not first


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30), st.floats(0, 5))
def test_no_order_of_calls_passes_a_budget(calls: list[tuple[float, float]], limit: float):
    budget = Budget(limit)
    for most, share in calls:
        try:
            with budget.reserve(most) as charges:
                charges.append(most * share)
        except BudgetReached:
            assert budget.spent + most > limit
    assert budget.spent <= limit + 1e-9


def test_what_is_held_for_calls_under_way_cannot_be_spent_twice():
    budget = Budget(1.0)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with budget.reserve(0.7) as charges:
            held.set()
            done.wait(5)
            charges.append(0.1)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    with pytest.raises(BudgetReached, match=r"\$0\.7000 is held"), budget.reserve(0.4):
        pass
    done.set()
    thread.join()
    with budget.reserve(0.4):
        pass
    assert budget.spent == 0.1


def test_without_a_limit_spending_is_counted():
    budget = Budget()
    with budget.reserve(100.0) as charges:
        charges.append(3.0)
    assert budget.spent == 3.0
