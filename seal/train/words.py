"""The words of lessons: each rule stated in one of many phrases, or left out."""

import random
from dataclasses import dataclass

from seal.envs.render import SYSTEM
from seal.envs.slots import constraint_values, fill
from seal.envs.template import EnvironmentTemplate
from seal.types import Candidate, Rule, ToolContract

PHRASINGS: dict[str, tuple[str, ...]] = {
    "allowed": (
        "Use one of {allowed}.",
        "Codes: {allowed}.",
        "It must be one of {allowed}.",
        "Allowed: {allowed}.",
        "Written as {allowed}.",
        "Here we say {allowed}.",
        "Please take the right one: {allowed}.",
        "Known values are {allowed}, nothing else works.",
        "Put in what stands for the name ({allowed}).",
        "The list to choose from is {allowed}.",
        "Send the code and not the name, we have {allowed}.",
    ),
    "format": (
        "Write it like {format}.",
        "Like {format}.",
        "It must be in a form like {format}.",
        "Expected: {format}.",
        "Form: {format}.",
        "Here we say {format}.",
        "Please put it this way: {format}.",
        "Only a text such as {format} works.",
        "For example {format}, and the others in the same way.",
        "The right way is {format}.",
        "Give it in the style {format}.",
    ),
    "unit": (
        "Give it in {unit}.",
        "In {unit}.",
        "Number of {unit}.",
        "Unit: {unit}.",
        "Counted in {unit}.",
        "Here we say {unit}.",
        "Please tell how many {unit}.",
        "The value is in {unit}, whatever was said.",
        "As so many {unit}.",
        "What stands here means {unit}.",
        "Count it as {unit}, please.",
    ),
    "minimum": ("At least {minimum}.", "Not below {minimum}.", "From {minimum} up."),
    "maximum": ("At most {maximum}.", "Not above {maximum}.", "Up to {maximum}."),
    "requires": (
        "Call {requires} first.",
        "Call {requires} before it.",
        "It requires {requires}.",
        "Only after {requires}.",
        "First call {requires}, then this.",
        "Before this, call {requires}.",
        "Please begin with {requires}, it is needed first.",
        "It works only when {requires} was called before.",
        "There must be a call of {requires} first.",
        "Always use {requires} first, whatever was said.",
        "Make sure that {requires} came before.",
    ),
}
"""Ways to state each kind of rule; the last of each is held out, to test reading on."""
NOTHING_FIRST = (
    "No other call is needed.",
    "It needs nothing else.",
    "Call it at once.",
    "Please call it alone.",
    "It works without anything first.",
)
GUIDANCE = (
    "Ask if something is missing, decline what no tool can do.",
    "If a request lacks a detail, ask for it; if no tool fits, decline.",
    "",
)
LOOSE = 0.5
"""Chance that a rule stands among loose words."""
_LOOSE_KEYS = ("allowed", "format", "unit", "requires")
"""What needs no words to be understood. A number alone does not say which limit it is."""
_ORDER = ("first", "before", "after", "prior", "needs")
"""Of two tools, one of these says that there is an order."""
_LOOSE_WORDS = [
    word
    for key in _LOOSE_KEYS
    for text in PHRASINGS[key][:-1]
    for word in text.rstrip(".").split()
    if "{" not in word
]
PLANNED = 0.4
"""Chance that words prescribe calls before a tool that changes something, needed or not."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How much of the rules a lesson's words state, and what errors say."""

    share: float
    """Chance of each rule to be stated."""
    messages: bool
    """Whether recovery messages state the rule."""
    errs: float
    """Chance of the teacher to err on a rule that it cannot read."""
    bare: float = 0.4
    """Chance that the rules which the author's prose states are left out of it."""
    whole: float = 0.0
    """Chance that a rule is stated at all tools or at none: left out of one, it can still be read
    at another."""


