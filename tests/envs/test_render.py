"""What the policy reads is contract and words together; no words can change the contract."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.contract import without_prose
from seal.envs.verify import environment_hash
from seal.envs.words import tidy
from seal.errors import TemplateError
from seal.rollout.agent import Arena
from seal.types import CallError, Rule
from tests.factories import TOML, WORLD, edited, write_environment


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return load_environment(write_environment(tmp_path_factory.mktemp("words") / "lamp"))


def literal(text):
    """The slot text that says this."""
    return text.replace("{", "{{").replace("}", "}}")


def said(template, slot_id, text):
    """All that the policy reads where a slot's text belongs."""
    slot = template.renderer.slots[slot_id]
    words = template.original.with_texts({slot_id: text})
    if slot.recovery:
        error = CallError(kind=slot.recovery, code="code", message="message")
        return template.renderer.recovery(slot.tool, error, words)[0]
    if slot.tool is None:
        return template.renderer.prompt(words)
    return template.renderer.tools(words)[slot.tool].words()


MARKUP = [
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{% endblock %}",
    "${x}",
    "{# c #}",
    "{{ affordance }}",
    "<b>",
]


@pytest.mark.parametrize("text", MARKUP)
def test_evolved_text_is_no_template_in_any_slot(lamp, text):
    for slot_id in lamp.renderer.slots:
        assert said(lamp, slot_id, literal(text)).count(text) == 1, slot_id


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_out_of_the_prompt_as_it_is_but_for_blanks(lamp, text):
    prompt = said(lamp, "system.guidance", literal(text))
    assert prompt == tidy(f"{lamp.manifest.description} {' '.join(text.split())}")


texts = st.text(st.characters(exclude_categories=["Cs"])).map(literal)


@given(st.data())
def test_no_candidate_moves_the_contract(lamp, data):
    slots = st.sampled_from(sorted(lamp.renderer.slots))
    words = lamp.original.with_texts(data.draw(st.dictionaries(slots, texts, max_size=4)))
    before = environment_hash(lamp)
    for name, tool in lamp.renderer.tools(words).items():
        assert tool.name == name
        assert without_prose(tool.parameters) == lamp.contract[name].parameters
    assert Arena(lamp, words, contract_hash=None).contract_hash == before


def test_candidates_differ_only_in_the_slots_that_differ(lamp):
    words = lamp.original.with_texts({"dim.constraint.level": "In {unit}."})
    before, after = lamp.renderer.tools(lamp.original), lamp.renderer.tools(words)
    assert before["plug_in"] == after["plug_in"]
    assert before["dim"].description == after["dim"].description
    level = after["dim"].parameters["properties"]["level"]
    assert level == {"type": "integer", "description": "In percent."}
    assert (
        before["dim"].parameters["properties"]["colour"]
        == (after["dim"].parameters["properties"]["colour"])
    )


def test_a_slot_exists_only_if_its_text_appears_exactly_once(tmp_path):
    tools = {
        "dim": '{% extends "_tool.jinja" %}\n'
        "{% block description %}{{ affordance }} {{ affordance }}{% endblock %}\n"
        "{% block parameter_colour %}{{ prose }}{% endblock %}\n"
        "{% block parameter_level %}{{ constraint.level[:2] }}{% endblock %}\n"
        "{% block recovery_refused %}{{ error.message }}{% endblock %}\n"
    }
    folder = write_environment(tmp_path / "lamp", tools=tools, slots="")
    slots = load_environment(folder).renderer.slots
    assert not {
        "dim.affordance",
        "dim.constraint.colour",
        "dim.constraint.level",
        "dim.recovery.refused",
    } & set(slots)
    assert {"plug_in.affordance", "dim.recovery.argument_type", "system.guidance"} <= set(slots)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{{ affordance }} {{ affordance }}", "'dim.affordance' appears twice in the block, so it"),
        ("{{ affordance * 3 }}", "'dim.affordance' appears 3 times in the block, so it is no slot"),
        ("{{ affordance[:9] and '' }}", "'dim.affordance' is not printed whole by its block, so"),
    ],
)
def test_a_text_for_what_is_no_slot_hears_why_it_is_none(tmp_path, words, said):
    tools = {
        "dim": f'{{% extends "_tool.jinja" %}}\n{{% block description %}}{words}{{% endblock %}}\n'
    }
    folder = write_environment(tmp_path / "lamp", tools=tools)
    with pytest.raises(TemplateError) as caught:
        load_environment(folder)
    assert f"slots.toml: {said}" in str(caught.value)
    assert "Did you mean" not in str(caught.value)


def test_a_constraint_may_stand_in_the_words_of_another_argument(tmp_path):
    tools = {
        "dim": '{% extends "_tool.jinja" %}\n'
        "{% block description %}{{ prose }} {{ constraint.level }}{% endblock %}\n"
        "{% block parameter_level %}{% endblock %}\n"
    }
    template = load_environment(write_environment(tmp_path / "lamp", tools=tools, slots=""))
    assert said(template, "dim.constraint.level", "In {unit}.").count("In percent.") == 1


