"""Dialogues in the form of the OpenAI chat API, and answers out of it."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from seal.models.protocol import Message
from seal.types import RenderedTool, ToolCall

_NAME_CHARS = 64


def message_on_wire(message: Message) -> dict[str, Any]:
    """One message as the API wants it.

    The record of a call keeps what the model wrote; here a call that no server would take back (a
    strange name, arguments that are no JSON object) is wrapped, so that the dialogue goes on and
    the model can read what was wrong with it.
    """
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    return {
        "role": message.role,
        "content": message.content or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": _acceptable_name(call.tool),
                    "arguments": _acceptable_arguments(call.arguments),
                },
            }
            for call in message.calls
        ],
    }


def _acceptable_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_NAME_CHARS] or "unnamed"


def _acceptable_arguments(text: str) -> str:
    try:
        fits = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        fits = False
    return text if fits else json.dumps({"unreadable": text}, ensure_ascii=False)


def tool_on_wire(tool: RenderedTool) -> dict[str, Any]:
    """One tool as a function of the API, words and schema as rendered."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def read_calls(written: Iterable[Any], dialogue: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of an answer, names and arguments exactly as the model wrote them.

    Ids are the server's, unless it gave none or one that the dialogue has already: a result must
    say which call it answers.
    """
    used = {call.id for message in dialogue for call in message.calls}
    calls: list[ToolCall] = []
    for item in written:
        function = getattr(item, "function", None)
        call_id = str(getattr(item, "id", None) or "")
        if not call_id or call_id in used:
            call_id = next(
                i for n in range(len(used), 2 * len(used) + 1) if (i := f"call_{n}") not in used
            )
        used.add(call_id)
        calls.append(
            ToolCall(
                id=call_id,
                tool=str(getattr(function, "name", None) or ""),
                arguments=str(getattr(function, "arguments", None) or ""),
            )
        )
    return tuple(calls)
