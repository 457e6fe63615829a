"""What a warm start learns from: gold dialogues of many convention seeds, rules in the words.

The point is to teach *reading*. Every lesson is of another seed: no rule can be learned by heart;
what pays is to find the rule in the words and to follow it. In some lessons a rule is missing from
the words: the teacher then sends what the user said, and corrects itself when a message says how.
"""

import random
import re
import shutil
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from seal.envs.render import SYSTEM
from seal.envs.slots import constraint_values, fill
from seal.envs.template import EnvironmentTemplate, load_template
from seal.models.chat import Piece, dialogue_pieces
from seal.models.protocol import Message
from seal.models.simulated import Reader, SimulatedPolicy
from seal.resources import resource_folder
from seal.rollout.agent import Arena, roll_out
from seal.train.drills import Questions, drilled_argument, plan_drill, questions_of, value_drill
from seal.types import Candidate, Rollout, Rule, Sampling, Slot, Task, ToolContract

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


@dataclass(frozen=True, slots=True)
class Mode:
    """How much of the rules a lesson's words state, and what errors say."""

    share: float
    """Chance of each rule to be stated."""
    messages: bool
    """Whether recovery messages state the rule."""
    errs: float
    """Chance of the teacher to err on a rule that it cannot read."""


MODES: tuple[tuple[float, Mode], ...] = (
    (0.6, Mode(share=1.0, messages=True, errs=1.0)),
    (0.25, Mode(share=0.4, messages=True, errs=1.0)),
    (0.15, Mode(share=0.5, messages=False, errs=0.5)),
)
_RULE = re.compile(r"[,:]? ?\{\{-? *rule\.\w+ *-?\}\}")
KEPT = 32
"""Templates held at once."""
RENEWED = 0.1
"""Chance that a lesson is of a seed that was not at hand."""
SILENT = 0.4
"""Chance that a seed is taken without the rules that the author's prose states."""
CORRECTIONS = 6
"""Errors of one turn that a lesson's teacher corrects: with no rule stated, they come in a row."""
PLANNED = 0.4
"""Chance that words prescribe calls before a tool that changes something, needed or not."""


class Corpus:
    """Lessons of one environment, over convention seeds that are not trained on later.

    Args:
        folder: The environment's folder.
        seeds: The convention seeds to teach from.
    """

    def __init__(self, folder: Path, seeds: Sequence[int]) -> None:
        scratch = mkdtemp(prefix="seal-")
        weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self._folders = (folder, without_rules(folder, Path(scratch) / folder.name))
        self._seeds = list(seeds)
        self._kept: OrderedDict[tuple[int, bool], EnvironmentTemplate] = OrderedDict()
        self._questions: dict[int, Questions] = {}

    def template(self, rng: random.Random) -> EnvironmentTemplate:
        """The environment under one of the seeds, now and then without its author's prose."""
        key = rng.choice(self._seeds), rng.random() < SILENT
        if len(self._kept) >= KEPT and rng.random() >= RENEWED:
            return self._kept[rng.choice(list(self._kept))]
        if key not in self._kept:
            seed, silent = key
            defaults = resource_folder("env_templates")
            self._kept[key] = load_template(self._folders[silent], defaults, seed)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]

    def lesson(self, rng: random.Random, tasks: int, tools: int | None = None) -> list[Piece]:
        """One dialogue over several tasks, under words of its own.

        Args:
            rng: Where it comes from.
            tasks: Tasks that follow each other in it.
            tools: How many tools it shows at least; None: all of them. A short prompt leaves more
                of a step's tokens to learn from.
        """
        template = self.template(rng)
        mode = rng.choices([m for _, m in MODES], [w for w, _ in MODES])[0]
        words = lesson_words(template, mode, rng)
        arena = Arena(template, words, contract_hash="lesson")
        teacher = SimulatedPolicy(
            Reader(errs=mode.errs, slips=0.0, acts=0.0, everywhere=True, corrections=CORRECTIONS)
        )
        pieces: list[Piece] = []
        for task in _tasks(template, rng, tasks, tools):
            outcome = roll_out(
                arena, task, teacher, sample=0, seed=rng.randrange(10**9), sampling=Sampling()
            )
            more = rollout_pieces(arena, task, outcome.rollout)
            # The system message is said once; what follows it is as good in one dialogue.
            pieces = [*pieces, Piece("\n", sampled=False), *more[1:]] if pieces else more
        return pieces

    def drill(self, rng: random.Random, count: int, *, messages: bool = False) -> list[Piece]:
        """One rule in words and many values to send.

        Args:
            rng: Where it comes from.
            count: How many values.
            messages: Ask for each by a whole user message.
        """
        template = self.template(rng)
        seed = template.convention_seed
        if seed not in self._questions:
            self._questions[seed] = questions_of(template)
        questions = self._questions[seed]
        tool, argument = drilled_argument(template, questions, rng)
        slot = Slot(id="", kind="constraint", tool=tool, argument=argument, max_chars=0)
        contract = template.contract[tool]
        stated = _stated(slot, contract, contract.rules[argument], rng)
        asked = rng.choices(questions[tool, argument], k=count)
        return value_drill(argument, stated, asked, messages=messages)

    def plan_drill(self, rng: random.Random, count: int) -> list[Piece]:
        """Tools some of which want others called first, and what is to be called for each."""
        names = list(self.template(rng).contract.tools)
        wanted = {name: rng.choice(names) for name in names if rng.random() < 0.5}
        wanted = {name: first for name, first in wanted.items() if name != first}
        lines = []
        for name in rng.sample(names, len(names)):
            text = rng.choice([*NOTHING_FIRST, ""])
            if name in wanted:
                text = _phrase("requires", rng).replace("{requires}", wanted[name])
            lines.append((name, text))
        return plan_drill(lines, wanted, rng.choices(names, k=count))

    def texts(self, rng: random.Random, lessons: int) -> Iterator[str]:
        """Plain texts of lessons, to learn a tokenizer from."""
        for _ in range(lessons):
            yield "".join(piece.text for piece in self.lesson(rng, 2))


