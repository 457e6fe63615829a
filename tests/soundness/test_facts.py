"""Fuzzing tells the rules that hold everywhere from the values that change."""

from seal.envs import load_environment
from seal.soundness import collect_facts
from tests.factories import WORLD, edited, write_environment


def lamp(folder, **overrides):
    return load_environment(write_environment(folder, **overrides))


def test_declared_rules_are_facts(tmp_path):
    facts = collect_facts(lamp(tmp_path / "lamp"))
    assert facts.of("dim", "level") == {"unit": "percent", "minimum": "1", "maximum": "100"}
    assert facts.of("dim", "colour") == {"allowed": 'warm="W3", cold="C9"'}
    assert facts.of("dim") == {"requires": "plug_in"}
    assert facts.of("plug_in", "socket") == {}
    assert facts.of("nothing", "at all") == {}


def test_a_value_that_changes_with_the_scenario_is_live(tmp_path):
    facts = collect_facts(lamp(tmp_path / "lamp"))
    assert [tuple(value) for value in facts.live] == [("plug_in", "socket", "allowed")]
    assert str(facts.live[0]) == "plug_in.socket.allowed"
    assert "plug_in.socket.allowed" not in facts.written_out()


def test_a_value_that_is_only_cited_is_a_fact_if_it_never_changes(tmp_path):
    world = edited(WORLD, "allowed=self.sockets)", 'format="a wall and a number")')
    facts = collect_facts(lamp(tmp_path / "lamp", world=world))
    assert facts.of("plug_in", "socket") == {"format": "a wall and a number"}
    assert facts.live == ()


def test_a_declared_rule_that_an_error_contradicts_is_live(tmp_path):
    world = edited(
        WORLD,
        'argument="colour")',
        'argument="colour", allowed=[self.sockets[0]])',
    )
    facts = collect_facts(lamp(tmp_path / "lamp", world=world))
    assert ("dim", "colour", "allowed") in [tuple(value) for value in facts.live]
    assert facts.of("dim", "colour") == {}


def test_refusal_codes_are_kept_per_tool(tmp_path):
    facts = collect_facts(lamp(tmp_path / "lamp"))
    assert facts.codes("plug_in") == ("taken",)
    assert set(facts.codes("dim")) == {"no_power", "no_colour"}
    assert facts.codes("nothing") == ()


def test_the_same_seed_and_tasks_give_the_same_facts(tmp_path):
    template = lamp(tmp_path / "lamp")
    assert collect_facts(template, seed=4) == collect_facts(template, seed=4)


def test_what_one_scenario_alone_cites_is_no_fact(tmp_path):
    template = lamp(tmp_path / "lamp", world=edited(WORLD, "allowed=self.sockets)", "unit='wall')"))
    one = template.tasks("train")[:1]
    assert [value.key for value in collect_facts(template, tasks=one).live] == ["unit"]
    assert collect_facts(template, tasks=template.tasks("train")).live == ()


def test_rooms_has_live_values_that_give_nothing_away():
    facts = collect_facts(load_environment("rooms"))
    assert len(facts.live) == 2
    assert facts.leaks == ()
