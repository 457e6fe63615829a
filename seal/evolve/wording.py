"""What no words of a tool ever need: addresses, markup, voices of others, hidden letters."""

import re
import unicodedata
from collections.abc import Iterator

_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,9}://|\bwww\.|\b(?:mailto|javascript):|[\w.+-]+@[\w-]+\.\w+"
    r"|\b[\w-]+\.(?:com|org|net|io|dev|info|xyz)\b|\b\d{1,3}(?:\.\d{1,3}){3}\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<\s*[/|a-z!]|```|\{%|\{#|\{\{|\[\[|\]\]|\]\(|\[/?inst\]|&#?\w+;", re.IGNORECASE
)
_INSTRUCTION = re.compile(
    r"(?<!\bnot )(?<!n't )(?<!\bnever )\b(ignore|disregard|forget|override)\b"
    r".{0,40}\b(instruction|prompt|rule|above|previous)"
    r"|\byou are (now|a|an)\b|\bsystem prompt\b|\b(reward|verifier|benchmark|evaluat)\w*\b",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"(?P<article>\b(?:the|a|an|this|that|each|every|any|another)\s+)?"
    r"(?<![\w{])(?P<role>system|assistant|user|tool|human|developer)[\s\"'*)\]]*:"
    r"|\brole\b[\"']?\s*[:=]\s*[\"']?(?:system|assistant|user|tool)\b",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
_ALPHABETS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
_UNIT_SIGNS = "μΩπ"
_LOOKALIKES = frozenset("АВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο")
"""Cyrillic and Greek letters that look like Latin ones."""


def forbidden(text: str) -> Iterator[str]:
    """Why a text is no words of a tool, whatever it is about; line breaks count as blanks."""
    plain = unicodedata.normalize("NFKC", text)
    line = " ".join(plain.split())
    if match := _ADDRESS.search(line):
        yield f"an address: '{match[0]}'"
    if match := _MARKUP.search(line):
        yield f"markup: '{match[0]}'"
    for match in _ROLE.finditer(line):
        # "Ask the user: which day?" speaks of somebody, "user: which day?" as somebody.
        if not (match["article"] and match["role"].lower() in ("user", "tool")):
            yield f"a role marker: '{match[0].strip()}'"
    if match := _INSTRUCTION.search(line):
        yield f"an instruction aimed past the task: '{match[0]}'"
    yield from _hidden(text)
    yield from _disguised(plain)


def _hidden(text: str) -> Iterator[str]:
    for letter in text:
        unseen = unicodedata.category(letter) in _HIDDEN or _INVISIBLE.match(letter)
        if unseen and letter not in "\n\t":
            yield f"a hidden character (U+{ord(letter):04X})"


def _disguised(text: str) -> Iterator[str]:
    """Letters of one alphabet that pass for another's, within a word or as a word."""
    for word in re.findall(r"[^\W\d_]+", text):
        if len({_alphabet(letter) for letter in word} - {""}) > 1:
            yield f"letters of two alphabets in '{word}'"
    foreign = [letter for letter in text if _alphabet(letter) not in ("", "LATIN")]
    if foreign and all(letter in _LOOKALIKES for letter in foreign):
        yield f"letters that look like others: '{foreign[0]}' (U+{ord(foreign[0]):04X})"


def _alphabet(letter: str) -> str:
    """The alphabet of a letter that could be mistaken for another's, else nothing."""
    if letter.isascii():
        return "LATIN" if letter.isalpha() else ""
    name = unicodedata.name(letter, "").split(" ")[0]
    return name if name in _ALPHABETS and letter not in _UNIT_SIGNS else ""