def without_rules(folder: Path, target: Path) -> Path:
    """A copy of an environment whose own prose states no rule: only slots can.

    What stays is a sentence with a gap, such as "Day." for "Day, like 14 May.".
    """
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for file in target.glob("tools/*.jinja"):
        text = _RULE.sub("", file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
    return target


def _tasks(
    template: EnvironmentTemplate, rng: random.Random, count: int, tools: int | None
) -> Iterator[Task]:
    """Tasks that need no other tools than those that all of them show."""
    names = tuple(template.contract.tools)
    shown: tuple[str, ...] | None = None
    while count > 0:
        task = next(iter(template.scenario("train", rng.randrange(10**9))))
        needed = {call.tool for turn in task.turns for call in turn.gold or ()}
        if shown is None:
            others = [name for name in names if name not in needed]
            more = max(0, len(names) if tools is None else tools - len(needed))
            kept = needed | set(rng.sample(others, min(more, len(others))))
            shown = tuple(name for name in names if name in kept)
        if needed <= set(shown):
            count -= 1
            yield task.model_copy(update={"tools": shown})


def rollout_pieces(arena: Arena, task: Task, rollout: Rollout) -> list[Piece]:
    """A recorded rollout as the text a local policy would have read and written."""
    messages = [Message("system", arena.prompt)]
    for turn in rollout.turns:
        messages.append(Message("user", turn.user))
        for step in turn.steps:
            messages.append(Message("assistant", step.content, step.calls))
            messages += [Message("tool", r.content, call_id=r.call_id) for r in step.results]
    names = task.tools if task.tools is not None else tuple(arena.tools)
    return dialogue_pieces(messages, [arena.tools[name] for name in names])


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
            if certain or rng.random() < mode.share:
                texts[slot.id] = _stated(slot, tool.contract, rule, rng, held_out=held_out)
        elif slot.recovery == "refused" and mode.messages:
            keys = ("allowed", "format", "unit", "requires")
            texts[slot.id] = " ".join(_phrase(key, rng, held_out=held_out) for key in keys)
    return Candidate(texts=texts, parent=template.original.id)


def _phrase(key: str, rng: random.Random, *, held_out: bool = False) -> str:
    return PHRASINGS[key][-1] if held_out else rng.choice(PHRASINGS[key][:-1])


def _stated(
    slot: Slot, tool: ToolContract, rule: Rule, rng: random.Random, *, held_out: bool = False
) -> str:
    """A constraint text that says the whole rule; filled in if it is for no slot."""
    text = " ".join(_phrase(key, rng, held_out=held_out) for key in rule.stated())
    if slot.id:
        return text
    return fill(text, "constraint", constraint_values(tool, slot.argument or ""))


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
        return _phrase("requires", rng).replace("{requires}", rng.choice(others))
    several = rng.sample(others, min(2, len(others)))
    return f"Before {tool.name}, call {' and '.join(several)}."


def _affordance(tool: ToolContract, mode: Mode, rng: random.Random, *, held_out: bool) -> str:
    """The prerequisite if there is one; where there is none, that there is none."""
    if rng.random() >= mode.share:
        return ""
    if tool.rule.requires:
        phrase = _phrase("requires", rng, held_out=held_out)
        return phrase.replace("{requires}", tool.rule.requires)
    return rng.choice([*NOTHING_FIRST, ""]) if tool.mutates else ""
