"""Whether a text states a rule, a value, a plan or a behaviour: how the simulated reader reads."""

import json
import re
from collections.abc import Iterable

from pydantic import JsonValue

from seal.types import Rule

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ORDER = re.compile(r"\b(before|first|after|prior|requires?|needs?)\b", re.IGNORECASE)
_ABSTAIN = re.compile(r"\b(ask|decline|refuse|do not call|call nothing|no call)\b", re.IGNORECASE)


def stands_in(value: object, text: str) -> bool:
    """Whether a value stands in a text as a whole word.

    >>> stands_in(6, "at most 60"), stands_in("R7", 'blue="R7"')
    (False, True)
    """
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return bool(re.search(rf"(?<![\w.]){re.escape(shown)}(?!\w|\.\d)", text))


def states(rule: Rule, text: str) -> bool:
    """Whether a text says all that a rule demands; a rule that demands nothing is never stated."""
    stated = rule.stated()
    parts: list[object] = []
    for value in stated.values():
        if isinstance(value, dict):
            parts += [*value.keys(), *value.values()]
        elif isinstance(value, tuple):
            parts += value
        else:
            parts.append(value)
    return bool(parts) and all(stands_in(part, text) for part in parts)


def says_value(value: JsonValue, texts: Iterable[str]) -> bool:
    """Whether the very value of an argument can be read off; short numbers prove nothing."""
    if not isinstance(value, str) or len(value) < 2:
        return False
    return any(stands_in(value, text) for text in texts)


def prescribed(tool: str, words: str, tools: Iterable[str]) -> list[str]:
    """The other tools that a tool's words want called before it, in the order they name them."""
    found: list[tuple[int, str]] = []
    offset = 0
    for sentence in _SENTENCE.split(words):
        if _ORDER.search(sentence):
            for name in tools:
                place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence)
                if place and name != tool:
                    found.append((offset + place.start(), name))
        offset += len(sentence) + 1
    return list(dict.fromkeys(name for _, name in sorted(found)))


def teaches_abstention(guidance: str) -> bool:
    """Whether a text tells an agent to ask or decline when nothing fits."""
    return bool(_ABSTAIN.search(guidance))
