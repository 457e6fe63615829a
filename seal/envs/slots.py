"""Slot texts: which placeholders they may hold, and how those are filled.

A slot text is data. Filling is one pass over the text: what a placeholder brings in is never looked
at again, so neither an evolved text nor a policy's own value can become markup.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from seal.errors import RULE_KEYS
from seal.types import Rule, SlotKind, ToolContract

CONSTRAINT_KEYS = (*RULE_KEYS, "required_arguments")
PLACEHOLDERS: Mapping[SlotKind, tuple[str, ...]] = {
    "guidance": (),
    "affordance": (),
    "constraint": CONSTRAINT_KEYS,
    "recovery": (*CONSTRAINT_KEYS, "tool", "argument", "received", "example"),
}
BUDGETS: Mapping[SlotKind, int] = {
    "guidance": 400,
    "affordance": 240,
    "constraint": 240,
    "recovery": 320,
}
"""Characters of a slot text, unless env.toml says otherwise."""
RECEIVED_CHARS = 80

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_PIECE = re.compile(r"\{\{|\}\}|\{([a-z_]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of literal text, or the name of a placeholder."""

    text: str
    placeholder: bool = False


def parse_text(text: str, kind: SlotKind) -> list[list[Piece]]:
    """The sentences of a slot text, each as its pieces.

    Raises:
        ValueError: A brace stands alone, or a placeholder is not one of this slot kind.
    """
    return [list(_pieces(sentence, kind)) for sentence in _SENTENCE_END.split(text.strip())]


def _pieces(sentence: str, kind: SlotKind) -> Iterator[Piece]:
    start = 0
    for match in _PIECE.finditer(sentence):
        if match.start() > start:
            yield Piece(sentence[start : match.start()])
        start = match.end()
        if match[0] in ("{{", "}}"):
            yield Piece(match[0][0])
        elif match[1] in PLACEHOLDERS[kind]:
            yield Piece(match[1], placeholder=True)
        else:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS[kind]) or "none"
            what = f"no placeholder '{match[0]}'" if match[1] else f"a lone '{match[0]}'"
            raise ValueError(
                f"{what} in a {kind} text. Placeholders: {known}. "
                "Write {{ and }} for literal braces"
            )
    if start < len(sentence):
        yield Piece(sentence[start:])


def fill(text: str, kind: SlotKind, values: Mapping[str, str]) -> str:
    """A slot text with its placeholders filled; sentences with an empty one are dropped.

    >>> fill("Send it in {unit}. At most {maximum}.", "constraint", {"unit": "minutes"})
    'Send it in minutes.'
    """
    if not text:
        return ""
    kept = []
    for sentence in parse_text(text, kind):
        if all(values.get(piece.text) for piece in sentence if piece.placeholder):
            kept.append(
                "".join(
                    values[piece.text] if piece.placeholder else " ".join(_spaced(piece.text))
                    for piece in sentence
                )
            )
    return " ".join(kept)


def _spaced(text: str) -> list[str]:
    """Words whose joining by one space keeps the spaces at both ends."""
    words = text.split()
    return [*([""] if text[:1].isspace() else []), *words, *([""] if text[-1:].isspace() else [])]


def rule_values(rule: Rule) -> dict[str, str]:
    """A rule's keys as the texts that stand for them; every key is there."""
    return {key: _rule_text(getattr(rule, key)) for key in RULE_KEYS}


def _rule_text(value: Any) -> str:  # noqa: ANN401 - any rule value
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_quoted(item)}" for name, item in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(_quoted(item) for item in value)
    return str(value)


def _quoted(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def constraint_values(tool: ToolContract, argument: str) -> dict[str, str]:
    """What a constraint text of this argument may cite: declared facts, never live values."""
    return {
        **rule_values(tool.rules.get(argument.split(".")[0], Rule())),
        "required_arguments": ", ".join(tool.required),
    }


def recovery_values(
    tool: ToolContract | None, rule: Rule, argument: str | None, received: JsonValue
) -> dict[str, str]:
    """What a recovery text may cite at the moment of the error."""
    shown = _quoted(received)
    if len(shown) > RECEIVED_CHARS:
        shown = shown[: RECEIVED_CHARS - 1] + "…"
    return {
        **rule_values(rule),
        "required_arguments": ", ".join(tool.required) if tool else "",
        "tool": tool.name if tool else "",
        "argument": argument or "",
        "received": "" if received is None else shown,
        "example": call_skeleton(tool) if tool else "",
    }


def call_skeleton(tool: ToolContract) -> str:
    """The form of a call, with types for values: `dim(level=<integer>)`."""
    properties = tool.parameters.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    return f"{tool.name}({', '.join(f'{n}=<{_kind_word(kinds.get(n))}>' for n in tool.required)})"


def _kind_word(schema: JsonValue) -> str:
    if isinstance(schema, dict) and isinstance(schema.get("type"), str):
        return str(schema["type"])
    return "value"