def lesson_words(
    template: EnvironmentTemplate,
    mode: Mode,
    rng: random.Random,
    *,
    held_out: bool = False,
    plans: bool = True,
) -> Candidate:
    """Words that state each rule with the mode's chance, every time in other phrases.

    Args:
        template: The environment.
        mode: How much is stated.
        rng: Where the words come from.
        held_out: Use the phrases that no lesson has.
        plans: Keep the author's own affordances now and then, and prescribe needless calls.
    """
    texts = dict(template.original.texts)
    keep_seeds = plans and rng.random() < 0.2
    whole = rng.random() < mode.whole
    chosen: dict[str, bool] = {}
    for slot in template.renderer.slots.values():
        tool = template.contract.tools.get(slot.tool or "")
        if slot.id == f"{SYSTEM}.guidance":
            texts[slot.id] = rng.choice(GUIDANCE)
        elif tool is None:
            continue
        elif slot.kind == "affordance" and not (keep_seeds and texts[slot.id]):
            needless = _needless_plan(template, tool.contract, rng) if plans else ""
            texts[slot.id] = needless or _affordance(tool.contract, mode, rng, held_out=held_out)
        elif slot.kind == "constraint" and slot.argument in tool.contract.rules:
            rule = tool.contract.rules[slot.argument]
            certain = rule.allowed is not None and not mode.messages
            key = rule.model_dump_json() if whole else slot.id
            if key not in chosen:
                chosen[key] = certain or rng.random() < mode.share
            if chosen[key]:
                texts[slot.id] = _stated(rule, rng, held_out=held_out)
        elif slot.recovery == "refused" and mode.messages:
            keys = ("allowed", "format", "unit", "requires")
            texts[slot.id] = " ".join(phrase(key, rng, held_out=held_out) for key in keys)
    return Candidate(texts=texts, parent=template.original.id)


def phrase(key: str, rng: random.Random, *, held_out: bool = False) -> str:
    """One way to state a rule's key; that of no lesson, if it is to be held out.

    Often the words around the value are loose ones, which tell nothing: a policy that knows a rule
    by its phrase alone would not read it in another.
    """
    if held_out:
        return PHRASINGS[key][-1]
    if key in _LOOSE_KEYS and rng.random() < LOOSE:
        return _loose([f"{{{key}}}", *([rng.choice(_ORDER)] if key == "requires" else [])], rng)
    return rng.choice(PHRASINGS[key][:-1])


def nothing_first(rng: random.Random) -> str:
    """One way to say that nothing is to be called first, or not to say anything."""
    return _loose([], rng) if rng.random() < LOOSE else rng.choice([*NOTHING_FIRST, ""])


def _loose(said: list[str], rng: random.Random) -> str:
    """What is said among a few words of any phrases, in any order."""
    words = [*rng.sample(_LOOSE_WORDS, rng.randint(1, 6)), *said]
    rng.shuffle(words)
    text = " ".join(f"{word}," if rng.random() < 0.1 else word for word in words).rstrip(",")
    return f"{text[0].upper()}{text[1:]}."


def _stated(rule: Rule, rng: random.Random, *, held_out: bool = False) -> str:
    """A constraint text that says the whole rule."""
    return " ".join(phrase(key, rng, held_out=held_out) for key in rule.stated())


def said(tool: ToolContract, argument: str, rng: random.Random) -> str:
    """A text that says an argument's whole rule, filled in."""
    text = _stated(tool.rules[argument], rng)
    return fill(text, "constraint", constraint_values(tool, argument))


def _needless_plan(template: EnvironmentTemplate, tool: ToolContract, rng: random.Random) -> str:
    """Now and then, calls that a tool does not need: what words prescribe is to be followed."""
    others = [n for n, t in template.contract.tools.items() if not t.contract.mutates]
    others = [name for name in others if name != tool.name]
    if not others or not tool.mutates or rng.random() >= PLANNED:
        return ""
    if tool.rule.requires:
        # A plan that leaves the prerequisite out would teach not to read it.
        first = [tool.rule.requires, *rng.sample(others, 1)]
        return f"Before {tool.name}, call {' and '.join(sorted(set(first)))}."
    if rng.random() < 0.5:
        return phrase("requires", rng).replace("{requires}", rng.choice(others))
    several = rng.sample(others, min(2, len(others)))
    return f"Before {tool.name}, call {' and '.join(several)}."


def _affordance(tool: ToolContract, mode: Mode, rng: random.Random, *, held_out: bool) -> str:
    """The prerequisite if there is one; where there is none, that there is none."""
    if rng.random() >= mode.share:
        return ""
    if tool.rule.requires:
        first = phrase("requires", rng, held_out=held_out)
        return first.replace("{requires}", tool.rule.requires)
    return nothing_first(rng) if tool.mutates else ""
