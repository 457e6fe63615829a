"""An author's files: what is wrong in them is said with its line, and blocks render alone."""

import pytest

from seal.envs import load_environment
from seal.errors import TemplateError
from seal.types import CallError
from tests.factories import TOML, write_environment

WORLD = '''
from seal.envs import Environment, tool
from seal.types import Task


class House(Environment):
    def reset(self, task: Task) -> None:
        self.booked = ""

    @tool
    def book_room(self, day: str, hour: str, room: str) -> str:
        """Imported words.

        Args:
            day: The imported day.
        """
        self.booked = room
        return "booked"
'''
TASK = {
    "id": "a",
    "scenario": "a",
    "turns": [
        {
            "user": "Book it.",
            "gold": [
                {"tool": "book_room", "arguments": {"day": "MO", "hour": "9", "room": "R7"}},
            ],
        }
    ],
}
EXTENDS = '{% extends "_tool.jinja" %}\n'


def house(folder, tool="", *, system="", name="book_room"):
    return load_environment(
        write_environment(
            folder / "house",
            toml=TOML,
            world=WORLD,
            tools={name: tool},
            system=system,
            slots="",
            tasks=[TASK],
        )
    )


def complaint(folder, tool="", **more):
    with pytest.raises(TemplateError) as caught:
        house(folder, tool, **more)
    return str(caught.value).replace(f"{folder}/house/", "")


def described(template, argument):
    tool = template.renderer.tools(template.original)["book_room"]
    return tool.parameters["properties"][argument].get("description")


def refused(template, **more):
    error = CallError(kind="refused", code="taken", message="It is taken.", **more)
    return template.renderer.recovery("book_room", error, template.original)[0]


def test_a_misspelt_parameter_is_named_with_its_line_the_parameters_and_a_guess(tmp_path):
    words = (
        f"{EXTENDS}{{% block description %}}Book.{{% endblock %}}\n"
        "{% block parameter_dya %}Day.{% endblock %}"
    )
    assert complaint(tmp_path, words) == (
        "tools/book_room.jinja:3: no parameter 'dya' in book_room.\n"
        "Parameters: day, hour, room.\n"
        "Did you mean 'day'?"
    )


def test_a_misspelt_block_is_named_with_its_line_the_blocks_and_a_guess(tmp_path):
    said = complaint(tmp_path, f"{EXTENDS}\n{{% block descripton %}}x{{% endblock %}}")
    assert said.startswith("tools/book_room.jinja:3: no block 'descripton'.\nBlocks: description,")
    assert said.endswith("Did you mean 'description'?")


def test_a_misspelt_block_inside_another_is_named_too(tmp_path):
    inner = "{% block parameter_dya %}x{% endblock %}"
    words = f"{EXTENDS}{{% block description %}}\n{inner}{{% endblock %}}"
    assert "tools/book_room.jinja:3: no parameter 'dya'" in complaint(tmp_path, words)


def test_a_file_of_no_tool_is_named_with_a_guess(tmp_path):
    said = complaint(tmp_path, EXTENDS, name="book_rom")
    assert said == "tools/book_rom.jinja: no tool 'book_rom'.\nTools: book_room.\n" + (
        "Did you mean 'book_room'?"
    )


def test_a_recovery_of_the_system_is_no_block_of_a_tool(tmp_path):
    words = f"{EXTENDS}{{% block recovery_unknown_tool %}}x{{% endblock %}}"
    assert "no block 'recovery_unknown_tool'" in complaint(tmp_path, words)


def test_a_block_of_a_tool_is_none_of_the_system(tmp_path):
    words = '{% extends "_system.jinja" %}\n{% block description %}x{% endblock %}'
    assert "system.jinja:2: no block 'description'" in complaint(tmp_path, system=words)


@pytest.mark.parametrize(
    ("stray", "line", "what"),
    [
        ("\n\nBook a room.\n", 4, "text outside a block: 'Book a room.'"),
        ("{{ affordance }}", 2, "text outside a block"),
        ("\n{% set x = 1 %}", 3, "assign outside a block"),
        ("{% macro m() %}x{% endmacro %}", 2, "macro outside a block"),
        ("{% if true %}x{% endif %}", 2, "if outside a block"),
    ],
)
def test_what_would_silently_vanish_is_an_error_with_its_line(tmp_path, stray, line, what):
    said = complaint(tmp_path, EXTENDS + stray)
    assert said.startswith(f"tools/book_room.jinja:{line}: {what}")


def test_comments_and_blank_lines_may_stand_outside_blocks(tmp_path):
    template = house(tmp_path, f"{EXTENDS}\n{{# Why. #}}\n\n")
    assert template.renderer.tools(template.original)["book_room"].description == "Imported words."


@pytest.mark.parametrize(
    "first",
    ["", "{% block description %}x{% endblock %}", '{% extends "_system.jinja" %}', "\n" + EXTENDS],
)
def test_the_first_line_is_exactly_the_extends(tmp_path, first):
    said = complaint(tmp_path, f"{first}\n{{% block parameter %}}x{{% endblock %}}")
    assert said == (
        'tools/book_room.jinja:1: the first line must be exactly {% extends "_tool.jinja" %}'
    )