NESTED = edited(
    edited(
        WORLD, "from seal.envs import", "from pydantic import BaseModel\n\nfrom seal.envs import"
    ),
    "class Lamp(Environment):",
    "class Place(BaseModel):\n    room: str\n    floor: int = 0\n\n\n"
    "class Lamp(Environment):\n"
    "    @tool(mutates=False, at=Rule(format='as on the door'))\n"
    "    def look(self, at: Place, all: list[Place]) -> str:\n"
    '        """Look around."""\n'
    "        return at.room\n\n",
)
LOOK = (
    '{% extends "_tool.jinja" %}\n'
    "{% block parameter_at__room %}Room. {{ constraint['at.room'] }}{% endblock %}\n"
    "{% block parameter_all__floor %}Of {{ argument }}.{% endblock %}\n"
)


def test_nested_arguments_have_words_and_slots_of_their_own(tmp_path):
    folder = write_environment(tmp_path / "lamp", world=NESTED, tools={"look": LOOK}, slots="")
    template = load_environment(folder)
    assert {s for s in template.renderer.slots if s.startswith("look.constraint.")} == {
        "look.constraint.at",
        "look.constraint.at.room",
        "look.constraint.at.floor",
        "look.constraint.all",
        "look.constraint.all.room",
    }
    words = template.original.with_texts({"look.constraint.at.room": "Write it {format}."})
    tool = template.renderer.tools(words)["look"]
    properties = tool.parameters["properties"]
    assert properties["at"]["properties"]["room"]["description"] == "Room. Write it as on the door."
    assert properties["all"]["items"]["properties"]["floor"]["description"] == "Of all.floor."
    assert "Write it as on the door." in tool.words()
    assert without_prose(tool.parameters) == template.contract["look"].parameters


def test_a_recovery_names_its_slot_only_if_the_slot_says_something(lamp):
    error = CallError(kind="refused", code="no_colour", message="No.", argument="colour")
    content, slot = lamp.renderer.recovery("dim", error, lamp.original)
    assert (content, slot) == ("No.", None)
    words = lamp.original.with_texts({"dim.recovery.refused": "Wrong {argument}: {received}."})
    shown = error.model_copy(update={"received": "{tool}"})
    content, slot = lamp.renderer.recovery("dim", shown, words)
    assert (content, slot) == ('No. Wrong colour: "{tool}".', "dim.recovery.refused")
    assert lamp.renderer.recovery("dim", error, words) == ("No.", None)


def test_a_recovery_cites_the_rules_of_its_error(lamp):
    words = lamp.original.with_texts(
        {"dim.recovery.refused": "One of {allowed}. At most {maximum}. In {unit}."}
    )
    rule = Rule(allowed=("W3", 7), maximum=0)
    error = CallError(kind="refused", code="a", message="No.", argument="colour", rule=rule)
    assert lamp.renderer.recovery("dim", error, words)[0] == 'No. One of "W3", 7. At most 0.'


def test_unknown_tools_and_malformed_calls_are_answered_by_the_system(lamp):
    words = lamp.original.with_texts(
        {
            "system.recovery.unknown_tool": "There is none.",
            "system.recovery.malformed_call": "Write {example}.",
        }
    )
    unknown = CallError(kind="unknown_tool", code="unknown_tool", message="No 'dimm'.")
    assert lamp.renderer.recovery("dimm", unknown, words) == (
        "No 'dimm'. There is none.",
        "system.recovery.unknown_tool",
    )
    broken = CallError(kind="malformed_call", code="malformed_call", message="What?")
    assert lamp.renderer.recovery("dim", broken, words)[0] == (
        "What? Write dim(level=<integer>, colour=<string>)."
    )
    assert lamp.renderer.recovery("", broken, words)[0] == "What?"


def test_every_problem_of_a_candidate_is_named(lamp):
    problems = lamp.renderer.problems_of(
        {
            "dim.affordence": "x",
            "dim.affordance": "In {unit}.",
            "dim.constraint.level": "x" * 241,
            "system.guidance": "fine",
        }
    )
    assert len(problems) == 3
    assert problems[0] == ("no slot 'dim.affordence' in the words.\nDid you mean 'dim.affordance'?")
    assert problems[1].startswith("dim.affordance: no placeholder '{unit}'")
    assert problems[2] == "dim.constraint.level: 241 characters, at most 240."


def test_budgets_of_an_environment_are_its_own(tmp_path):
    toml = f"{TOML}\n[slots]\nguidance = 7\n"
    template = load_environment(write_environment(tmp_path / "lamp", toml=toml))
    assert template.renderer.slots["system.guidance"].max_chars == 7
    assert template.renderer.slots["dim.affordance"].max_chars == 240


def test_a_tool_may_not_take_the_name_of_the_systems_words(tmp_path):
    world = edited(WORLD, "def plug_in", "def system").replace('"plug_in"', '"system"')
    folder = write_environment(tmp_path / "lamp", world=world, tasks=[])
    with pytest.raises(TemplateError, match="a tool may not be called 'system'"):
        load_environment(folder)
