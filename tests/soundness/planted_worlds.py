"""Defects that show when a world is played: it differs, it crashes, its checks do as they like."""

from dataclasses import replace

from seal.soundness import AGREE_CLAIM
from seal.soundness.gold import GOLD_CLAIM
from seal.soundness.leaks import CONDUCT_CLAIM
from seal.soundness.verifier import CLAIM as VERIFIER_CLAIM
from seal.soundness.verifier import LOOK_CLAIM
from seal.soundness.worlds import APART_CLAIM, PROCESS_CLAIM, SAME_CLAIM
from tests.soundness.planted import (
    DESK,
    HOUSE,
    LAMP,
    in_reset,
    method,
    planted,
    put,
    top,
    world,
)

PLUGGED = 'return "plugged in"'
SHINES = 'return f"shines {colour}"'
DIMS = "        self.level = level\n"
REFUSAL = 'raise ToolError("taken", "Not that one.", argument="socket", allowed=self.sockets)'
TWICE = (SAME_CLAIM, APART_CLAIM)
ANYWHERE = (*TWICE, PROCESS_CLAIM)


def look(body, hint="str"):
    """A read more, which gold does not call."""
    return method(
        f"    @tool(mutates=False)\n    def look(self) -> {hint}:\n"
        f'        """Look at the lamp."""\n        {body}\n'
    )


MODULE = (
    planted(
        "a bracket not closed", LAMP, AGREE_CLAIM, world("list(task.state", "list((task.state")
    ),
    planted("a package that is not there", LAMP, AGREE_CLAIM, top("import lampshades")),
    planted("a name not imported", LAMP, AGREE_CLAIM, world("import Rule, Task", "import Task")),
    planted(
        "two worlds in one file",
        LAMP,
        AGREE_CLAIM,
        world("class Lamp(", "class House(Environment):\n    pass\n\n\nclass Lamp("),
    ),
    planted(
        "a file that is looked for in the working folder",
        LAMP,
        AGREE_CLAIM,
        put("walls.txt", "NEW"),
        top('WALLS = open("walls.txt", encoding="utf-8").read()'),
    ),
    replace(
        planted(
            "a file that is looked for in the working folder, and found there",
            LAMP,
            PROCESS_CLAIM,
            put("walls.txt", "NEW"),
            top("from pathlib import Path"),
            in_reset('self._walls = Path("walls.txt").read_text("utf-8")'),
        ),
        inside=True,
    ),
)

WORLDS = (
    planted(
        "a serial number drawn in reset",
        LAMP,
        TWICE,
        top("from uuid import uuid4"),
        in_reset("self.serial = str(uuid4())"),
    ),
    planted(
        "the time in a result",
        LAMP,
        TWICE,
        top("from datetime import datetime"),
        world(PLUGGED, 'return f"plugged in at {datetime.now()}"'),
    ),
    planted(
        "the date in the state",
        LAMP,
        PROCESS_CLAIM,
        top("from datetime import date"),
        in_reset("self.today = date.today().isoformat()"),
    ),
    # The other process is of another time zone; nothing tells it another day in Greenwich.
    planted(
        "the date in Greenwich in the state",
        LAMP,
        PROCESS_CLAIM,
        top("from datetime import UTC, datetime"),
        in_reset("self.today = datetime.now(UTC).date().isoformat()"),
    ),
    planted(
        "luck without a seed",
        LAMP,
        TWICE,
        top("import random"),
        world(PLUGGED, 'return random.choice(["plugged in", "it sits tight", "done"])'),
    ),
    planted(
        "a module's list that grows",
        LAMP,
        TWICE,
        top("USED = []"),
        world(PLUGGED, 'USED.append(socket)\n        return f"plugged in, number {len(USED)}"'),
    ),
    planted(
        "a module's counter",
        LAMP,
        TWICE,
        top("from itertools import count\n\nNUMBERS = count(1)"),
        world(PLUGGED, 'return f"plugged in, number {next(NUMBERS)}"'),
    ),
    planted(
        "a module's table taken for the state",
        LAMP,
        TWICE,
        top("LEVELS = {}"),
        in_reset("self.levels = LEVELS"),
        world(DIMS, f"{DIMS}        self.levels[self.plugged] = level\n"),
    ),
    planted(
        "a list in the class",
        LAMP,
        TWICE,
        world("    def reset", "    used = []\n\n    def reset"),
        world(
            PLUGGED, 'self.used.append(socket)\n        return f"plugged in, {len(self.used)} used"'
        ),
    ),
    planted(
        "a list that worlds share and reset clears",
        LAMP,
        APART_CLAIM,
        top("USED = []"),
        in_reset("USED.clear()"),
        world(PLUGGED, 'USED.append(socket)\n        return f"plugged in, number {len(USED)}"'),
    ),
    planted(
        "a default that is changed",
        LAMP,
        TWICE,
        world("colour: str)", "colour: str, log: list[str] = [])"),
        world(SHINES, 'log.append(colour)\n        return f"shines {log}"'),
    ),
    planted(
        "conventions that are changed",
        HOUSE,
        TWICE,
        world(
            "self.served = {}", 'self.menu = self.conventions["codes"]\n        self.served = {}'
        ),
        world('return "served"', 'self.menu["the last"] = drink\n        return "served"'),
    ),
    planted(
        "a sale that outlives its world",
        DESK,
        (*TWICE, GOLD_CLAIM),
        world("class Parcels(", "SENT = set()\n\n\nclass Parcels("),
        world(
            "        self.shelf.remove(tag)\n        self.sent",
            "        if tag in SENT:\n"
            '            raise ToolError("gone", "It went before.", argument="tag")\n'
            "        SENT.add(tag)\n"
            "        self.shelf.remove(tag)\n        self.sent",
        ),
    ),
    planted(
        "a result in the order of a set",
        LAMP,
        PROCESS_CLAIM,
        world(PLUGGED, 'return f"plugged in, of {set(self.sockets)}"'),
    ),
    planted(
        "a number from hash()",
        LAMP,
        PROCESS_CLAIM,
        in_reset("self.ticket = hash(task.id) % 10_000"),
    ),
    planted(
        "a seed from hash()",
        LAMP,
        PROCESS_CLAIM,
        top("import random"),
        in_reset("self.wear = random.Random(hash(task.id)).randint(1, 99)"),
    ),
    planted(
        "an address in a result",
        LAMP,
        ANYWHERE,
        world(PLUGGED, 'return f"plugged into {self}"'),
    ),
    planted(
        "an iterator in the state",
        LAMP,
        ANYWHERE,
        in_reset("self.waiting = iter(self.sockets)"),
    ),
)

