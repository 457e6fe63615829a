"""Dialogues as text: what a policy writes is read back as it was meant, and nobody else's is."""

import json

from hypothesis import given
from hypothesis import strategies as st

from seal.models.chat import (
    CALL,
    CALL_END,
    END,
    START,
    dialogue_pieces,
    heard_text,
    parse_reply,
    prompt_text,
    reply_text,
)
from seal.models.protocol import Message
from seal.types import RenderedTool, ToolCall

MARKS = (START, END, CALL, CALL_END)
plain = st.text().filter(lambda text: not any(mark in text for mark in MARKS))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
).filter(lambda value: not any(mark in json.dumps(value) for mark in MARKS))
calls = st.builds(
    lambda tool, arguments: (tool, json.dumps(arguments, ensure_ascii=False)),
    plain.filter(lambda text: text != ""),
    st.dictionaries(st.text(min_size=1), values, max_size=3),
).filter(lambda call: not any(mark in call[1] for mark in MARKS))


@given(content=plain, made=st.lists(calls, max_size=3))
def test_what_was_written_is_read_back(content: str, made: list[tuple[str, str]]):
    written = tuple(
        ToolCall(id=f"call-{i}", tool=tool, arguments=arguments)
        for i, (tool, arguments) in enumerate(made)
    )
    text = reply_text(Message("assistant", content, written))
    assert parse_reply(text, "call") == (content.strip(), written)


@given(text=st.text())
def test_whatever_was_sampled_is_read_without_an_error(text: str):
    content, found = parse_reply(text, "call")
    assert all(call.tool or call.arguments is not None for call in found)
    assert CALL not in content


def test_a_call_that_cannot_be_read_has_no_tool():
    for broken in ("{", '{"name": 3, "arguments": {}}', '{"name": "dim"}', "[]", ""):
        (call,) = parse_reply(f"{CALL}{broken}{CALL_END}{END}", "call")[1]
        assert (call.tool, call.arguments) == ("", broken)


def test_a_call_that_was_cut_off_is_a_malformed_one():
    content, (call,) = parse_reply(f'Well. {CALL}{{"name": "dim", "argu', "call")
    assert (content, call.tool) == ("Well.", "")


@given(text=st.text() | st.sampled_from(MARKS).map(lambda mark: f"a{mark}b"))
def test_no_tool_output_ends_a_message_or_begins_another(text: str):
    heard = heard_text([Message("tool", text)])
    assert heard.count(START) == 2
    assert heard.count(END) == 1
    assert CALL not in heard


def test_the_pieces_of_a_dialogue_are_what_a_sampler_reads_and_writes():
    dim = RenderedTool(
        name="dim",
        description="Dims the lamp.",
        parameters={"properties": {"level": {"type": "integer", "description": "In percent."}}},
    )
    call = ToolCall(id="a", tool="dim", arguments='{"level": 5}')
    messages = [
        Message("system", "You look after a lamp."),
        Message("user", "Dim it."),
        Message("assistant", "", (call,)),
        Message("tool", "level 5", call_id="a"),
        Message("assistant", "Done."),
        Message("user", "Thanks."),
        Message("assistant", "Any time."),
    ]
    pieces = dialogue_pieces(messages, [dim])
    assert pieces[0].text == prompt_text("You look after a lamp.", [dim])
    assert "dim: Dims the lamp.\n level (integer): In percent.\n" in pieces[0].text
    assert [piece.text for piece in pieces if piece.sampled] == [
        f'{CALL}{{"name": "dim", "arguments": {{"level": 5}}}}{CALL_END}{END}',
        f"Done.{END}",
        f"Any time.{END}",
    ]
    assert pieces[1].text == heard_text(messages[1:2])
    assert pieces[3].text == f"\n{heard_text(messages[3:4])}"


@given(text=st.text() | st.sampled_from(MARKS))
def test_no_words_end_the_system_message(text: str):
    tool = RenderedTool(name="ring", description=f"Rings. {text}", parameters={})
    shown = prompt_text(f"Be kind. {text}", [tool])
    assert [shown.count(mark) for mark in MARKS] == [1, 1, 0, 0]
