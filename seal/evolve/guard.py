"""Guards: why a proposed text is refused before a single rollout is spent on it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from seal.envs.render import TOOL_RECOVERIES, argument_paths
from seal.envs.slots import parse_text
from seal.envs.template import EnvironmentTemplate
from seal.errors import SealError, did_you_mean
from seal.evolve.leaks import Reading, gold_values
from seal.evolve.wording import forbidden
from seal.models.reading import stands_in
from seal.soundness.facts import Facts
from seal.types import CallError, Candidate, Slot

MIN_SCENARIOS = 3
"""Scenarios in which a gold value must stand before an example may show it."""
_MARKER = re.compile(r"\b(for example|for instance|such as|like|examples?)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)\s+")
_IDENTIFIER = re.compile(r"\b[A-Za-z]\w*_\w+\b|\b[A-Za-z]\w*(?=\((?:\)|\w+\s*=))")
_KNOWN = 4
"""Letters from which a fact of the author's is told from chance."""
_PLACEHOLDER = "…"
"""Stands for what a placeholder brings in, so that the words around it do not touch."""


class Guard:
    """All that is known of an environment against which a text is held."""

    def __init__(self, template: EnvironmentTemplate, facts: Facts) -> None:
        self._template = template
        self._facts = facts
        self._written = sorted(set(facts.written_out().values()), key=len, reverse=True)
        self._gold = gold_values(template.tasks(None))
        self._sets = list(_sets(template, facts))
        original = template.original
        tools = template.renderer.tools(original).values()
        self._said = Reading(
            "\n".join([template.renderer.prompt(original), *(tool.words() for tool in tools)])
        )
        contracts = [tool.contract for tool in template.contract.tools.values()]
        paths = [path for contract in contracts for path in argument_paths(contract)]
        self._names = {contract.name for contract in contracts}
        self._names |= {part for path in paths for part in path.split(".")}

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
        plain = " ".join(
            "".join(_PLACEHOLDER if piece.placeholder else piece.text for piece in sentence)
            for sentence in sentences
        )
        yield from forbidden(self._without_known(plain))
        yield from self._unknown_names(plain)
        yield from self._contradictions(slot, plain)
        yield from self.leaks(plain)
        yield from self._unrenderable(slot, candidate.with_texts({slot.id: text}))

    def _without_known(self, text: str) -> str:
        """The text without the author's own names and facts, which may look like anything."""
        own = [*(name for name in self._names if "_" in name), *self._written]
        for known in own:
            if len(known) >= _KNOWN and known in text:
                text = re.sub(rf"(?<!\w){re.escape(known)}(?!\w)", _PLACEHOLDER, text)
        return text

    def _unknown_names(self, text: str) -> Iterator[str]:
        members = [member for one in self._sets for member in one]
        known = " ".join([*self._written, *members, self._said.text])
        for name in _IDENTIFIER.findall(text):
            if name not in self._names and not stands_in(name, known):
                yield f"'{name}' is no tool or argument.{did_you_mean(name, self._names)}"

    def _contradictions(self, slot: Slot, text: str) -> Iterator[str]:
        """Claims that contract or facts deny."""
        if slot.tool is None or slot.argument is None:
            return
        required = slot.argument in self._template.contract[slot.tool].required
        says_optional = re.search(
            r"(?<!\bnot )(?<!\bnever )\b(optional|not required|may be left out)\b", text, re.I
        )
        if required and says_optional:
            yield f"it calls '{slot.argument}' optional; the contract requires it"
        known = self._facts.of(slot.tool, slot.argument)
        for key, phrase in (
            ("maximum", r"at most|maximum|up to"),
            ("minimum", r"at least|minimum"),
        ):
            for claim in re.findall(
                rf"\b(?:{phrase})[^\d-]{{0,12}}(-?\d[\d,]*(?:\.\d+)?)", text, re.I
            ):
                if key in known and float(claim.replace(",", "")) != float(known[key]):
                    yield f"it says {key} {claim}; it is {known[key]}"

    def leaks(self, text: str) -> Iterator[str]:
        """Gold values that are no facts; what the author's own words say counts as one.

        A member of a fact's set may appear only with the whole set. Any other value must stand in
        enough scenarios to be no answer, and behind a word that marks an example.
        """
        reading = Reading(text)
        written = [Reading(fact) for fact in self._written if fact in text]
        for value, scenarios in self._gold.items():
            if reading.find(value) is None or any(fact.find(value) for fact in written):
                continue
            homes = [members for members in self._sets if value in members]
            if homes:
                if not any(all(reading.find(m) for m in members) for members in homes):
                    yield f"'{value}' is one of a set; name the whole set or use {{allowed}}"
            elif self._said.find(value):
                continue
            elif len(scenarios) < MIN_SCENARIOS:
                yield f"'{value}' is a gold value of so few scenarios that it would be an answer"
            elif not _is_example(value, text):
                yield f"'{value}' is a gold value; show it only as an example"

    def _unrenderable(self, slot: Slot, candidate: Candidate) -> Iterator[str]:
        renderer = self._template.renderer
        kinds = [slot.recovery] if slot.recovery else []
        try:
            renderer.prompt(candidate)
            renderer.tools(candidate)
            for kind in kinds:
                for tool in [slot.tool] if kind in TOOL_RECOVERIES else [None]:
                    renderer.recovery(tool, CallError(kind=kind, code=kind, message="."), candidate)
        except SealError as cause:
            yield f"it does not render: {cause}"


def _is_example(value: str, text: str) -> bool:
    """Whether every sentence that holds a value has a word for an example before it."""
    for sentence in _SENTENCE_END.split(text):
        reading = Reading(sentence)
        found = reading.find(value)
        before = reading.text[: found.start()] if found else ""
        if found and not (_MARKER.search(before) or "e.g." in before.lower()):
            return False
    return True


def _sets(template: EnvironmentTemplate, facts: Facts) -> Iterator[frozenset[str]]:
    """The sets of values that are known: declared, cited by errors, or enumerated by a schema."""
    for tool in template.contract.tools.values():
        for rule in tool.contract.rules.values():
            if rule.allowed is not None:
                allowed = rule.allowed
                members = allowed.values() if isinstance(allowed, Mapping) else allowed
                yield frozenset(str(member) for member in members)
        yield from _enumerated(tool.contract.parameters)
    for name, text in facts.written_out().items():
        if name.endswith(".allowed"):
            quoted = [json.loads(member) for member in re.findall(r'"(?:[^"\\]|\\.)*"', text)]
            if quoted:
                yield frozenset(quoted)


def _enumerated(schema: JsonValue | Sequence[JsonValue]) -> Iterator[frozenset[str]]:
    if isinstance(schema, dict):
        if isinstance(members := schema.get("enum"), list):
            yield frozenset(str(member) for member in members)
        for inner in schema.values():
            yield from _enumerated(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _enumerated(inner)
