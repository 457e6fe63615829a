"""Our verdict against the official checker's, on gold that was tampered with."""

import json
import random

import pytest

from seal.envs.bfcl_data import parse_call
from seal.envs.verify import GoldReplays, replay, verify
from seal.types import ToolCall

pytestmark = pytest.mark.bfcl
ROUNDS = 6
"""Over all tasks."""


def tampered(calls: list[list[str]], rng: random.Random) -> list[list[str]]:
    """Reference calls with one turn skipped in part, repeated, reversed, emptied or moved."""
    turns = [list(turn) for turn in calls]
    place = rng.randrange(len(turns))
    turn = turns[place]
    kind = rng.choice(["drop", "repeat", "reverse", "empty", "early", "late", "same"])
    if kind == "drop" and turn:
        turn.pop(rng.randrange(len(turn)))
    elif kind == "repeat":
        turns[place] = turn + turn
    elif kind == "reverse":
        turn.reverse()
    elif kind == "empty":
        turn.clear()
    elif kind == "early" and place:
        turns[place - 1] += turn
    elif kind == "late" and place + 1 < len(turns):
        turns[place + 1] = turn + turns[place + 1]
        turns[place] = []
    return turns


def changed(package, calls: list[list[str]], rng: random.Random) -> list[list[str]]:
    """Reference calls with one argument of one call otherwise."""
    turns = [list(turn) for turn in calls]
    places = [(i, j) for i, turn in enumerate(turns) for j in range(len(turn))]
    for i, j in rng.sample(places, len(places)):
        call = parse_call(package, turns[i][j])
        for name in rng.sample(sorted(call.arguments), len(call.arguments)):
            value = otherwise(call.arguments[name], rng)
            if value is not None:
                arguments = {**call.arguments, name: value}
                shown = ", ".join(f"{key}={item!r}" for key, item in arguments.items())
                turns[i][j] = f"{call.tool}({shown})"
                return turns
    return turns


def otherwise(value, rng: random.Random):
    """Another value of the same type, None if there is none at hand."""
    match value:
        case bool():
            return not value
        case int():
            return value + rng.choice([1, -1, 10])
        case float():
            return value + rng.choice([1.5, -0.5])
        case str():
            return rng.choice([f"{value}x", value[:-1], value.upper(), "other"])
        case list():
            return rng.choice([value[:-1], value + value[:1]])
    return None


def too_early(task, turns: list[list[str]]) -> bool:
    """Whether a tool is called while it is held out: the official executor runs it."""
    return any(
        text.partition("(")[0] in turn.hidden
        for turn, calls in zip(task.turns, turns, strict=True)
        for text in calls
    )


@pytest.mark.slow
def test_verdicts_on_tampered_gold_are_the_official_ones(bfcl, package, official, entries):
    rng = random.Random(3)
    gold = GoldReplays(bfcl)
    verdicts = []
    for number in range(ROUNDS):
        for task in bfcl.tasks(None):
            entry, calls = entries[task.id]
            turns = changed(package, calls, rng) if rng.random() < 0.4 else tampered(calls, rng)
            ours = [[as_call(package, text, i) for i, text in enumerate(turn)] for turn in turns]
            played = replay(bfcl, task, ours)
            score = verify(bfcl, task, gold.of(task), played, [""] * len(turns))
            theirs = official.multi_turn_checker(
                [[[text] for text in turn] for turn in turns],
                calls,
                entry,
                f"multi_turn_{task.group}",
                f"tampered{number}",
            )
            early = too_early(task, turns)
            verdicts.append((task.id, score.reward == 1.0, theirs["valid"], early))
    assert len(verdicts) > 4000
    differ = [verdict for verdict in verdicts if verdict[1] != verdict[2]]
    assert all(early for *_, early in differ)
    assert len(differ) < 20
    assert 0.2 < sum(v[1] for v in verdicts) / len(verdicts) < 0.8
    print(f"{len(verdicts)} rollouts, {len(differ)} verdicts differ")


def as_call(package, text: str, number: int) -> ToolCall:
    call = parse_call(package, text)
    return ToolCall(id=f"{number}", tool=call.tool, arguments=json.dumps(call.arguments))
