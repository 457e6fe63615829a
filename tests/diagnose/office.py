"""A small world in which everything that a diagnosis can say can happen."""

from seal.diagnose import diagnose_rollout
from seal.envs import load_environment
from seal.rollout.agent import Arena, roll_out
from seal.types import Sampling, Task, content_hash
from tests.factories import TOML, write_environment
from tests.scripted import Scripted

WORLD = '''
from typing import Literal

from seal.envs import Environment, tool
from seal.errors import ToolError
from seal.types import Rule, Task

DOORS = ("A1", "B2")


class Office(Environment):
    """Two doors that want to be unlocked, and a notebook."""

    def reset(self, task: Task) -> None:
        self.unlocked = []
        self.inside = ""
        self.notes = []

    @tool(door=Rule(allowed=DOORS))
    def unlock(self, door: str) -> str:
        if door not in DOORS:
            raise ToolError("no_door", "No such door.", argument="door")
        self.unlocked = sorted({*self.unlocked, door})
        return "click"

    @tool(requires="unlock", door=Rule(allowed=DOORS))
    def enter(self, door: str, how: Literal["walk", "run"] = "walk") -> str:
        if door not in DOORS:
            raise ToolError("no_door", "No such door.", argument="door")
        if door not in self.unlocked:
            raise ToolError("locked", "It is locked.")
        self.inside = f"{door} {how}"
        return "inside"

    @tool
    def write(self, text: str, size: int = 1, bold: bool = False) -> str:
        self.notes = [*self.notes, [text, size, bold]]
        return "written"

    @tool(mutates=False)
    def read(self) -> list:
        return self.notes
'''
TOOLS = {
    "unlock": """\
{% extends "_tool.jinja" %}
{% block description %}{{ affordance }}{% endblock %}
""",
}


def office_at(folder, limits=""):
    """The office as a template; any task may be rolled out in it."""
    path = write_environment(
        folder,
        toml=f"{TOML}\n[limits]\n{limits}\n",
        world=WORLD,
        tools=TOOLS,
        slots="",
        tasks=[task_of([call("read")]).model_dump(mode="json")],
    )
    return Arena(load_environment(path))


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def task_of(*golds, answers=None, checks=()):
    """A task whose turns have these gold calls; None: no gold in that turn."""
    turns = [
        {"user": "Please.", "gold": gold, "answer": (answers or {}).get(number, ())}
        for number, gold in enumerate(golds)
    ]
    name = content_hash(turns)  # Gold's replay is kept by it.
    return Task.model_validate({"id": name, "scenario": name, "turns": turns, "checks": checks})


def played(office, task, *turns, answers=None):
    """The outcome of scripted turns, each a list of steps."""
    policy = Scripted(*turns, answers=answers)
    return roll_out(office, task, policy, sample=0, seed=0, sampling=Sampling())


def diagnosed(office, task, *turns, answers=None):
    """The diagnoses of scripted turns, the same from the live play and from a replay."""
    outcome = played(office, task, *turns, answers=answers)
    given = (office.template, office.gold, task, office.candidate, outcome.rollout)
    live = diagnose_rollout(*given, outcome.played)
    assert diagnose_rollout(*given) == live
    return live


def place(diagnosis):
    """Kind, tool and argument."""
    return diagnosis and (diagnosis.kind.value, diagnosis.tool, diagnosis.argument)
