"""Sound environments of many kinds: what `seal check` may say nothing against."""

from tests.soundness.planted import (
    DESK,
    HOUSE,
    LAMP,
    Case,
    Files,
    Row,
    drop,
    edit,
    every_row,
    gold,
    in_reset,
    method,
    put,
    rows,
    sound,
    top,
    world,
)

LOOK = method(
    '    @tool(mutates=False)\n    def look(self) -> str:\n        """Look at the lamp."""\n'
    "        return f\"at {self.level}, in {self.plugged or 'no socket'}\"\n"
)


def looks_first(made: Row) -> None:
    """A look before the work, which nobody asked for."""
    if made["turns"][0]["gold"]:
        made["turns"][0]["gold"].insert(0, {"tool": "look", "arguments": {}})


def without_gold(made: Row) -> None:
    """Checks alone decide, but where nothing is to be done."""
    for turn in made["turns"] if gold(made) else ():
        del turn["gold"]


def answered(made: Row) -> None:
    """What the agent says at the end is checked."""
    for turn in made["turns"]:
        codes = [call["arguments"]["colour"] for call in turn["gold"] if call["tool"] == "dim"]
        turn["answer"] = [f"shines {code.lower()}" for code in codes]


def restricted(made: Row) -> None:
    """Few tools, where few are needed."""
    made["tools"] = ["plug_in", "dim"] if gold(made) else ["look"]


def one_by_one(made: Row) -> None:
    """Tools vanish and appear from turn to turn."""
    if len(made["turns"]) == 2:
        made["turns"][0]["hidden"], made["turns"][1]["hidden"] = ["dim"], ["plug_in"]


