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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from seal.envs.template import EnvironmentTemplate, load_template
from seal.models.chat import Piece, dialogue_pieces
from seal.models.protocol import Message
from seal.models.simulated import Reader, SimulatedPolicy
from seal.resources import resource_folder
from seal.rollout.agent import Arena, roll_out
from seal.train.drills import (
    CODES,
    REFUSALS,
    Questions,
    call_drill,
    correction,
    drilled_argument,
    plan_drill,
    questions_of,
    value_drill,
)
from seal.train.words import Mode, lesson_words, nothing_first, phrase, said
from seal.types import Rollout, Sampling, Task

MODES: tuple[tuple[float, Mode], ...] = (
    (0.6, Mode(share=1.0, messages=True, errs=1.0)),
    (0.25, Mode(share=0.4, messages=True, errs=1.0)),
    (0.15, Mode(share=0.5, messages=False, errs=0.5)),
)
RECOVERY = Mode(share=0.2, messages=True, errs=1.0, bare=0.8, whole=0.7)
"""How lessons are that errors are to be learned from: little is stated but by messages."""
_RULE = re.compile(r"[,:]? ?\{\{-? *rule\.\w+ *-?\}\}")
KEPT = 32
"""Templates held at once."""
RENEWED = 0.1
"""Chance that a lesson is of a seed that was not at hand."""
PLAN_DRILLS = 0.15
"""Chance of drills to ask what is to be called before what."""
CALL_DRILLS = 0.5
"""Chance of drills by whole messages to ask for whole calls."""
CORRECTIONS = 6
"""Errors of one turn that a lesson's teacher corrects: with no rule stated, they come in a row."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Dialogues that begin with the same words, each as if it were the only one."""

    words: Piece
    """The system message: none of it is learned."""
    dialogues: list[list[Piece]]
    """What follows the words, a task each."""

    @property
    def pieces(self) -> list[Piece]:
        """All of it, one dialogue after the other."""
        return [self.words, *(piece for dialogue in self.dialogues for piece in dialogue)]


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

    def template(self, rng: random.Random, *, bare: bool = False) -> EnvironmentTemplate:
        """The environment under one of the seeds, with its author's prose or without its rules."""
        key = rng.choice(self._seeds), bare
        at_hand = [kept for kept in self._kept if kept[1] == bare]
        if len(self._kept) >= KEPT and at_hand and rng.random() >= RENEWED:
            return self._kept[rng.choice(at_hand)]
        if key not in self._kept:
            defaults = resource_folder("env_templates")
            self._kept[key] = load_template(self._folders[bare], defaults, key[0])
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]

    def lesson(
        self,
        rng: random.Random,
        tasks: int,
        tools: int | None = None,
        mode: Mode | None = None,
    ) -> Lesson:
        """Dialogues over several tasks, under words of their own.

        Every task begins with nothing but the words, since there a policy must read: a second one
        in the same dialogue would copy the forms of the first.

        Args:
            rng: Where it comes from.
            tasks: How many.
            tools: How many tools it shows at least; None: all of them. A short prompt leaves more
                of a step's tokens to learn from.
            mode: What words and messages state; None: as chance has it.
        """
        mode = mode or rng.choices([m for _, m in MODES], [w for w, _ in MODES])[0]
        template = self.template(rng, bare=rng.random() < mode.bare)
        words = lesson_words(template, mode, rng)
        arena = Arena(template, words, contract_hash="lesson")
        teacher = Reader(mode.errs, slips=0.0, acts=0.0, everywhere=True, corrections=CORRECTIONS)
        rollouts = []
        for task in _tasks(template, rng, tasks, tools):
            policy, seed = SimulatedPolicy(teacher), rng.randrange(10**9)
            outcome = roll_out(arena, task, policy, sample=0, seed=seed, sampling=Sampling())
            rollouts.append(rollout_pieces(arena, task, outcome.rollout))
        return Lesson(rollouts[0][0], [pieces[1:] for pieces in rollouts])

    def drills(
        self, rng: random.Random, count: int, *, messages: float, codes: float = CODES
    ) -> Callable[[], list[Piece]]:
        """What makes drills, all of one kind, which is drawn here.

        Args:
            rng: Where they come from.
            count: Questions of each.
            messages: Chance, where values are asked for, to ask by whole user messages; half of
                these ask for whole calls.
            codes: Chance, beyond that of any kind of rule, that they are of codes.
        """
        kind, whole = rng.random(), rng.random() < messages
        if kind < PLAN_DRILLS:
            return lambda: self.plan_drill(rng, count)
        if whole and rng.random() < CALL_DRILLS:
            return lambda: self.call_drill(rng, count, codes=codes)
        return lambda: self.value_drill(rng, count, messages=whole, codes=codes)

    def value_drill(
        self, rng: random.Random, count: int, *, messages: bool = False, codes: float = CODES
    ) -> list[Piece]:
        """One rule in words and many values to send.

        Args:
            rng: Where it comes from.
            count: How many values.
            messages: Ask for each by a whole user message.
            codes: Chance that it is of codes, beyond that of any kind of rule.
        """
        template = self.template(rng)
        questions = self._questions_of(template)
        tool, argument = drilled_argument(template, questions, rng, codes)
        stated = said(template.contract[tool], argument, rng)
        asked = rng.choices(questions[tool, argument], k=count)
        return value_drill(argument, stated, asked, messages=messages)

    def call_drill(self, rng: random.Random, count: int, *, codes: float = CODES) -> list[Piece]:
        """All rules of one tool in words, and calls of it to make.

        Where no message has all that a call needs, one value is asked for instead.

        Args:
            rng: Where it comes from.
            count: How many calls.
            codes: Chance that the tool is one that takes codes, beyond that of any kind of rule.
        """
        template = self.template(rng)
        questions = self._questions_of(template)
        place = drilled_argument(template, questions, rng, codes)
        asked = [question for question in questions[place] if question.whole]
        if not asked:
            return self.value_drill(rng, count, messages=True, codes=codes)
        tool = template.contract[place[0]]
        stated = {argument: said(tool, argument, rng) for argument in tool.rules}
        return list(call_drill(place[0], stated, rng.choices(asked, k=count)))

    def correction_drill(
        self, rng: random.Random, count: int, *, apart: bool = False
    ) -> list[Piece]:
        """Calls with one argument as the user said it, and what is called once an error told how.

        Args:
            rng: Where it comes from.
            count: How many errors.
            apart: Whether each is of another seed, so that what an older one said does not hold.
        """
        same = None if apart else self.template(rng)
        pieces: list[Piece] = []
        while count > 0:
            template = same or self.template(rng)
            questions = self._questions_of(template)
            tool, argument = drilled_argument(template, questions, rng)
            question = rng.choice(questions[tool, argument])
            if argument in question.call.as_said:
                told = f"{rng.choice(REFUSALS)} {said(template.contract[tool], argument, rng)}"
                pieces += correction(argument, question, told.strip(), rng)
                count -= 1
        return pieces

    def _questions_of(self, template: EnvironmentTemplate) -> Questions:
        seed = template.convention_seed
        if seed not in self._questions:
            self._questions[seed] = questions_of(template)
        return self._questions[seed]

    def plan_drill(self, rng: random.Random, count: int) -> list[Piece]:
        """Tools some of which want others called first, and what is to be called for each."""
        names = list(self.template(rng).contract.tools)
        wanted = {name: rng.choice(names) for name in names if rng.random() < 0.5}
        wanted = {name: first for name, first in wanted.items() if name != first}
        lines = []
        for name in rng.sample(names, len(names)):
            text = nothing_first(rng)
            if name in wanted:
                text = phrase("requires", rng).replace("{requires}", wanted[name])
            lines.append((name, text))
        return plan_drill(lines, wanted, rng.choices(names, k=count))

    def texts(self, rng: random.Random, lessons: int) -> Iterator[str]:
        """Plain texts of lessons, to learn a tokenizer from."""
        for _ in range(lessons):
            yield "".join(piece.text for piece in self.lesson(rng, 2).pieces)


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
