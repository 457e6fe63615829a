"""Defects of words, contract and manifest: what does not fit together before anything is played."""

from seal.soundness import AGREE_CLAIM
from seal.soundness.catalogue import LABEL_CLAIM
from seal.soundness.leaks import CONDUCT_CLAIM, LIVE_CLAIM, WORDS_CLAIM
from seal.soundness.rendering import CLAIM as BLOCK_CLAIM
from tests.factories import TOOLS
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
    put,
    row,
    world,
)

DIM = "tools/dim.jinja"


def dim(old, new):
    return edit(DIM, old, new)


WORDS = (
    planted(
        "a parameter's block is misspelt",
        LAMP,
        AGREE_CLAIM,
        dim("parameter_colour", "parameter_color"),
    ),
    planted(
        "a recovery block is misspelt",
        LAMP,
        AGREE_CLAIM,
        dim("recovery_refused", "recovery_refusal"),
    ),
    planted(
        "a tool's file is misspelt",
        LAMP,
        AGREE_CLAIM,
        drop(DIM),
        put("tools/dimm.jinja", TOOLS["dim"]),
    ),
    planted(
        "words stand outside the blocks",
        LAMP,
        AGREE_CLAIM,
        dim('"_tool.jinja" %}\n', '"_tool.jinja" %}\nUse it sparingly.\n'),
    ),
    planted("a tool's file extends the system's", LAMP, AGREE_CLAIM, dim("_tool", "_system")),
    planted("a block is not closed", LAMP, AGREE_CLAIM, dim("{{ affordance }}{% endblock %}", "")),
    planted(
        "a block names what is not there",
        LAMP,
        AGREE_CLAIM,
        dim("constraint.colour", "constraints.colour"),
    ),
    planted(
        "a block names a convention that is not drawn",
        HOUSE,
        AGREE_CLAIM,
        put(
            "tools/serve.jinja",
            '{% extends "_tool.jinja" %}\n'
            "{% block description %}Serves. In {{ conventions.units }}.{% endblock %}\n",
        ),
    ),
    planted(
        "a block fails on one kind of error",
        LAMP,
        BLOCK_CLAIM,
        dim(
            "{% block recovery_refused %}",
            "{% block recovery_argument_value %}{{ error.message }}\n"
            "{% if error.allowed %}{{ error.permitted }}{% endif %}{% endblock %}\n"
            "{% block recovery_refused %}",
        ),
    ),
    planted(
        "a block fails on a long text",
        LAMP,
        BLOCK_CLAIM,
        dim(
            "{{ constraint.colour }}",
            "{% if constraint.colour|length > 9 %}{{ brief }}{% endif %}{{ constraint.colour }}",
        ),
    ),
    planted(
        "a slot is printed in two blocks",
        LAMP,
        BLOCK_CLAIM,
        dim("{{ affordance }}", "{{ affordance }} {{ constraint.colour }}"),
    ),
    planted(
        "a recovery says nothing without its slot",
        LAMP,
        BLOCK_CLAIM,
        dim("{{ error.message }} {{ recovery }}", "{{ recovery }}"),
    ),
    planted(
        "the system prompt is empty",
        LAMP,
        BLOCK_CLAIM,
        put(
            "system.jinja",
            '{% extends "_system.jinja" %}\n{% block prompt %}{{ guidance }}{% endblock %}\n',
        ),
    ),
    planted(
        "a text for no slot",
        LAMP,
        AGREE_CLAIM,
        put("slots.toml", '[dim.constraint]\ncolor = "The code."\n'),
    ),
    planted(
        "a placeholder that there is not",
        LAMP,
        AGREE_CLAIM,
        put("slots.toml", '[dim.constraint]\nlevel = "In {units}."\n'),
    ),
    planted(
        "a brace alone",
        LAMP,
        AGREE_CLAIM,
        put("slots.toml", '[dim.constraint]\nlevel = "In {unit, please."\n'),
    ),
    planted(
        "a text above its budget",
        LAMP,
        AGREE_CLAIM,
        put("slots.toml", f'[dim]\naffordance = "{"Sets the level. " * 20}"\n'),
    ),
    planted(
        "a docstring describes an argument by its old name",
        LAMP,
        AGREE_CLAIM,
        world(
            '"""Set how the lamp shines."""',
            '"""Set how the lamp shines.\n\n        Args:\n            brightness: In percent.\n'
            '            colour: Its code.\n        """',
        ),
    ),
)

