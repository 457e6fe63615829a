"""The offline rewriter says what contract and facts give, and nothing else."""

import re

import pytest

from seal.envs.render import SYSTEM_RECOVERIES, TOOL_RECOVERIES
from seal.envs.slots import PLACEHOLDERS, fill, parse_text
from seal.evolve.evidence import EvidenceRow, SlotEvidence
from seal.evolve.offline import OfflineRewriter
from seal.types import Kind, Rule, Slot, SlotKind, ToolContract, Usage

TOOL = ToolContract(
    name="brew",
    parameters={
        "type": "object",
        "properties": {"grind": {"type": "string"}, "water": {"type": "integer"}},
        "required": ["grind", "water"],
    },
    rule=Rule(requires="rinse"),
    rules={"water": Rule(unit="millilitres", maximum=900), "grind": Rule(allowed=("f", "g"))},
)


def evidence(
    kind: SlotKind,
    facts: dict[str, str] | None = None,
    *,
    argument: str | None = None,
    recovery: str | None = None,
    current: str = "",
    row: Kind = Kind.REFUSED,
    budget: int = 240,
    refusal: str | None = None,
) -> SlotEvidence:
    return SlotEvidence(
        slot=Slot(
            id=f"brew.{kind}",
            kind=kind,
            tool=None if kind == "guidance" else "brew",
            argument=argument,
            recovery=recovery,
            max_chars=budget,
        ),
        current=current,
        placeholders=PLACEHOLDERS[kind],
        contract=None if kind == "guidance" else TOOL,
        facts=facts or {},
        tools=("brew", "rinse"),
        rows=(
            EvidenceRow(
                tool="brew", argument=None, kind=row, faults=3, share=0.5, recovery_rate=None
            ),
        ),
        refusal=refusal,
    )


def proposed(one: SlotEvidence) -> str | None:
    found = OfflineRewriter().propose([one])
    assert [p.slot for p in found] in ([], [one.slot.id])
    assert all(p.rationale for p in found)
    return found[0].text if found else None


def test_a_declared_rule_is_cited_by_its_placeholder():
    water = evidence("constraint", {"unit": "millilitres", "maximum": "900"}, argument="water")
    assert proposed(water) == "Give it in {unit}. At most {maximum}."


def test_a_fact_that_no_rule_declares_is_written_out():
    water = evidence("constraint", {"unit": "millilitres", "minimum": "50"}, argument="water")
    assert proposed(water) == "Give it in {unit}. At least 50."


def test_braces_of_a_fact_stay_literal():
    text = proposed(evidence("constraint", {"format": '{"ml": 5}'}, argument="water"))
    assert text is not None
    assert fill(text, "constraint", {}) == 'Write it like {"ml": 5}.'


@pytest.mark.parametrize("kind", ["constraint", "affordance", "guidance"])
def test_without_facts_and_harm_nothing_is_said(kind: SlotKind):
    argument = "water" if kind == "constraint" else None
    assert proposed(evidence(kind, argument=argument)) is None
    assert proposed(evidence(kind, argument=argument, current="As it was.")) is None


def test_a_live_value_is_never_written_out():
    """Live values are no facts: the declared maximum is known to vary, so only errors cite it."""
    water = evidence("constraint", {"unit": "millilitres"}, argument="water")
    assert "900" not in str(proposed(water))
    assert "maximum" not in str(proposed(water))


def test_a_prerequisite_is_added_to_what_the_author_said():
    facts = {"requires": "rinse", "water.unit": "millilitres"}
    assert proposed(evidence("affordance", facts, current="Makes coffee.")) == (
        "Makes coffee. Call rinse before brew."
    )
    assert proposed(evidence("affordance", facts, current="Call rinse before brew.")) is None


@pytest.mark.parametrize("row", [Kind.LIMIT_REACHED, Kind.OUTPUT_MISSING])
def test_a_text_under_which_steps_run_out_gives_way_to_the_prerequisite(row: Kind):
    harm = "Rinse, then taste, then rinse."
    assert proposed(evidence("affordance", current=harm, row=row)) == ""
    facts = {"requires": "rinse"}
    assert proposed(evidence("affordance", facts, current=harm, row=row)) == (
        "Call rinse before brew."
    )


def test_guidance_teaches_to_ask_and_to_decline_where_calls_are_spurious():
    text = str(proposed(evidence("guidance", row=Kind.SPURIOUS_CALL, budget=400)))
    assert "ask" in text
    assert "decline" in text
    assert "brew" not in text


@pytest.mark.parametrize("recovery", [*TOOL_RECOVERIES, *SYSTEM_RECOVERIES])
def test_a_recovery_holds_placeholders_and_tool_names_alone(recovery: str):
    facts = {"requires": "rinse", "water.unit": "millilitres", "water.maximum": "900"}
    text = str(proposed(evidence("recovery", facts, recovery=recovery, budget=320)))
    assert parse_text(text, "recovery")
    assert "900" not in text
    assert "millilitres" not in text
    named = set(re.findall(r"(?<![{\w])(brew|rinse)(?!\w)", text))
    assert named == ({"brew", "rinse"} if recovery == "unknown_tool" else set())


def test_a_refused_slot_and_a_text_over_the_budget_are_left_out():
    water = {"unit": "millilitres"}
    assert proposed(evidence("constraint", water, argument="water", refusal="no")) is None
    assert proposed(evidence("constraint", water, argument="water", budget=10)) is None


def test_the_same_evidence_gives_the_same_texts_in_its_order_for_nothing():
    kinds: list[SlotKind] = ["affordance", "constraint", "recovery"]
    facts = {"requires": "rinse", "unit": "millilitres"}
    given = [
        evidence(
            kind,
            facts,
            argument="water" if kind == "constraint" else None,
            recovery="refused" if kind == "recovery" else None,
            budget=320,
        )
        for kind in kinds
    ]
    rewriter = OfflineRewriter()
    first = rewriter.propose(given)
    assert [p.slot for p in first] == [f"brew.{kind}" for kind in kinds]
    assert rewriter.propose(given) == first == OfflineRewriter().propose(given)
    assert rewriter.spent() == Usage()
