"""Methods make a contract, and what is wrong with one is said with its tool and line."""

from datetime import date
from typing import Optional

import pytest
from pydantic import BaseModel

from seal.envs import Environment, load_environment, tool
from seal.envs.declared import contract_of
from seal.errors import TemplateError
from seal.types import Rule
from tests.factories import WORLD, edited, write_environment


def test_a_docstring_is_the_imported_prose():
    class World(Environment):
        @tool
        def act(self, day: str, hour: int) -> str:
            """Do it
            well.

            Not this.

            Args:
                day: The day,
                    as written: MO.
                hour: The hour.

            Returns:
                what: ever.
            """

    prose = contract_of(World, {}).tools["act"].prose
    assert prose.description == "Do it well."
    assert prose.parameters == {"day": "The day, as written: MO.", "hour": "The hour."}


def test_rules_are_drawn_from_the_conventions():
    class World(Environment):
        @tool(
            requires=lambda drawn: drawn["first"],
            day=lambda drawn: Rule(format=drawn["form"]),
            hour=lambda _: None,
        )
        def act(self, day: str, hour: int) -> str: ...

        @tool
        def look(self) -> str: ...

    contract = contract_of(World, {"first": "look", "form": "MO"})["act"]
    assert contract.rule.requires == "look"
    assert contract.rules == {"day": Rule(format="MO")}


def test_a_subclass_has_the_tools_of_its_parent():
    class Parent(Environment):
        @tool
        def first(self) -> str: ...

        @tool
        def second(self, a: int) -> str: ...

    class Child(Parent):
        @tool
        def second(self, b: str) -> str: ...

    contract = contract_of(Child, {})
    assert list(contract.tools) == ["first", "second"]
    assert contract["second"].arguments == ("b",)


def test_an_argument_without_a_hint_and_a_rule_without_an_argument_are_refused(tmp_path):
    bare = edited(WORLD, "def plug_in(self, socket: str)", "def plug_in(self, socket)")
    with pytest.raises(TemplateError, match=r"env\.py:\d+: plug_in\(socket\) has no type hint"):
        load_environment(write_environment(tmp_path / "bare", world=bare))
    wrong = edited(WORLD, "        level=Rule(", "        levle=Rule(")
    with pytest.raises(TemplateError, match=r"env\.py:\d+: dim declares.*'levle'") as caught:
        load_environment(write_environment(tmp_path / "wrong", world=wrong))
    assert str(caught.value).endswith("Options of @tool: requires, mutates.\nDid you mean 'level'?")


def complaint(world, conventions=None):
    with pytest.raises(TemplateError) as caught:
        contract_of(world, conventions or {})
    said = str(caught.value)
    assert "pydantic.dev" not in said
    return said.partition("test_declared.py:")[2].partition(": ")[2]


def world_with(**options):
    """A world whose tool `heat` is declared with these options, and another tool."""

    class World(Environment):
        @tool(**options)
        def heat(self, degrees: int) -> str: ...

        @tool
        def look_up(self) -> str: ...

    return World


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"requires": "lookup"},
            "heat requires 'lookup', which is no tool.\nTools: heat, look_up.\n"
            "Did you mean 'look_up'?",
        ),
        ({"requires": lambda drawn: drawn["first"]}, "heat requires 'look_pu', which is no tool"),
        (
            {"degrees": Rule(requires="lookup")},
            "heat.degrees requires 'lookup', which is no tool.",
        ),
        ({"degrees": lambda _: Rule(requires="lok_up")}, "heat.degrees requires 'lok_up'"),
        ({"requires": lambda _: 7}, "heat: requires is 7; name a tool"),
        (
            {"degrees": lambda drawn: Rule(unit=drawn["scales"])},
            "heat: the rule of 'degrees': no convention 'scales'.\nConventions: first, scale.\n"
            "Did you mean 'scale'?",
        ),
        (
            {"degrees": lambda _: Rule(units="kelvin")},
            "heat: the rule of 'degrees': Rule: units: no such key.\nKeys: allowed, format, unit, ",
        ),
        ({"degrees": lambda _: 1 / 0}, "heat: the rule of 'degrees': ZeroDivisionError"),
        ({"degrees": lambda: Rule()}, "heat: the rule of 'degrees': TypeError"),
        ({"degrees": "kelvin"}, "heat: the rule of 'degrees' is 'kelvin', which is no Rule."),
        (
            {"mutate": True},
            "heat declares a rule for 'mutate', which is no argument of it.\nArguments: degrees. "
            "Options of @tool: requires, mutates.\nDid you mean 'mutates'?",
        ),
    ],
)
def test_a_wrong_declaration_is_blamed_on_its_tool(options, said):
    assert complaint(world_with(**options), {"first": "look_pu", "scale": "kelvin"}).startswith(
        said
    )


