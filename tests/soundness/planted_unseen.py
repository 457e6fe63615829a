"""Defects that were thought of when the checks stood, to see what they miss.

Of 13 that were tried before any check was added for them, 9 were missed. Since then checks were
added, for all but those in which the meaning of words decides.
"""

import json

from seal.soundness import AGREE_CLAIM
from seal.soundness.gold import GOLD_CLAIM
from seal.soundness.leaks import CONDUCT_CLAIM
from tests.soundness.planted import (
    DESK,
    LAMP,
    Row,
    edit,
    every_row,
    gold,
    in_reset,
    method,
    planted,
    row,
    top,
    world,
)

FIRST = '{"id": "lamp-00", '
REFUSAL = 'raise ToolError("taken", "Not that one.", argument="socket", allowed=self.sockets)'
DIMS = "        self.level = level\n"
LIMITS = 'licence = "CC0-1.0"\n[limits]\ncall_chars = 100\n'


def as_openai_has_it(made: Row) -> None:
    """Arguments as a text."""
    for call in gold(made):
        call["arguments"] = json.dumps(call["arguments"])


def noted_at_length(made: Row) -> None:
    """A long note is to be taken, too."""
    if gold(made):
        text = f"{made['id']}: " + "it has to be bright, but not too bright, " * 3
        made["turns"][0]["gold"] += [{"tool": "note", "arguments": {"text": text}}]


def one_array(files: dict[str, str]) -> None:
    """All tasks in one JSON array."""
    rows = [json.loads(line) for line in files["tasks.jsonl"].splitlines()]
    files["tasks.jsonl"] = json.dumps(rows, indent=2)


CASES = (
    planted(
        "a literal without what gold sends",
        LAMP,
        (GOLD_CLAIM, AGREE_CLAIM),
        top("from typing import Literal"),
        world("colour: str)", 'colour: Literal["W3", "C8"])'),
    ),
    planted(
        "an attribute that reset forgets",
        LAMP,
        GOLD_CLAIM,
        world(DIMS, f"{DIMS}        self.history.append(level)\n"),
    ),
    planted(
        "a task that nothing decides",
        LAMP,
        GOLD_CLAIM,
        row(7, lambda made: made["turns"][0].pop("gold")),
    ),
    planted(
        "an answer that the world contradicts",
        LAMP,
        GOLD_CLAIM,
        row(4, lambda made: made["turns"][0].update(answer=["shines C9"])),
    ),
    planted(
        "turns in the wrong order",
        LAMP,
        GOLD_CLAIM,
        row(5, lambda made: made["turns"].reverse()),
    ),
    planted(
        "an argument longer than a call may be",
        LAMP,
        GOLD_CLAIM,
        edit("env.toml", 'licence = "CC0-1.0"\n', LIMITS),
        every_row(noted_at_length),
        in_reset("self.notes = []"),
        method(
            '    @tool\n    def note(self, text: str) -> str:\n        """Note something."""\n'
            '        self.notes.append(text)\n        return "noted"\n'
        ),
    ),
    planted(
        "a prerequisite that gold does without",
        LAMP,
        AGREE_CLAIM,
        world("    @tool\n    def plug_in", '    @tool(requires="dim")\n    def plug_in'),
    ),
    planted(
        "an allowed value that the tool refuses",
        LAMP,
        CONDUCT_CLAIM,
        world("Rule(allowed=COLOURS)", 'Rule(allowed={**COLOURS, "red": "R5"})'),
    ),
    planted(
        "a form by a wrong example",
        DESK,
        AGREE_CLAIM,
        world('"1/am" for monday morning', '"am/1" for monday morning'),
    ),
    planted(
        "a user who says nothing",
        LAMP,
        (AGREE_CLAIM, GOLD_CLAIM),
        row(4, lambda made: made["turns"][0].update(user=" ")),
    ),
    planted(
        "a user's text with a gap",
        LAMP,
        (AGREE_CLAIM, GOLD_CLAIM),
        row(4, lambda made: made["turns"][0].update(user="Use {socket}, warm, a half.")),
    ),
    planted(
        "a tool that swallows its errors",
        LAMP,
        CONDUCT_CLAIM,
        world(REFUSAL, 'return ""'),
    ),
    planted(
        "a refusal that is None",
        LAMP,
        CONDUCT_CLAIM,
        world(REFUSAL, "return None"),
    ),
    planted(
        "a check that waits for ever",
        LAMP,
        CONDUCT_CLAIM,
        world(
            "return self.level > 0", "while not self.level:\n            pass\n        return True"
        ),
    ),
    planted(
        "a tool that calls itself without end",
        LAMP,
        CONDUCT_CLAIM,
        world(DIMS, f"        if level > 100:\n            return self.dim(level, colour)\n{DIMS}"),
    ),
    planted(
        "a tool that waits for nobody",
        LAMP,
        AGREE_CLAIM,
        world("    def plug_in", "    async def plug_in"),
    ),
    planted(
        "a tool that yields its result",
        LAMP,
        AGREE_CLAIM,
        world('return "plugged in"', 'yield "plugged in"'),
    ),
    planted(
        "a tool without self", LAMP, AGREE_CLAIM, world("(self, socket: str)", "(socket: str)")
    ),
    planted(
        "a name without quotes",
        LAMP,
        AGREE_CLAIM,
        edit("env.toml", '"lamp"', "lamp"),
    ),
    planted("tasks in one array", LAMP, AGREE_CLAIM, one_array),
    planted("arguments that are a text", LAMP, AGREE_CLAIM, row(4, as_openai_has_it)),
    planted(
        "a split that there is not",
        LAMP,
        AGREE_CLAIM,
        row(4, lambda made: made.update(split="valid")),
    ),
    planted(
        "a read that counts how often it was done",
        LAMP,
        CONDUCT_CLAIM,
        in_reset("self.looks = 0"),
        method(
            "    @tool(mutates=False)\n    def look(self) -> str:\n"
            '        """Look at the lamp."""\n        self.looks += 1\n'
            '        return f"at {self.level}"\n'
        ),
    ),
    planted(
        "a refusal that comes after the change",
        LAMP,
        CONDUCT_CLAIM,
        world(
            "        if socket not in self.sockets:",
            "        self.plugged = socket\n        if socket not in self.sockets:",
        ),
    ),
)
