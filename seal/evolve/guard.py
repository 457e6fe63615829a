"""Guards: why a proposed text is refused before a single rollout is spent on it."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from seal.envs.render import TOOL_RECOVERIES
from seal.envs.slots import parse_text
from seal.envs.template import EnvironmentTemplate
from seal.errors import SealError, did_you_mean
from seal.models.reading import stands_in
from seal.soundness.facts import Facts
from seal.types import CallError, Candidate, Slot, Task

MIN_SCENARIOS = 3
"""Scenarios in which a gold value must stand before an example may show it."""
_MARKER = re.compile(r"\b(for example|for instance|such as|e\.g\.|like)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\b[A-Za-z]\w*_\w+\b")
_FORBIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an address", re.compile(r"https?://|www\.|\b\w+@\w+\.\w+", re.IGNORECASE)),
    ("markup", re.compile(r"<\s*[/|a-z!]|```|\{%|\{#|\[\[|\]\]", re.IGNORECASE)),
    (
        "a role marker",
        re.compile(r"(^|\n|\s)#*\s*(system|assistant|user|tool)\s*:", re.IGNORECASE),
    ),
    (
        "an instruction aimed past the task",
        re.compile(
            r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instruction|prompt|rule|above|previous)"
            r"|\byou are (now|a|an)\b|\bsystem prompt\b|\b(reward|verifier|benchmark|evaluat)\w*\b",
            re.IGNORECASE,
        ),
    ),
)


class Guard:
    """All that is known of an environment against which a text is held."""

    def __init__(self, template: EnvironmentTemplate, facts: Facts) -> None:
        self._template = template
        self._facts = facts
        self._gold = gold_values(template.tasks(None))
        self._names = set(template.contract.tools) | {
            argument
            for tool in template.contract.tools.values()
            for argument in tool.contract.arguments
        }

    def refusal(self, slot_id: str, text: str, candidate: Candidate) -> str | None:
        """Why this text may not stand in this slot, None if it may."""
        slot = self._template.renderer.slots.get(slot_id)
        if slot is None:
            return f"no slot '{slot_id}'.{did_you_mean(slot_id, self._template.renderer.slots)}"
        return next(self._reasons(slot, text, candidate), None)

    def _reasons(self, slot: Slot, text: str, candidate: Candidate) -> Iterator[str]:
        if len(text) > slot.max_chars:
            yield f"{len(text)} characters; the budget is {slot.max_chars}"
        try:
            sentences = parse_text(text, slot.kind)
        except ValueError as cause:
            yield str(cause)
            return
        plain = "".join(p.text for s in sentences for p in s if not p.placeholder)
        yield from forbidden(plain)
        yield from self._unknown_names(plain)
        yield from self._contradictions(slot, plain)
        yield from self.leaks(plain)
        yield from self._unrenderable(slot, candidate.with_texts({slot.id: text}))

    def _unknown_names(self, text: str) -> Iterator[str]:
        facts = " ".join(self._facts.written_out().values())
        for name in _IDENTIFIER.findall(text):
            if name not in self._names and not stands_in(name, facts):
                yield f"'{name}' is no tool or argument.{did_you_mean(name, self._names)}"

    def _contradictions(self, slot: Slot, text: str) -> Iterator[str]:
        """Claims that contract or facts deny."""
        if slot.tool is None or slot.argument is None:
            return
        required = slot.argument in self._template.contract[slot.tool].required
        says_optional = re.search(r"\b(optional|not required|may be left out)\b", text, re.I)
        if required and says_optional:
            yield f"it calls '{slot.argument}' optional; the contract requires it"
        known = self._facts.of(slot.tool, slot.argument)
        for key, phrase in (
            ("maximum", r"at most|maximum|up to"),
            ("minimum", r"at least|minimum"),
        ):
            for claim in re.findall(rf"\b(?:{phrase})\D{{0,12}}(-?\d+(?:\.\d+)?)", text, re.I):
                if key in known and float(claim) != float(known[key]):
                    yield f"it says {key} {claim}; it is {known[key]}"

    def leaks(self, text: str) -> Iterator[str]:
        """Gold values that are no facts.

        A member of a fact's set may appear only with the whole set. Any other value must stand in
        enough scenarios to be no answer, and behind a word that marks an example.
        """
        written = [fact for fact in self._facts.written_out().values() if fact and fact in text]
        sets = list(self._sets())
        for value, scenarios in self._gold.items():
            if not stands_in(value, text) or any(stands_in(value, fact) for fact in written):
                continue
            homes = [members for members in sets if value in members]
            if homes:
                if not any(all(stands_in(m, text) for m in members) for members in homes):
                    yield f"'{value}' is one of a set; name the whole set or use {{allowed}}"
            elif len(scenarios) < MIN_SCENARIOS:
                yield f"'{value}' is a gold value of so few scenarios that it would be an answer"
            elif not _MARKER.search(text):
                yield f"'{value}' is a gold value; show it only as an example"

    def _sets(self) -> Iterator[frozenset[str]]:
        for tool in self._template.contract.tools.values():
            for rule in tool.contract.rules.values():
                allowed = rule.allowed
                if allowed is not None:
                    members = allowed.values() if isinstance(allowed, Mapping) else allowed
                    yield frozenset(str(member) for member in members)

    def _unrenderable(self, slot: Slot, candidate: Candidate) -> Iterator[str]:
        renderer = self._template.renderer
        kinds = [slot.recovery] if slot.recovery else []
        try:
            renderer.prompt(candidate)
            for kind in kinds:
                for tool in [slot.tool] if kind in TOOL_RECOVERIES else [None]:
                    renderer.recovery(tool, CallError(kind=kind, code=kind, message="."), candidate)
        except SealError as cause:
            yield f"it does not render: {cause}"


def forbidden(text: str) -> Iterator[str]:
    """What no words of a tool ever need."""
    for what, pattern in _FORBIDDEN:
        if match := pattern.search(text):
            yield f"{what}: '{match[0].strip()}'"
    for letter in text:
        if letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs", "Cn"):
            yield f"a hidden character (U+{ord(letter):04X})"


def gold_values(tasks: Iterable[Task]) -> dict[str, set[str]]:
    """Every value that gold sends, as it would stand in a text, with the scenarios it is in.

    Short numbers and single letters are left out: they prove nothing about an answer.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        for turn in task.turns:
            for call in turn.gold or ():
                for value in call.arguments.values():
                    for leaf in _leaves(value):
                        found[leaf].add(task.scenario)
    return dict(found)


def _leaves(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if len(value) >= 2:
            yield value
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 1000:
        yield json.dumps(value)
