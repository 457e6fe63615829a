"""From a profile to proposals that passed the guards."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from seal.diagnose.profile import Profile, ProfileRow
from seal.diagnose.slots import slots_for
from seal.envs.slots import PLACEHOLDERS
from seal.envs.template import EnvironmentTemplate
from seal.evolve.evidence import Attempt, EvidenceRow, Proposal, Rewriter, SlotEvidence
from seal.evolve.guard import Guard
from seal.evolve.lineage import Patch, PatchEvidence, row_name
from seal.soundness.facts import Facts
from seal.types import Candidate

MAX_TRIES = 2
"""Times that the same text may be tried before it is not proposed again; that an adopted one was
retired is its second."""
MIN_FAULTS = 2.0
"""Failed rollouts that a row must explain; one alone may be chance, and a gate costs hundreds."""


class Proposer:
    """Asks a rewriter about the slots with the largest preventable loss."""

    def __init__(
        self, template: EnvironmentTemplate, facts: Facts, rewriter: Rewriter, most: int
    ) -> None:
        self._template = template
        self._facts = facts
        self._rewriter = rewriter
        self._most = most
        self._guard = Guard(template, facts)
        self._attempts: dict[str, list[Attempt]] = defaultdict(list)

    def remember(self, patch: Patch) -> None:
        """Keep how a patch went, for the rewriter to learn from."""
        text = patch.before if patch.verdict == "retired" else patch.after
        attempt = Attempt(text=text, accepted=patch.verdict == "accepted", reason=patch.reason)
        self._attempts[patch.slot].append(attempt)

    def patches(self, profile: Profile, parent: Candidate) -> list[Patch]:
        """Guarded patches, largest preventable loss first; refused ones come with their reason.

        A slot that a row names first is asked about before any slot that it names second.
        """
        evolved = parent.id != self._template.original.id
        rows = [r for r in profile.rows if r.faults >= MIN_FAULTS and r.evolved == evolved]
        wanted = self._by_slot(rows, parent)
        patches: list[Patch] = []
        asked: set[str] = set()
        for round_ in range(max((len(chain) for chain in wanted), default=0)):
            slots = [chain[round_] for chain in wanted if len(chain) > round_]
            fresh = [slot for slot in dict.fromkeys(slots) if slot not in asked]
            fresh = fresh[: self._most - sum(p.verdict != "refused" for p in patches)]
            asked |= set(fresh)
            if fresh:
                patches += self._ask(fresh, rows, parent)
        return patches

    def _by_slot(self, rows: Sequence[ProfileRow], parent: Candidate) -> list[list[str]]:
        """For each row, the slots of this environment that could have prevented it."""
        return [
            [slot for slot in self._chain(row, parent) if slot in self._template.renderer.slots]
            for row in rows
        ]

    @staticmethod
    def _chain(row: ProfileRow, parent: Candidate) -> list[str]:
        named = slots_for(row.kind, row.tool, row.argument, texts=parent.texts)
        return list(dict.fromkeys([*row.slots, *named]))

    def _ask(
        self, slots: Sequence[str], rows: Sequence[ProfileRow], parent: Candidate
    ) -> list[Patch]:
        evidence = {slot: self._evidence(slot, rows, parent) for slot in slots}
        patches: dict[str, Patch] = {}
        again: list[SlotEvidence] = []
        for proposal in self._answers(evidence, parent):
            refusal = self._guard.refusal(proposal.slot, proposal.text, parent)
            if refusal is not None:
                again.append(evidence[proposal.slot].model_copy(update={"refusal": refusal}))
            patches[proposal.slot] = self._patch(proposal, rows, parent, refusal)
        if again:
            second = {one.slot.id: one for one in again}
            for proposal in self._answers(second, parent):
                refusal = self._guard.refusal(proposal.slot, proposal.text, parent)
                patches[proposal.slot] = self._patch(proposal, rows, parent, refusal)
        return [patches[slot] for slot in slots if slot in patches]

    def _answers(
        self, evidence: Mapping[str, SlotEvidence], parent: Candidate
    ) -> Iterator[Proposal]:
        """The rewriter's answers that are about these slots, change something, and are new."""
        for proposal in self._rewriter.propose(list(evidence.values())):
            if proposal.slot not in evidence or proposal.text == parent.texts.get(proposal.slot):
                continue
            tried = [a for a in self._attempts[proposal.slot] if a.text == proposal.text]
            if len(tried) < MAX_TRIES:
                yield proposal

    def _patch(
        self,
        proposal: Proposal,
        rows: Sequence[ProfileRow],
        parent: Candidate,
        refusal: str | None,
    ) -> Patch:
        return Patch(
            slot=proposal.slot,
            before=parent.texts.get(proposal.slot, ""),
            after=proposal.text,
            rationale=proposal.rationale,
            evidence=tuple(
                PatchEvidence(
                    row=row_name(r.tool, r.argument, r.kind),
                    share=r.share,
                    faults=r.faults,
                    examples=r.examples,
                )
                for r in rows
                if proposal.slot in self._chain(r, parent)
            ),
            verdict="refused" if refusal else "undecided",
            reason=f"refused by a guard: {refusal}" if refusal else "",
        )

    def _evidence(
        self, slot_id: str, rows: Sequence[ProfileRow], parent: Candidate
    ) -> SlotEvidence:
        slot = self._template.renderer.slots[slot_id]
        tools = self._template.contract.tools
        contract = tools[slot.tool].contract if slot.tool else None
        facts: dict[str, str] = {}
        if slot.tool and slot.argument:
            facts = self._facts.of(slot.tool, slot.argument)
        elif contract:
            facts = self._facts.of(contract.name)
            for argument in contract.arguments:
                known = self._facts.of(contract.name, argument)
                facts |= {f"{argument}.{key}": text for key, text in known.items()}
        return SlotEvidence(
            slot=slot,
            current=parent.texts.get(slot_id, ""),
            placeholders=PLACEHOLDERS[slot.kind],
            contract=contract,
            facts=facts,
            tools=tuple(tools),
            rows=tuple(self._row(row) for row in rows if slot_id in self._chain(row, parent)),
            attempts=tuple(self._attempts[slot_id]),
        )

    def _row(self, row: ProfileRow) -> EvidenceRow:
        """A profile row without anything that a policy made up, such as the name of no tool."""
        known = self._template.contract.tools
        tool = row.tool if row.tool in known else None
        arguments = known[tool].contract.arguments if tool else ()
        return EvidenceRow(
            tool=tool,
            argument=row.argument if row.argument in arguments else None,
            kind=row.kind,
            codes=row.codes,
            masked=row.masked,
            faults=round(row.faults),
            share=row.share,
            recovery_rate=row.recovery_rate,
            shapes=row.shapes,
        )
