"""Defects of tasks: the file, the generator, gold, and tasks that are solved without work."""

from seal.soundness import AGREE_CLAIM, TASKS_CLAIM
from seal.soundness.catalogue import REPEAT_CLAIM, SEED_CLAIM, SPLIT_CLAIM
from seal.soundness.gold import GOLD_CLAIM, TAMPERED_CLAIM
from seal.soundness.lazy import CLAIM as LAZY_CLAIM
from seal.soundness.worlds import PROCESS_CLAIM
from tests.soundness.planted import (
    DESK,
    HOUSE,
    LAMP,
    Row,
    drop,
    edit,
    every_row,
    gold,
    in_reset,
    method,
    planted,
    row,
    rows,
    world,
)

FIRST = '{"id": "lamp-00", '
ORDER = "rng.randint(1000, 9999)"


def above(text):
    """Something above the class of `seal new`."""
    return world("class World(", f"{text}\n\n\nclass World(")


def contradict(made: list[Row]) -> None:
    """One more task, which says what the first one says and wants less."""
    (turn,) = made[0]["turns"]
    made[0]["checks"] = []
    less = {"turns": [{**turn, "gold": turn["gold"][:1]}]}
    made.append({**made[0], "id": "lamp-24", "scenario": "lamp-24", **less})


def first_call(change):
    """A change of the first gold call of one task."""
    return row(4, lambda made: change(gold(made)[0]))


FILE = (
    planted(
        "a comma too many",
        LAMP,
        AGREE_CLAIM,
        edit("tasks.jsonl", FIRST, '{"id": "lamp-00",, '),
    ),
    planted(
        "a task's key misspelt",
        LAMP,
        AGREE_CLAIM,
        row(1, lambda made: made.update(turn=made.pop("turns"))),
    ),
    planted(
        "two tasks of one id",
        LAMP,
        AGREE_CLAIM,
        row(3, lambda made: made.update(id="lamp-02")),
    ),
    planted(
        "tasks in an old encoding",
        LAMP,
        AGREE_CLAIM,
        edit("tasks.jsonl", FIRST, '{"id": "l\udce4mp", '),
    ),
    planted(
        "a scenario in two splits",
        LAMP,
        SPLIT_CLAIM,
        rows(
            lambda made: [
                one.update(split=("train", "gate", "validation", "test")[number % 4])
                for number, one in enumerate(made)
            ]
        ),
        row(3, lambda made: made.update(scenario="lamp-05")),
    ),
    planted(
        "all tasks in one split",
        LAMP,
        SPLIT_CLAIM,
        every_row(lambda made: made.update(split="train")),
    ),
    planted(
        "a task copied and forgotten",
        LAMP,
        REPEAT_CLAIM,
        rows(lambda made: made.append(made[1] | {"id": "lamp-24", "scenario": "lamp-24"})),
    ),
    planted(
        "a task copied, with another gold",
        LAMP,
        REPEAT_CLAIM,
        rows(contradict),
    ),
    planted("neither tasks nor a generator", LAMP, GOLD_CLAIM, drop("tasks.jsonl")),
)

GENERATOR = (
    planted("a generator that draws too little", HOUSE, REPEAT_CLAIM, world(ORDER, "7")),
    planted(
        "an f forgotten before the user's text",
        HOUSE,
        REPEAT_CLAIM,
        world('user=f"Order', 'user="Order'),
    ),
    planted(
        "a generator with a random of its own",
        HOUSE,
        SEED_CLAIM,
        above("import random"),
        world(ORDER, "random.randint(1000, 9999)"),
    ),
    planted(
        "a generator that looks at the clock",
        HOUSE,
        SEED_CLAIM,
        above("import time"),
        world(ORDER, "time.time_ns() % 9000"),
    ),
    planted(
        "a generator that counts",
        HOUSE,
        SEED_CLAIM,
        above("from itertools import count\n\nORDERS = count(1000)"),
        world(ORDER, "next(ORDERS)"),
    ),
    planted(
        "a generator that looks at the date",
        HOUSE,
        PROCESS_CLAIM,
        above("from datetime import date"),
        world(ORDER, "rng.randint(1000, 9999) + date.today().toordinal()"),
    ),
    planted(
        "a generator that chooses from a set",
        HOUSE,
        PROCESS_CLAIM,
        world("rng.randint(1, 9)", 'int(rng.choice(list(set("123456789"))))'),
    ),
    planted(
        "conventions drawn from a set",
        HOUSE,
        PROCESS_CLAIM,
        world('rng.sample("BCDFGHJK", 3)', 'list(set("BCDFGHJK"))[:3]'),
    ),
    planted(
        "conventions that are not returned",
        HOUSE,
        AGREE_CLAIM,
        world('return {"codes"', 'drawn = {"codes"'),
    ),
    planted(
        "a generator that returns its task",
        HOUSE,
        AGREE_CLAIM,
        world("yield Task", "return Task"),
    ),
    planted(
        "a generator that fails now and then",
        HOUSE,
        TASKS_CLAIM,
        world("rng.randint(1, 9)", "rng.sample(range(rng.randint(3, 90)), 4)[0] + 1"),
    ),
    planted(
        "gold that is no sequence",
        HOUSE,
        TASKS_CLAIM,
        world("gold=(gold,)", "gold=gold"),
    ),
    planted(
        "generated gold with an argument misspelt",
        HOUSE,
        AGREE_CLAIM,
        world('{"order": order', '{"ordre": order'),
    ),
)