def in_pairs(made: list[Row]) -> None:
    """Two views of each scenario, dealt out by hand."""
    for number, one in enumerate(made):
        one["scenario"] = f"pair-{number // 2}"
        one["split"] = ("train", "gate", "validation", "test")[number // 2 % 4]


def strange(files: dict[str, str]) -> None:
    """Names and texts in other letters."""
    for name in ("env.py", "tasks.jsonl", "slots.toml"):
        text = files[name].replace("plug_in", "einstoepseln").replace("socket", "dose")
        text = text.replace("warm", "café").replace("cold", "冷")
        files[name] = text.replace("Please", "🙏 Prière:").replace("lamp-", "лампа-")
    files["env.toml"] = files["env.toml"].replace('"lamp"', '"лампа"')


def windows(files: dict[str, str]) -> None:
    """Lines end as they do on Windows."""
    files.update({name: text.replace("\n", "\r\n") for name, text in files.items()})


WITHHELD = (
    put(
        "tools/dim.jinja",
        '{% extends "_tool.jinja" %}\n'
        "{% block description %}Sets how the lamp shines.{% endblock %}\n"
        "{% block parameter %}{{ rule.allowed }}{% endblock %}\n",
    ),
    put(
        "tools/plug_in.jinja",
        '{% extends "_tool.jinja" %}\n'
        "{% block description %}{{ prose }}{% endblock %}\n"
        "{% block parameter %}Which one.{% endblock %}\n"
        "{% block recovery_refused %}{{ error.message }} Free: {{ error.allowed }}{% endblock %}\n",
    ),
    put(
        "system.jinja",
        '{% extends "_system.jinja" %}\n{% block prompt %}{{ prose }} Be brief.{% endblock %}\n',
    ),
    drop("slots.toml"),
)

BAKERY: Files = {
    "env.toml": 'name = "bakery"\ndescription = "You take orders for cakes."\nlicence = "MIT"\n'
    'entry = "bakery.py"\n[limits]\nsteps = 4\n[slots]\nguidance = 100\n',
    "bakery.py": '''
"""Orders of cakes: arguments within arguments, and a state of many types."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel

from seal import Environment, GoldCall, Rule, Task, ToolError, UserTurn, tool

CAKES = {"almond cake": 11, "plum cake": 17, "cheese cake": 23}


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Cake(BaseModel):
    number: int
    size: Size = Size.SMALL
    text: str | None = None


@dataclass
class Book:
    orders: list[str] = field(default_factory=list)


@functools.cache
def price(number: int, size: Size) -> int:
    return number * (2 if size is Size.LARGE else 1)


class Bakery(Environment):
    """A bakery."""

    verify_outputs = "all"

    @classmethod
    def generate(cls, conventions, rng):
        names = rng.sample(sorted(CAKES), 2)
        size = rng.choice(["small", "large"])
        name = f"Ms {rng.choice('ABCDEFGH')}{rng.randint(1, 99)}"
        cakes = [
            {"number": CAKES[names[0]], "size": size, "text": None},
            {"number": CAKES[names[1]]},
        ]
        order = GoldCall(tool="order", arguments={"cakes": cakes, "pay": "cash", "whose": name})
        user = f"A {size} {names[0]} and a small {names[1]} for {name}, paid in cash."
        yield Task(
            turns=(UserTurn(user=user, gold=(order,)), UserTurn(user="And a taxi.", gold=())),
            state={"day": rng.randint(1, 28)},
        )

    def reset(self, task):
        self.book, self.kinds = Book(), {"plum", "almond", "cheese"}
        self.day, self.size = date(2024, 2, task.state["day"]), Size.LARGE
        self.queue = [random.Random(task.id).randint(1, 9)]

    @tool(cakes=Rule(format="the number of each cake"))
    def order(
        self, cakes: list[Cake], pay: Literal["cash", "card"], whose: str, note: str | None = None
    ) -> dict[str, int | str]:
        """Order cakes.

        Args:
            cakes: What is wanted.
            whose: The name that it is ordered for;
                first names do, too.
            note: Anything else.

        Returns:
            What it costs.
        """
        unknown = [cake.number for cake in cakes if cake.number not in CAKES.values()]
        if unknown:
            raise ToolError("no_cake", f"No cake {unknown[0]}; such as 17.", argument="cakes")
        if not cakes:
            raise ToolError("nothing", "Nothing is ordered.", argument="cakes", minimum=1)
        cost = sum(price(cake.number, cake.size) for cake in cakes)
        wanted = ", ".join(f"{cake.number} {cake.size.value}" for cake in cakes)
        self.book.orders.append(f"{whose}, {pay}: {wanted} ({note})")
        self.queue.append(cost)
        return {"cost": cost, "errors": 0, "due": str(self.day)}
'''.lstrip(),
}


def lamp(name: str, *changes) -> Case:
    return sound(name, LAMP, *changes)


CASES = (
    lamp("a lamp"),
    sound("a parcel desk", DESK),
    sound("what seal new writes", HOUSE),
    sound("another house of it", HOUSE, seed=7),
    sound("rooms", "rooms"),
    sound("rooms of another seed", "rooms", seed=3),
    sound("nested arguments, and a state of many types", BAKERY),
    lamp("no files of words", drop("tools/dim.jinja", "slots.toml")),
    lamp("no slots", *WITHHELD),
    lamp("tasks that have some of the tools", LOOK, every_row(restricted)),
    lamp("tools that vanish and appear", every_row(one_by_one)),
    lamp(
        "a state that is compared after every turn",
        world("    def reset", '    verify_state = "every_turn"\n\n    def reset'),
    ),
    lamp(
        "results that are compared",
        world("    def reset", '    verify_outputs = "all"\n\n    def reset'),
    ),
    lamp("answers that are compared", every_row(answered)),
    lamp("checks and no gold", every_row(without_gold)),
    lamp("a check that no task has", every_row(lambda made: made.update(checks=[]))),
    lamp("gold that looks before it acts", LOOK, every_row(looks_first)),
    lamp("two tasks a scenario, in splits of the author's", rows(in_pairs)),
    lamp("other letters", strange),
    lamp("ends of lines as on Windows", windows),
    lamp(
        "a world that changes the state it was given",
        world('list(task.state["sockets"])', 'task.state["sockets"]'),
        world(
            "self.plugged = socket", "self.sockets.remove(socket)\n        self.plugged = socket"
        ),
    ),
    lamp(
        "a refusal that lists what is free",
        world('"Not that one."', "f\"Take {' or '.join(self.sockets)}.\""),
    ),
    lamp(
        "a refusal with an example", world('"It cannot shine so."', '"It takes W3 and the like."')
    ),
    lamp(
        "a limit of the moment",
        in_reset("self._most = 120 + len(self.sockets) + int(task.id[-2:])"),
        world(
            "        self.level = level\n",
            "        if level > self._most:\n"
            '            raise ToolError("bright", "Too bright.", argument="level", '
            "maximum=self._most)\n        self.level = level\n",
        ),
    ),
    lamp(
        "wear that is drawn from the task's name",
        top("import random"),
        in_reset("self.wear = random.Random(task.id).sample(sorted(self.sockets), 2)"),
    ),
    lamp(
        "rules that nothing enforces",
        edit(
            "env.py",
            "        if colour not in COLOURS.values():\n"
            '            raise ToolError("no_colour", "It cannot shine so.", argument="colour")\n',
            "",
        ),
    ),
)