class Box(BaseModel):
    """A model that leaves its inside open."""

    contents: list


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (dict, "'dict' does not say what is inside.\nWrite a model, or dict[str, T]."),
        (list, "'list' does not say what is inside.\nWrite list[T]."),
        (Optional[dict], "'dict' does not"),  # noqa: UP045 - as authors write it
        (list[dict], "'dict' does not"),
        (dict[str, tuple], "'tuple' does not"),
        (Box, "'list' does not"),
    ],
)
def test_a_collection_of_nobody_knows_what_is_refused(hint, said):
    class World(Environment):
        def put(self, item) -> str: ...

    World.put.__annotations__["item"] = hint
    World.put = tool(World.put)
    assert complaint(World).startswith(f"put(item): {said}")


def test_a_hint_that_names_nothing_is_blamed_on_its_tool():
    class World(Environment):
        @tool
        def put(self, item: "Nothing") -> str: ...  # noqa: F821

    assert complaint(World).startswith("the type hints of put: NameError: name 'Nothing'")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ('n: int = "x"', "'x' does not fit the hint (Input should be a valid integer)"),
        ("n: int = None", "None does not fit the hint"),
        ("n: int = True", "True does not fit the hint"),
        ("n: int = object()", "<object object"),
        ("n: int = Field(3)", "FieldInfo("),
        ("n: float = float('nan')", "nan does not fit the hint (Input should be a finite number)"),
        ("n: Annotated[int, Field(ge=1)] = 0", "0 does not fit the hint (Input should be greater"),
        ("n: Annotated[int, Field(default=3)]", "stands inside Field"),
        ("n: list[int] = [1, 'a']", "[1, 'a'] does not fit the hint"),
        ("n: list[str] = ()", "() does not fit the hint"),
        ("n: Literal['a'] = 'b'", "'b' does not fit the hint"),
        ("n: date = '2020-01-01'", "'2020-01-01' does not fit the hint"),
        ("n: str = '\\ud800'", "'\\ud800' is no JSON"),
        ("n: str = " + "'x' * 9999 and 5", "5 does not fit the hint"),
    ],
)
def test_a_default_that_its_own_hint_refuses_is_refused(tmp_path, argument, said):
    top = "from datetime import date\nfrom typing import Annotated, Literal\n"
    top += "from pydantic import Field\n"
    world = edited(WORLD, "socket: str) -> str", f"socket: str, {argument}) -> str")
    world = edited(world, "COLOURS = {", f"{top}COLOURS = {{")
    name = argument.partition(":")[0]
    with pytest.raises(TemplateError) as caught:
        load_environment(write_environment(tmp_path / "lamp", world=world))
    assert f"plug_in({name}): the default {said}" in str(caught.value)


def test_defaults_that_fit_are_read_in_the_same_order_everywhere():
    class World(Environment):
        @tool
        def act(
            self,
            share: float = 1,
            day: date = date(2020, 1, 1),
            note: str | None = None,
            names: set[str] = {"c", "a", "b"},  # noqa: B006
            size: tuple[int, ...] = (),
            box: Box = Box(),  # noqa: B008
        ) -> str: ...

    shown = contract_of(World, {})["act"].parameters["properties"]
    assert shown["names"]["default"] == ["a", "b", "c"]
    assert shown["day"]["default"] == "2020-01-01"
    assert shown["note"]["default"] is None


class Box(BaseModel):
    """An argument that is an object."""

    side: int = 3
