"""A text's change, word by word."""

import difflib
import re
from dataclasses import dataclass

_ALIKE = 0.4
"""Texts less alike than this are shown as wholly replaced: scattered matches only confuse."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words that is all changed or all kept."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A text before and after; the pieces of each side join to its text."""

    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def change(before: str, after: str) -> Change:
    """What was taken out of `before`, and what was put into `after`.

    >>> change("Use a room.", "Use a red room.").after[1]
    Piece(text='red ', changed=True)
    """
    old, new = _words(before), _words(after)
    # Words are compared without their spaces, so that a text that goes on keeps its last word.
    a, b = ([word.strip() for word in words] for words in (old, new))
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return Change(_whole(before), _whole(after))
    removed: list[Piece] = []
    added: list[Piece] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        for side, words in ((removed, old[i:j]), (added, new[k:m])):
            if words:
                side.append(Piece("".join(words), tag != "equal"))
    return Change(tuple(removed), tuple(added))


def _whole(text: str) -> tuple[Piece, ...]:
    return (Piece(text, True),) if text else ()


def _words(text: str) -> list[str]:
    """Words, each with the space that follows it."""
    return re.findall(r"\s*\S+\s*|\s+", text)