GOLD = (
    planted(
        "gold that is refused",
        LAMP,
        GOLD_CLAIM,
        first_call(lambda call: call["arguments"].update(socket="S9")),
    ),
    planted(
        "gold of another type",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: gold(made)[1]["arguments"].update(level="50")),
    ),
    planted(
        "gold without an argument",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: gold(made)[1].update(arguments={"level": 50}, as_said={})),
    ),
    planted(
        "gold with an argument misspelt",
        LAMP,
        AGREE_CLAIM,
        first_call(lambda call: call.update(arguments={"sokcet": "N4"})),
    ),
    planted(
        "gold with a tool misspelt",
        LAMP,
        AGREE_CLAIM,
        first_call(lambda call: call.update(tool="plugin")),
    ),
    planted(
        "gold in the wrong order",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: made["turns"][0]["gold"].reverse()),
    ),
    planted(
        "gold with a tool hidden in its turn",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: made["turns"][0].update(hidden=["dim"])),
    ),
    planted(
        "gold with a tool that the task does not have",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: made.update(tools=["plug_in"])),
    ),
    planted(
        "gold that fails a check",
        LAMP,
        GOLD_CLAIM,
        row(7, lambda made: made.update(checks=["is_lit"])),
    ),
    planted(
        "a check misspelt",
        LAMP,
        AGREE_CLAIM,
        row(4, lambda made: made.update(checks=["is_light"])),
    ),
    planted("a check without its mark", LAMP, AGREE_CLAIM, world("    @check\n", "")),
    planted(
        "a user's form of an argument that gold does not send",
        LAMP,
        AGREE_CLAIM,
        first_call(lambda call: call.update(as_said={"level": "half"})),
    ),
    planted(
        "a state without what reset reads",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: made.update(state={})),
    ),
    planted(
        "a state that hides a tool",
        LAMP,
        AGREE_CLAIM,
        in_reset("self.dim = 0"),
    ),
    planted(
        "a reset that refuses",
        LAMP,
        GOLD_CLAIM,
        in_reset('if "N4" in self.sockets:\n            raise ToolError("old", "Too old.")'),
    ),
    planted(
        "a limit that leaves no step for the answer",
        LAMP,
        GOLD_CLAIM,
        edit("env.toml", 'licence = "CC0-1.0"\n', 'licence = "CC0-1.0"\n[limits]\nsteps = 1\n'),
    ),
    # Nothing but the meaning of the words says so: nobody can be asked.
    planted(
        "gold that is not what the user says",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: gold(made)[1]["arguments"].update(level=25)),
    ),
)


def switched_on(made: Row) -> None:
    """A task that one call without arguments solves."""
    made["turns"] = [
        {
            "user": f"Let there be light, {made['id']}.",
            "gold": [{"tool": "switch_on", "arguments": {}}],
        }
    ]
    made["checks"] = []


def without_gold(made: Row) -> None:
    """A task that its checks alone decide, but for those in which nothing is to be done."""
    for turn in made["turns"] if gold(made) else ():
        del turn["gold"]


def noted(made: Row) -> None:
    """A note is to be taken, too."""
    if made["turns"][0]["gold"]:
        made["turns"][0]["gold"] += [{"tool": "note", "arguments": {"text": made["id"]}}]


def note(kept_in: str) -> str:
    """A tool that keeps a text in some attribute."""
    return (
        "    @tool\n    def note(self, text: str) -> str:\n        "
        f'"""Note something."""\n        self.{kept_in}.append(text)\n        return "noted"\n'
    )


UNCHECKED = every_row(lambda made: made.update(checks=[]))
LAZY = (
    planted(
        "a state that is all private",
        LAMP,
        (LAZY_CLAIM, TAMPERED_CLAIM),
        UNCHECKED,
        lambda files: files.update(
            {
                "env.py": files["env.py"]
                .replace("self.plugged", "self._plugged")
                .replace("self.level", "self._level")
                .replace("self.colour", "self._colour")
            }
        ),
    ),
    planted(
        "a check that always holds, and no gold",
        LAMP,
        LAZY_CLAIM,
        every_row(without_gold),
        world("return self.level > 0", "return self.level >= 0"),
    ),
    planted(
        "a tool that takes nothing and solves all",
        LAMP,
        LAZY_CLAIM,
        every_row(switched_on),
        method(
            '    @tool\n    def switch_on(self) -> str:\n        """Switch the lamp on."""\n'
            '        self.level = 100\n        return "on"\n'
        ),
    ),
    planted(
        "tasks in which nothing is to be done",
        LAMP,
        LAZY_CLAIM,
        UNCHECKED,
        every_row(lambda made: [turn.update(gold=[]) for turn in made["turns"]]),
    ),
    planted(
        "an effect that is kept in private",
        LAMP,
        TAMPERED_CLAIM,
        every_row(noted),
        in_reset("self._notes = []"),
        method(note("_notes")),
    ),
    planted(
        "an effect that is kept in the class",
        LAMP,
        TAMPERED_CLAIM,
        every_row(noted),
        method(f"    notes = []\n\n{note('notes')}"),
    ),
    planted(
        "a tool that forgets one of its arguments",
        LAMP,
        TAMPERED_CLAIM,
        world("        self.colour = colour\n", ""),
    ),
    planted(
        "a tool that keeps what it was sent in private",
        DESK,
        TAMPERED_CLAIM,
        world("self.sent.append([tag, zone, pickup, mass])", "self._sent = [tag, zone, pickup]"),
    ),
)
CASES = (*FILE, *GENERATOR, *GOLD, *LAZY)