def test_all_problems_of_all_files_are_said_at_once(tmp_path):
    words = (
        f"{EXTENDS}stray\n{{% block descripton %}}x{{% endblock %}}\n"
        "{% block parameter_x %}x{% endblock %}"
    )
    said = complaint(tmp_path, words, system="no extends")
    assert [line for line in said.splitlines() if ".jinja:" in line] == [
        "tools/book_room.jinja:2: text outside a block: 'stray'.",
        "tools/book_room.jinja:3: no block 'descripton'.",
        "tools/book_room.jinja:4: no parameter 'x' in book_room.",
        'system.jinja:1: the first line must be exactly {% extends "_system.jinja" %}',
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("\n{{ afordance }}", "'afordance' is undefined"),
        ("\n{{ constraint.dya }}", "dya"),
        ("\n{{ constraint['dya'] }}", "dya"),
        ("\n{{ constraint.items }}", "items"),
        ("\n{{ constraint.keys() }}", "keys"),
        ("\n{{ 1 / 0 }}", "division by zero"),
        ("\n{{ ''.__class__.__mro__ }}", "unsafe"),
        ("\n{{ constraint.__class__ }}", "unsafe"),
        ("\n{{ conventions.update({'a': 1}) }}", "unsafe"),
        ("\n{{ affordance | uper }}", "No filter named 'uper'"),
        ("\n{{ affordance is shouted }}", "No test named 'shouted'"),
        ("\n{{ affordance", "end of print statement"),
        ("\n{% include 'nowhere.jinja' %}", "nowhere.jinja"),
    ],
)
def test_an_error_in_a_block_is_said_with_its_line(tmp_path, body, message):
    said = complaint(tmp_path, f"{EXTENDS}{{% block description %}}{body}{{% endblock %}}")
    assert said.startswith("tools/book_room.jinja:3:")
    assert message in said
    assert ".." not in said.splitlines()[0]


def test_two_blocks_of_one_name_are_an_error_with_its_line(tmp_path):
    block = "{% block description %}x{% endblock %}\n"
    assert complaint(tmp_path, EXTENDS + block + block).startswith("tools/book_room.jinja:3:")


def test_names_that_a_block_may_use_are_said_with_a_wrong_one(tmp_path):
    words = f"{EXTENDS}{{% block description %}}{{{{ x }}}}{{% endblock %}}"
    assert "Names here: affordance, constraint, conventions, prose, rule, tool." in complaint(
        tmp_path, words
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{{ constraint.dya }}", "constraint has no 'dya'.\nConstraint has: day, "),
        ("{{ constraint['dya'] }}", "\nDid you mean 'day'?"),
        ("{{ rule.units }}", "rule has no 'units'.\nRule has: allowed, format, unit, "),
        ("{{ affordence }}", "\nDid you mean 'affordance'?"),
    ],
)
def test_a_name_that_is_not_there_hears_of_those_that_are(tmp_path, body, message):
    said = complaint(tmp_path, f"{EXTENDS}{{% block description %}}{body}{{% endblock %}}")
    assert said.startswith("tools/book_room.jinja:2: block description: ")
    assert message in said
    assert "Lookup" not in said


def test_a_tool_without_a_file_renders_its_own_prose(tmp_path):
    template = house(tmp_path)
    assert template.renderer.tools(template.original)["book_room"].description == "Imported words."
    assert described(template, "day") == "The imported day."
    assert described(template, "hour") is None
    assert refused(template) == "It is taken."


def test_blocks_that_a_file_leaves_out_are_inherited(tmp_path):
    template = house(tmp_path, f"{EXTENDS}{{% block parameter_hour %}}Hour.{{% endblock %}}")
    assert described(template, "hour") == "Hour."
    assert described(template, "day") == "The imported day."
    assert refused(template) == "It is taken."


def test_super_renders_what_a_block_replaces(tmp_path):
    blocks = (
        "{% block description %}Now: {{ super() }} And more.{% endblock %}"
        "{% block parameter %}<{{ super() }}>{% endblock %}"
        "{% block recovery_refused %}{{ super() }} Sorry.{% endblock %}"
    )
    template = house(tmp_path, EXTENDS + blocks)
    tool = template.renderer.tools(template.original)["book_room"]
    assert tool.description == "Now: Imported words. And more."
    assert described(template, "day") == "<The imported day. >"
    assert refused(template) == "It is taken. Sorry."


def test_a_block_calls_another_by_self(tmp_path):
    blocks = (
        "{% block description %}Books.{% endblock %}"
        "{% block parameter_day %}{{ self.description() }} Day.{% endblock %}"
    )
    assert described(house(tmp_path, EXTENDS + blocks), "day") == "Books. Day."


def test_an_error_speaks_of_every_rule_though_it_cites_none(tmp_path):
    said = "|".join(
        f"{{{{ error.{name} }}}}"
        for name in ("kind", "code", "argument", "received", "allowed", "format", "unit")
    )
    words = f"{EXTENDS}{{% block recovery_refused %}}{said}{{% endblock %}}"
    template = house(tmp_path, words)
    assert refused(template) == "refused|taken|||||"
    assert refused(template, argument="day", received="x") == 'refused|taken|day|"x"|||'


def test_an_environment_is_not_autoescaped(tmp_path):
    words = f"{EXTENDS}{{% block description %}}a < b & c{{% endblock %}}"
    tools = house(tmp_path, words)
    assert tools.renderer.tools(tools.original)["book_room"].description == "a < b & c"