CONTRACT = (
    planted(
        "a rule for no argument",
        LAMP,
        AGREE_CLAIM,
        world("colour=Rule(", "color=Rule("),
    ),
    planted(
        "a rule with no such key",
        LAMP,
        AGREE_CLAIM,
        world('unit="percent"', 'units="percent"'),
    ),
    planted(
        "a rule that reads no convention",
        HOUSE,
        AGREE_CLAIM,
        world('unit=d["unit"]', 'unit=d["units"]'),
    ),
    planted(
        "two rules exchanged",
        LAMP,
        AGREE_CLAIM,
        world("level=Rule(unit", "colour=Rule(unit"),
        world("colour=Rule(allowed", "level=Rule(allowed"),
    ),
    planted(
        "a minimum above the maximum",
        LAMP,
        AGREE_CLAIM,
        world("minimum=1, maximum=100", "minimum=100, maximum=1"),
    ),
    planted(
        "a maximum below what gold sends",
        LAMP,
        AGREE_CLAIM,
        world("maximum=100", "maximum=90"),
    ),
    planted(
        "allowed values without one that gold sends",
        DESK,
        AGREE_CLAIM,
        world("zone=Rule(allowed=ZONES)", 'zone=Rule(allowed=["Q4", "H7"])'),
    ),
    planted(
        "a prerequisite that is no tool",
        LAMP,
        AGREE_CLAIM,
        world('requires="plug_in"', 'requires="plug"'),
    ),
    planted(
        "an argument of a plain class",
        LAMP,
        AGREE_CLAIM,
        world("class Lamp(", "class Wall:\n    pass\n\n\nclass Lamp("),
        world("socket: str", "socket: Wall"),
    ),
    planted("an argument without a hint", LAMP, AGREE_CLAIM, world("socket: str", "socket")),
    planted("a list of nothing said", LAMP, AGREE_CLAIM, world("socket: str", "socket: list")),
    planted(
        "a tool that replaces a method",
        LAMP,
        AGREE_CLAIM,
        method(
            "    @tool(mutates=False)\n    def state(self) -> str:\n"
            '        """Say how the lamp is."""\n        return f"at {self.level}"\n'
        ),
    ),
    planted(
        "an option of the verifier misspelt",
        LAMP,
        AGREE_CLAIM,
        world("    def reset", '    verify_states = "every_turn"\n\n    def reset'),
    ),
    planted(
        "a refusal cites no rule",
        LAMP,
        CONDUCT_CLAIM,
        world("allowed=self.sockets", "choices=self.sockets"),
    ),
    planted(
        "a refusal cites no argument",
        LAMP,
        CONDUCT_CLAIM,
        world('argument="colour"', 'argument="color"'),
    ),
    planted(
        "a refusal requires no tool",
        LAMP,
        CONDUCT_CLAIM,
        world('"The lamp stays dark."', '"The lamp stays dark.", requires="plug"'),
    ),
    planted(
        "a refusal without a message",
        LAMP,
        CONDUCT_CLAIM,
        world('("no_power", "The lamp stays dark.")', '("no_power")'),
    ),
)

MANIFEST = (
    planted("no licence", LAMP, LABEL_CLAIM, edit("env.toml", 'licence = "CC0-1.0"\n', "")),
    planted(
        "a blank description",
        LAMP,
        LABEL_CLAIM,
        edit("env.toml", "A lamp in a house with too few sockets.", "  "),
    ),
    planted("a key misspelt", LAMP, AGREE_CLAIM, edit("env.toml", "licence", "license")),
    planted(
        "an entry that is no file",
        LAMP,
        AGREE_CLAIM,
        edit("env.toml", "name =", 'entry = "lamp.py"\nname ='),
    ),
)


def balcony(made: Row) -> None:
    """One task in which gold sends what no other one does."""
    made["state"]["sockets"][2] = "balcony"
    made["turns"][0]["user"] = "Plug the lamp in outside and let it shine warm, at full."
    gold(made)[0]["arguments"]["socket"] = "balcony"


def keep_answers(made: Row) -> None:
    """What gold sends, in the state, where the world finds it."""
    for call in gold(made):
        made["state"] |= call["arguments"]
    made["state"].setdefault("colour", "W3")
    made["state"].setdefault("socket", "W1")


LEAKS = (
    planted(
        "a seed text tells an answer",
        LAMP,
        WORDS_CLAIM,
        row(2, balcony),
        put("slots.toml", '[plug_in]\naffordance = "Try the balcony first."\n'),
    ),
    planted(
        "a tool's block tells an answer",
        LAMP,
        WORDS_CLAIM,
        row(2, balcony),
        put(
            "tools/plug_in.jinja",
            '{% extends "_tool.jinja" %}\n'
            "{% block parameter_socket %}Such as balcony. {{ constraint.socket }}{% endblock %}\n",
        ),
    ),
    planted(
        "the description tells an answer",
        LAMP,
        WORDS_CLAIM,
        row(2, balcony),
        edit("env.toml", "too few sockets.", "too few sockets, one on the balcony."),
    ),
    planted(
        "a docstring tells an answer",
        LAMP,
        WORDS_CLAIM,
        row(2, balcony),
        world('"""Plug the lamp in."""', '"""Plug the lamp in, such as on the balcony."""'),
    ),
    planted(
        "a docstring's argument tells an answer",
        LAMP,
        WORDS_CLAIM,
        row(2, balcony),
        world(
            '"""Plug the lamp in."""',
            '"""Plug the lamp in.\n\n        Args:\n            socket: The balcony.\n        """',
        ),
    ),
    planted(
        "an error's form is the answer",
        LAMP,
        LIVE_CLAIM,
        every_row(keep_answers),
        in_reset('self._right = task.state["socket"]'),
        world("allowed=self.sockets", "format=self._right"),
    ),
    planted(
        "an error allows the answer alone",
        LAMP,
        LIVE_CLAIM,
        every_row(keep_answers),
        in_reset('self._right = task.state["socket"]'),
        world("allowed=self.sockets", "allowed=[self._right]"),
    ),
    planted(
        "an error's message tells the answer",
        LAMP,
        LIVE_CLAIM,
        every_row(keep_answers),
        in_reset('self._right = task.state["colour"]'),
        world('"It cannot shine so."', 'f"They want {self._right}."'),
    ),
)
CASES = (*WORDS, *CONTRACT, *MANIFEST, *LEAKS)
