"""Our verdict against the official checker's, on gold that was tampered with."""

import json
import random

import pytest

from seal.envs.bfcl_data import parse_call
from seal.envs.verify import GoldReplays, replay, verify
from seal.types import ToolCall

pytestmark = pytest.mark.bfcl


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


def test_verdicts_on_tampered_gold_are_the_official_ones(bfcl, package, official, entries):
    rng = random.Random(3)
    gold = GoldReplays(bfcl)
    verdicts = []
    for task in bfcl.tasks(None)[::3]:
        entry, calls = entries[task.id]
        turns = tampered(calls, rng)
        ours = [[as_call(package, text, i) for i, text in enumerate(turn)] for turn in turns]
        played = replay(bfcl, task, ours)
        score = verify(bfcl, task, gold.of(task), played, [""] * len(turns))
        theirs = official.multi_turn_checker(
            [[[text] for text in turn] for turn in turns],
            calls,
            entry,
            f"multi_turn_{task.group}",
            f"tampered_{task.id}",
        )
        # Here a tool cannot be called before its reveal; the official executor runs it.
        if task.group != "miss_func":
            verdicts.append((task.id, score.reward == 1.0, theirs["valid"]))
    assert [v for v in verdicts if v[1] != v[2]] == []
    assert 0.2 < sum(v[1] for v in verdicts) / len(verdicts) < 0.8


def as_call(package, text: str, number: int) -> ToolCall:
    call = parse_call(package, text)
    return ToolCall(id=f"{number}", tool=call.tool, arguments=json.dumps(call.arguments))