VERIFIER = (
    planted(
        "a check that remembers",
        LAMP,
        VERIFIER_CLAIM,
        top("SEEN = []"),
        world("return self.level > 0", "SEEN.append(1)\n        return len(SEEN) % 3 > 0"),
    ),
    planted(
        "a check that tosses a coin",
        LAMP,
        VERIFIER_CLAIM,
        top("import random"),
        world("return self.level > 0", "return self.level > 0 or random.random() < 0.5"),
    ),
    planted(
        "a check that fails where nothing was done",
        LAMP,
        VERIFIER_CLAIM,
        in_reset("self.levels = []"),
        world(DIMS, f"{DIMS}        self.levels.append(level)\n"),
        world("return self.level > 0", "return self.levels[-1] > 0"),
    ),
    planted(
        "a check that changes the world",
        LAMP,
        LOOK_CLAIM,
        world("return self.level > 0", "self.level += 1\n        return self.level > 1"),
    ),
    planted(
        "a read that changes the world",
        DESK,
        CONDUCT_CLAIM,
        world("self._stamped = set()", "self.stamped = set()"),
        world("self._stamped.add", "self.stamped.add"),
        world("tag not in self._stamped", "tag not in self.stamped"),
    ),
)

TOOLS = (
    planted(
        "a key that is not there",
        LAMP,
        CONDUCT_CLAIM,
        world("if colour not in COLOURS.values():", 'if not {"W3": 1, "C9": 1}[colour]:'),
    ),
    planted(
        "a division by zero",
        LAMP,
        CONDUCT_CLAIM,
        world(DIMS, "        self.level = 100 * level // level\n"),
    ),
    planted(
        "an option that is None",
        LAMP,
        CONDUCT_CLAIM,
        world("colour: str)", "colour: str, fade: int | None = 0)"),
        world(DIMS, "        self.level = level + 0 * fade\n"),
    ),
    planted(
        "a text that is empty",
        LAMP,
        CONDUCT_CLAIM,
        world("if socket not in", 'if socket[0] not in "NEWS" or socket not in'),
    ),
    planted(
        "a text that is no number",
        LAMP,
        CONDUCT_CLAIM,
        world("if socket not in", "if int(socket[1:]) > 9 or socket not in"),
    ),
    planted(
        "another error than a refusal",
        LAMP,
        CONDUCT_CLAIM,
        world(REFUSAL, 'raise ValueError(f"no socket {socket}")'),
    ),
    planted(
        "a refusal that ends the program",
        LAMP,
        CONDUCT_CLAIM,
        world(REFUSAL, 'raise SystemExit(f"no socket {socket}")'),
    ),
    planted(
        "a refusal that is a result",
        LAMP,
        CONDUCT_CLAIM,
        world(REFUSAL, 'return f"Error: no socket {socket}"'),
    ),
    planted(
        "a refusal in a dict",
        LAMP,
        CONDUCT_CLAIM,
        world("socket: str) -> str", "socket: str) -> dict[str, str]"),
        world(REFUSAL, 'return {"error": f"no socket {socket}"}'),
        world(PLUGGED, 'return {"status": "plugged in"}'),
    ),
    planted(
        "a loop that does not end for odd values",
        LAMP,
        CONDUCT_CLAIM,
        world(DIMS, f"{DIMS}        while level:\n            level -= 5\n"),
    ),
    planted(
        "a result that is no JSON",
        LAMP,
        CONDUCT_CLAIM,
        look('return {("N", 1): self.level}', "dict[tuple[str, int], int]"),
    ),
    planted(
        "a result with half a letter",
        LAMP,
        CONDUCT_CLAIM,
        look('return b"caf\\xe9".decode("utf-8", "surrogateescape")'),
    ),
    planted(
        "a result that contains itself",
        LAMP,
        CONDUCT_CLAIM,
        look("seen = []\n        seen.append(seen)\n        return seen", "list[str]"),
    ),
)
CASES = (*MODULE, *WORLDS, *VERIFIER, *TOOLS)
