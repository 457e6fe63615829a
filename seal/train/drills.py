"""Drills: a line of words and many short questions, the densest supervision of look-up.

A small model has to find out how to look something up before dialogues can teach it anything else.
First the question is the value that a user says, then a whole message that has the value in it.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from seal.envs.template import EnvironmentTemplate
from seal.models.chat import CALL, END, Piece, call_text, heard_text
from seal.models.protocol import Message
from seal.types import GoldCall, Task

REFUSALS = ("", "This is not right.", "It was refused.", "No such thing here.", "Not so.")
"""What an error says before it says how to write an argument."""
CODES = 0.5
"""Chance, beyond that of any kind of rule, that a drill is of codes: they cannot be guessed."""
_SCENARIOS = 60
"""Train scenarios that questions are taken from."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a user says of one argument, and what the tool takes."""

    said: str
    message: str
    """The user message."""
    clear: bool
    """Whether the message has the value, and no other one that could be meant."""
    gold: str
    """As JSON."""
    call: GoldCall
    """The call that it is an argument of."""
    whole: bool
    """Whether the message has every value that rules of the call are about."""


Questions = Mapping[tuple[str, str], Sequence[Question]]
"""By tool and argument, of arguments with a rule."""


def questions_of(template: EnvironmentTemplate) -> Questions:
    """Questions about every argument with a rule, whether users put it otherwise or not."""
    found: dict[tuple[str, str], list[Question]] = {}
    for index in range(_SCENARIOS):
        for task in template.scenario("train", index):
            for place, question in _asked(template, task):
                found.setdefault(place, []).append(question)
    return found


def _asked(template: EnvironmentTemplate, task: Task) -> list[tuple[tuple[str, str], Question]]:
    found = []
    for turn in task.turns:
        calls = turn.gold or ()
        for call in calls:
            # What is said as the tool wants it is asked for too: else all would be converted.
            said = {
                name: str(call.as_said.get(name, call.arguments[name]))
                for name in template.contract[call.tool].rules
                if name in call.arguments
            }
            whole = all(text in turn.user for text in said.values())
            for name, text in said.items():
                meant = {json.dumps(c.arguments[name]) for c in calls if name in c.arguments}
                clear = len(meant) == 1 and text in turn.user
                gold = json.dumps(call.arguments[name])
                question = Question(text, turn.user, clear, gold, call, whole)
                found.append(((call.tool, name), question))
    return found


def value_drill(
    argument: str, stated: str, questions: Sequence[Question], *, messages: bool
) -> list[Piece]:
    """One argument's rule in words, and the argument as a call has it, for each question.

    Args:
        argument: The argument.
        stated: What words say of it.
        questions: What is asked.
        messages: Ask by whole user messages, where they are clear.
    """
    pieces = [Piece(f" {argument}: {stated}\n", sampled=False)]
    for question in questions:
        asked = f" {question.said}\n"
        if messages and question.clear:
            asked = heard_text([Message("user", question.message)])
        pieces += [
            Piece(asked, sampled=False),
            Piece(f'"{argument}": {question.gold}', sampled=True),
            Piece("\n", sampled=False),
        ]
    return pieces


def call_drill(
    tool: str, stated: Mapping[str, str], questions: Sequence[Question]
) -> Iterator[Piece]:
    """The rules of a tool's arguments in words, and its calls for whole messages.

    A message may ask for other calls too: what the tool is to be called with depends on it.

    Args:
        tool: The tool; it is named, so that its arguments alone are learned.
        stated: What words say of each argument.
        questions: Of any argument; their messages have all that the call needs.
    """
    lines = "".join(f" {argument}: {text}\n" for argument, text in stated.items())
    yield Piece(lines, sampled=False)
    for question in questions:
        call = call_text(tool, json.dumps(question.call.arguments))
        named, mark, arguments = call.partition('"arguments')
        asked = heard_text([Message("user", question.message)])
        yield Piece(f"{asked}{named}{mark}", sampled=False)
        yield Piece(f"{arguments}{END}", sampled=True)
        yield Piece("\n", sampled=False)


def correction(argument: str, question: Question, told: str, rng: random.Random) -> Iterator[Piece]:
    """A call with an argument as the user said it, an error that says how, and the right call.

    The other arguments may be as the user said them too: one error tells of one thing.

    Args:
        argument: The argument; the user says it otherwise than the tool takes it.
        question: What was asked.
        told: The error.
        rng: Where the form of the other arguments comes from.
    """
    call = question.call
    kept = {name: said for name, said in call.as_said.items() if rng.random() < 0.5}
    right = {**call.arguments, **kept, argument: call.arguments[argument]}
    wrong = {**right, argument: call.as_said[argument]}
    sent, again = (
        f"{call_text(call.tool, json.dumps(arguments))}{END}" for arguments in (wrong, right)
    )
    asked = heard_text([Message("user", question.message)])
    yield Piece(f"{asked}{sent}\n{heard_text([Message('tool', told)])}", sampled=False)
    yield Piece(again, sampled=True)
    yield Piece("\n", sampled=False)


def plan_drill(
    lines: Sequence[tuple[str, str]], wanted: Mapping[str, str], asked: Sequence[str]
) -> list[Piece]:
    """Tools some of which want another called first, and what is to be called for each.

    Args:
        lines: Every tool and what words say of it.
        wanted: The tool that must come first, of those that want one.
        asked: The tools asked for.
    """
    pieces = [Piece("".join(f"{name}: {text}\n" for name, text in lines), sampled=False)]
    for name in asked:
        calls = "".join(f'{{"name": "{n}", ' for n in [wanted.get(name), name] if n)
        pieces += [
            Piece(f" {name}\n", sampled=False),
            Piece(f"{CALL}{calls}", sampled=True),
            Piece("\n", sampled=False),
        ]
    return pieces


def drilled_argument(
    template: EnvironmentTemplate, questions: Questions, rng: random.Random, codes: float = CODES
) -> tuple[str, str]:
    """The tool and argument of a drill: every kind of rule alike, but for more of codes."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for place in sorted(questions):
        rule = template.contract[place[0]].rules[place[1]]
        kinds.setdefault(next(iter(rule.stated()), ""), []).append(place)
    coded = kinds.get("allowed")
    pick = coded if coded and rng.random() < codes else kinds[rng.choice(sorted(kinds))]
    return rng.choice(pick)
