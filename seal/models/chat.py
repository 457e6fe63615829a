"""A dialogue as the text that a local policy reads and writes.

One format for every local model whose tokenizer knows ChatML's two marks. Tools are rendered
compactly: a line a tool and a line a parameter. A call is a JSON object between two tags.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seal.models.protocol import Message
from seal.types import RenderedTool, ToolCall

START, END = "<|im_start|>", "<|im_end|>"
CALL, CALL_END = "<tool_call>", "</tool_call>"
_CALLS = re.compile(rf"{re.escape(CALL)}(.*?)(?:{re.escape(CALL_END)}|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a dialogue's text, and whether the policy wrote it."""

    text: str
    sampled: bool


def prompt_text(prompt: str, tools: Iterable[RenderedTool]) -> str:
    """The system message: the prompt, then the tools; no mark in their words counts as one."""
    lines = [prompt, *(line for tool in tools for line in tool_lines(tool))]
    return f"{START}system\n" + "".join(f"{_marked(line)}\n" for line in lines) + f"{END}\n"


def tool_lines(tool: RenderedTool) -> list[str]:
    """A tool in a line, and each of its parameters in a line below it."""
    properties = tool.parameters.get("properties")
    lines = [f"{tool.name}: {flat(tool.description)}"]
    for name, schema in (properties if isinstance(properties, dict) else {}).items():
        inner = schema if isinstance(schema, dict) else {}
        kind = inner.get("type", "any")
        shown = "" if kind == "string" else f" ({kind})"
        lines.append(f" {name}{shown}: {flat(str(inner.get('description', '')))}")
    return lines


def flat(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def call_text(tool: str, arguments: str) -> str:
    """A call as a policy writes it; the arguments are JSON as they stand."""
    return f'{CALL}{{"name": {json.dumps(tool)}, "arguments": {arguments}}}{CALL_END}'


def reply_text(message: Message) -> str:
    """An agent message as a policy writes it, its end mark included."""
    calls = "".join(call_text(call.tool, call.arguments) for call in message.calls)
    return f"{message.content}{calls}{END}"


def heard_text(messages: Sequence[Message]) -> str:
    """User messages and tool results as they come in, up to where the policy writes."""
    heard = "".join(f"{START}{m.role}\n{_marked(m.content)}{END}\n" for m in messages)
    return f"{heard}{START}assistant\n"


def _marked(text: str) -> str:
    """A text whose own marks are broken: no tool output may end a message or begin another."""
    for mark in (START, END, CALL, CALL_END):
        text = text.replace(mark, mark.replace("<", "< "))
    return text


def dialogue_pieces(messages: Sequence[Message], tools: Iterable[RenderedTool]) -> list[Piece]:
    """A whole dialogue, its first message the system prompt, as pieces in order.

    The pieces that the policy wrote are exactly what a sampler would have had to sample.
    """
    pieces = [Piece(prompt_text(messages[0].content, tools), sampled=False)]
    heard: list[Message] = []
    for message in messages[1:]:
        if message.role != "assistant":
            heard.append(message)
            continue
        # A sampled message ends with its mark; the line break after it is ours.
        opening = heard_text(heard) if pieces[-1].sampled is False else f"\n{heard_text(heard)}"
        pieces += [Piece(opening, sampled=False), Piece(reply_text(message), sampled=True)]
        heard = []
    return pieces


def parse_reply(text: str, prefix: str) -> tuple[str, tuple[ToolCall, ...]]:
    """What a policy wrote, as text and calls; a call that cannot be read has no tool.

    Args:
        text: The sampled text, with or without its end mark.
        prefix: The beginning of the calls' ids.
    """
    body = text.removesuffix(END)
    calls = []
    for number, match in enumerate(_CALLS.finditer(body)):
        calls.append(_call(match[1], f"{prefix}-{number}"))
    return _CALLS.sub("", body).strip(), tuple(calls)


def _call(text: str, call_id: str) -> ToolCall:
    try:
        value = json.loads(text)
        name, arguments = value["name"], value["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ToolCall(id=call_id, tool="", arguments=text)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return ToolCall(id=call_id, tool="", arguments=text)
    return ToolCall(id=call_id, tool=name, arguments=json.dumps(arguments, ensure_ascii=False))
