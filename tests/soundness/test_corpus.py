"""Every planted defect is caught by a check that is right about it; sound environments are left."""

import contextlib
import json
import sys

import pytest

from seal.soundness import AGREE_CLAIM, CHECKS, TASKS_CLAIM, Facts
from seal.soundness.leaks import CONDUCT_CLAIM, LIVE_CLAIM
from seal.soundness.worlds import PROCESS_CLAIM, worlds_elsewhere
from tests.soundness.__main__ import DEFECTIVE, SOUND, main
from tests.soundness.planted import problems

HERE = [check for check in CHECKS if check is not worlds_elsewhere]
NOTHING_FOUND = Facts(facts={}, live=(), refusals={}, leaks=(), faults=(), calls=0)
MISSED = {
    "gold that is not what the user says": "only the meaning of the words tells",
    "the date in Greenwich in the state": "the other process has the same time",
    "an answer that the world contradicts": "the answer could be a conclusion from what is read",
    "a form by a wrong example": "a form is a text for people",
    "a tool that swallows its errors": "nothing tells it from a tool that has nothing to say",
}
SAYS = {
    "a parameter's block is misspelt": "tools/dim.jinja:3: no parameter 'color' in dim.",
    "a block fails on one kind of error": "tools/dim.jinja:5: block recovery_argument_value: ",
    "a slot is printed in two blocks": "'dim.constraint.colour' appears twice in the block",
    "a recovery says nothing without its slot": "tools/dim.jinja:4: block recovery_refused: it ",
    "a maximum below what gold sends": "dim.level = 100, and its rule says at most 90",
    "a tool's block tells an answer": "tools/plug_in.jinja:2: the words of plug_in say 'balcony'",
    "a docstring tells an answer": "env.py:21: the words of plug_in say 'balcony'",
    "an error's form is the answer": "plug_in.socket.format is live and equals gold",
    "two tasks of one id": "tasks.jsonl:4: a second task 'lamp-02'",
    "a scenario in two splits": "scenario lamp-05 is in gate and test",
    "a task copied and forgotten": "1 of 25 scenarios repeat another one",
    "a generator with a random of its own": "train-000 is another one each time",
    "neither tasks nor a generator": "there are no tasks",
    "gold that is refused": "tasks.jsonl:5: lamp: task lamp-04, turn 0: a gold call fails: call 0",
    "gold of another type": "it breaks its contract: level: Input should be a valid integer",
    "a state without what reset reads": "env.py:14: lamp: reset for task lamp-04: KeyError",
    "a tool that takes nothing and solves all": "passes 24 of 24 tasks (100%)",
    "an effect that is kept in private": "note changes something, and all 21 of its gold calls",
    "a tool that forgets one of its arguments": "dim.colour has a rule, and all 21 gold calls pass",
    "a serial number drawn in reset": "env.py:14: task lamp-02, played twice: reset leaves ",
    "a list that worlds share and reset clears": "plug_in answers differently",
    "a result in the order of a set": "plug_in answers differently",
    "the date in the state": "reset leaves something else in today",
    "a check that fails where nothing was done": "IndexError: list index out of range, after ",
    "a division by zero": "ZeroDivisionError: ",
    "a loop that does not end for odd values": "dim was still at work after 2 s",
    "a package that is not there": "env.py:3: cannot be imported: ModuleNotFoundError",
}
"""Of some cases, what place and message say."""


def parameters():
    for case in DEFECTIVE:
        missed = pytest.mark.xfail(strict=True, reason=MISSED.get(case.name, ""))
        marks = [missed] if case.name in MISSED else []
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("case", list(parameters()))
def test_a_planted_defect_is_caught(case, tmp_path):
    # To save time, checks end with the first finding that is right, and another process and fuzzing
    # are for those that need them; `python -m tests.soundness` runs everything.
    fuzzed = {CONDUCT_CLAIM, LIVE_CLAIM} & set(case.claims)
    checks = CHECKS if PROCESS_CLAIM in case.claims else HERE
    found = problems(case, tmp_path / "planted", checks, None if fuzzed else NOTHING_FOUND)
    with contextlib.closing(found):
        right = next((finding for finding in found if finding.check in case.claims), None)
    assert right
    assert right.where
    # Where a template does not load, it is often Python itself that says why.
    assert right.remedy or right.check in (AGREE_CLAIM, TASKS_CLAIM)
    assert SAYS.get(case.name, "") in f"{right.where}: {right.message}"


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_nothing_is_said_of_a_sound_environment(case, tmp_path):
    found = problems(case, tmp_path / "sound", HERE)
    assert [f"{finding.check}: {finding.message}" for finding in found] == []


def test_the_corpus_is_as_large_as_promised():
    names = [case.name for case in (*DEFECTIVE, *SOUND)]
    assert len(set(names)) == len(names)
    assert len(DEFECTIVE) >= 48
    assert len(SOUND) >= 12
    assert len(MISSED) <= 0.05 * len(DEFECTIVE)
    assert SAYS.keys() | MISSED.keys() <= set(names)


def test_the_command_counts_what_is_caught_and_what_is_not(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests.soundness", "--json", "--only", "in one split"])
    main()
    counts = {"defective": 1, "caught": 1.0, "clean": 0, "false_alarms": 0}
    assert json.loads(capsys.readouterr().out) == counts
