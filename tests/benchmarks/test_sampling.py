"""The benchmark of sampling: both sides say the same to the same model, and count what it says."""

import argparse
import importlib.util
import os

import pytest

from seal.models.chat import dialogue_pieces
from seal.models.protocol import Message
from seal.train.elsewhere import as_trl_environment
from seal.types import ToolCall
from tests.benchmarks.sampling import (
    CHAT_TEMPLATE,
    RESPONSE_TEMPLATE,
    add_options,
    measure,
    messages,
    table,
    tasks_of_one_turn,
)

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, trl)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(given)


@pytest.fixture(scope="module")
def tokenizer():
    from seal.models.tiny import tiny_tokenizer

    return tiny_tokenizer(["Book the blue room on Monday.\n"] * 3)


def test_their_template_writes_our_dialogue_and_reads_our_calls(tokenizer):
    arena, (task, *_) = tasks_of_one_turn(options())
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    call = {"name": "check_room", "arguments": {"room": "D7", "day": "1"}}
    theirs = [
        *messages(arena, task),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": call}],
        },
        {"role": "tool", "name": "check_room", "content": "free all day"},
        {"role": "assistant", "content": "Done."},
    ]
    ours = dialogue_pieces(
        [
            Message("system", arena.prompt),
            Message("user", task.turns[0].user),
            Message(
                "assistant",
                "",
                (ToolCall(id="c", tool="check_room", arguments='{"room": "D7", "day": "1"}'),),
            ),
            Message("tool", "free all day", call_id="c"),
            Message("assistant", "Done."),
        ],
        arena.tools.values(),
    )
    written = tokenizer.apply_chat_template(theirs, tokenize=False)
    assert written == "".join(piece.text for piece in ours) + "\n"
    ids = tokenizer(ours[2].text, add_special_tokens=False)["input_ids"]
    read = tokenizer.parse_response(ids, prefix=tokenizer("<|im_start|>assistant\n")["input_ids"])
    assert read["tool_calls"] == [{"type": "function", "function": call}]


def test_their_tools_answer_from_our_worlds_in_our_words():
    arena, tasks = tasks_of_one_turn(options())
    task = next(task for task in tasks if task.turns[0].gold)
    world = as_trl_environment(arena.template, tasks=[task])()
    world.reset(task=task.id, prompt=[])
    for call in task.turns[0].gold:
        assert getattr(world, call.tool)(**call.arguments)
    assert "no such room" in world.check_room(room="?", day="1")
    assert "day" in world.check_room(room="?")


@pytest.mark.slow
def test_both_sides_are_measured_on_what_they_sampled(tokenizer, tmp_path):
    from seal.models.tiny import tiny_model

    tiny_model(len(tokenizer), seed=0).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    small = ("--tasks", "1", "--samples", "2", "--tokens", "6", "--rounds", "1")
    result = measure(options("--model", f"local:{tmp_path}", *small))
    assert result["ratio"] == pytest.approx(result["ours"] / result["trl"], rel=0.01)
    for tokens in result["tokens"].values():
        assert 2 <= tokens[0] <= 12
    assert "ratio" in table(result)
