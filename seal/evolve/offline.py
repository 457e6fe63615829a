"""The offline rewriter: it composes texts from contract, facts and profile, without a model.

It says nothing that contract and facts do not give, and prefers a placeholder to a written-out
value: a placeholder is right under every convention seed, and at error time for live values too.
"""

from collections.abc import Sequence

from seal.evolve.evidence import Proposal, SlotEvidence
from seal.types import Kind, Usage

_SENTENCES = {
    "allowed": "Use one of {allowed}.",
    "format": "Write it like {format}.",
    "unit": "Give it in {unit}.",
    "minimum": "At least {minimum}.",
    "maximum": "At most {maximum}.",
    "requires": "Call {requires} first.",
}
_HARMFUL = (Kind.LIMIT_REACHED, Kind.OUTPUT_MISSING)
_GUIDANCE = (
    "If a request lacks something that a tool needs, ask for it; "
    "if no tool can do what is asked, decline. Call nothing in such a turn."
)


class OfflineRewriter:
    """A rewriter without a model: the same evidence gives the same texts."""

    name = "offline"

    def propose(self, evidence: Sequence[SlotEvidence]) -> list[Proposal]:
        """A text for every slot about which contract and facts have something to say."""
        composed = [(one, self._compose(one)) for one in evidence if one.refusal is None]
        return [
            Proposal(slot=one.slot.id, text=text, rationale=rationale)
            for one, (text, rationale) in composed
            if text != one.current and len(text) <= one.slot.max_chars
        ]

    def spent(self) -> Usage:
        """Nothing: no model is called."""
        return Usage()

    def _compose(self, one: SlotEvidence) -> tuple[str, str]:
        if one.slot.kind == "constraint":
            return self._constraint(one)
        if one.slot.kind == "recovery":
            return self._recovery(one)
        if one.slot.kind == "affordance":
            return self._affordance(one)
        return self._guidance(one)

    @staticmethod
    def _constraint(one: SlotEvidence) -> tuple[str, str]:
        declared = one.contract.rules.get(str(one.slot.argument)) if one.contract else None
        stated = declared.stated() if declared else {}
        sentences = []
        for key, sentence in _SENTENCES.items():
            fact = one.facts.get(key)
            if fact and key in stated:
                sentences.append(sentence)
            elif fact:
                sentences.append(
                    sentence.replace(f"{{{key}}}", fact.replace("{", "{{").replace("}", "}}"))
                )
        return " ".join(sentences) or one.current, "the words do not state this argument's rule"

    @staticmethod
    def _recovery(one: SlotEvidence) -> tuple[str, str]:
        kind = one.slot.recovery
        if kind == "unknown_tool":
            return f"The tools are {', '.join(one.tools)}.", "name the tools there are"
        if kind == "malformed_call":
            return "A call looks like {example}.", "show the form of a call"
        if kind == "refused":
            return " ".join(_SENTENCES.values()), "the refusal does not say which rule was broken"
        return (
            "Call it like {example}. Write it like {format}. Use one of {allowed}.",
            "the error does not show a right call",
        )

    @staticmethod
    def _affordance(one: SlotEvidence) -> tuple[str, str]:
        requires = one.facts.get("requires")
        needed = f"Call {requires} before {one.slot.tool}." if requires else ""
        if one.current and any(row.kind in _HARMFUL for row in one.rows):
            return needed, "turns run out of steps under the present text"
        if needed and needed not in one.current:
            return f"{one.current} {needed}".strip(), "the words do not state the prerequisite"
        return one.current, "nothing to add"

    @staticmethod
    def _guidance(one: SlotEvidence) -> tuple[str, str]:
        if any(row.kind is Kind.SPURIOUS_CALL for row in one.rows):
            return _GUIDANCE, "calls are made where the right thing is to ask or decline"
        return one.current, "nothing to add"
