"""A small sound environment for tests, valid by default; each test overrides what it is about."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TOML = """\
name = "lamp"
description = "A lamp in a house with too few sockets."
licence = "CC0-1.0"
"""

WORLD = '''\
"""A lamp that wants to be plugged in first."""

from seal.envs import Environment, check, tool
from seal.errors import ToolError
from seal.types import Rule, Task

COLOURS = {"warm": "W3", "cold": "C9"}


class Lamp(Environment):
    """Loud about sockets, colours and power; silent about the unit of its level."""

    def reset(self, task: Task) -> None:
        self.sockets = list(task.state["sockets"])
        self.plugged = ""
        self.level = 0
        self.colour = ""

    @tool
    def plug_in(self, socket: str) -> str:
        """Plug the lamp in."""
        if socket not in self.sockets:
            raise ToolError("taken", "Not that one.", argument="socket", allowed=self.sockets)
        self.plugged = socket
        return "plugged in"

    @tool(
        requires="plug_in",
        level=Rule(unit="percent", minimum=1, maximum=100),
        colour=Rule(allowed=COLOURS),
    )
    def dim(self, level: int, colour: str) -> str:
        """Set how the lamp shines."""
        if not self.plugged:
            raise ToolError("no_power", "The lamp stays dark.")
        if colour not in COLOURS.values():
            raise ToolError("no_colour", "It cannot shine so.", argument="colour")
        self.level = level
        self.colour = colour
        return f"shines {colour}"

    @check
    def is_lit(self) -> bool:
        return self.level > 0
'''

TOOLS: Mapping[str, str] = {
    "dim": """\
{% extends "_tool.jinja" %}
{% block description %}Sets how the lamp shines. {{ affordance }}{% endblock %}
{% block parameter_colour %}The colour. {{ constraint.colour }}{% endblock %}
{% block recovery_refused %}{{ error.message }} {{ recovery }}{% endblock %}
""",
}

SLOTS = """\
[dim]
affordance = "Sets level and colour at once."
"""

LEVELS = {"half": 50, "a quarter": 25, "full": 100, "a tenth": 10}


def lamp_task(number: int) -> dict[str, Any]:
    """One task of a scenario of its own; every eighth asks for what the tools cannot do."""
    sockets = [f"{wall}{number % 5 + place}" for place, wall in enumerate("NEW")]
    task: dict[str, Any] = {
        "id": f"lamp-{number:02d}",
        "scenario": f"lamp-{number:02d}",
        "group": "easy" if number % 2 else "hard",
        "state": {"sockets": sockets},
    }
    if number % 8 == 7:
        return {**task, "turns": [{"user": "Please water the plants.", "gold": []}]}
    said, level = list(LEVELS.items())[number % len(LEVELS)]
    name, code = (("warm", "W3"), ("cold", "C9"))[number % 2]
    socket = sockets[number % 3]
    plug = {"tool": "plug_in", "arguments": {"socket": socket}}
    dim = {
        "tool": "dim",
        "arguments": {"level": level, "colour": code},
        "as_said": {"level": said, "colour": name},
    }
    if number % 2:
        one = {"user": f"Plug the lamp in at {socket}.", "gold": [plug]}
        two = {"user": f"Let it shine {name}, at {said}.", "gold": [dim]}
        return {**task, "checks": ["is_lit"], "turns": [one, two]}
    user = f"Use socket {socket} and let the lamp shine {name}, at {said}."
    return {**task, "checks": ["is_lit"], "turns": [{"user": user, "gold": [plug, dim]}]}


def lamp_tasks(count: int = 40) -> list[dict[str, Any]]:
    """The tasks of the lamp, each a scenario."""
    return [lamp_task(number) for number in range(count)]


def write_environment(
    folder: Path,
    *,
    toml: str = TOML,
    world: str = WORLD,
    tools: Mapping[str, str] = TOOLS,
    system: str = "",
    slots: str = SLOTS,
    tasks: Sequence[Mapping[str, Any]] | None = None,
) -> Path:
    """Write a sound environment into a folder, with what the caller wants otherwise.

    An empty text leaves the file out. `world` and `toml` are best made with `edited`.
    """
    (folder / "tools").mkdir(parents=True)
    rows = lamp_tasks() if tasks is None else tasks
    files = {
        "env.toml": toml,
        "env.py": world,
        "system.jinja": system,
        "slots.toml": slots,
        "tasks.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows),
        **{f"tools/{name}.jinja": text for name, text in tools.items()},
    }
    for name, text in files.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def edited(text: str, old: str, new: str) -> str:
    """The text with one passage exchanged, which must be there."""
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)
