"""Rewriters that tests write: they propose fixed texts, and keep what they were asked."""

from collections.abc import Mapping, Sequence

from seal.evolve.evidence import Proposal, SlotEvidence
from seal.types import Usage


class Fixed:
    """Proposes the texts it was given, for whatever it is asked about.

    Args:
        texts: Slot -> its text, or the texts of one try after the other.
        unasked: Slots for which it proposes whether or not it is asked.
    """

    def __init__(
        self, texts: Mapping[str, str | Sequence[str]], unasked: Sequence[str] = ()
    ) -> None:
        self.name = "fixed"
        self.asked: list[SlotEvidence] = []
        self._texts = {k: [v] if isinstance(v, str) else list(v) for k, v in texts.items()}
        self._unasked = unasked
        self._calls = 0

    def propose(self, evidence: Sequence[SlotEvidence]) -> list[Proposal]:
        """The next text of each slot, its last one for ever after."""
        self.asked += evidence
        self._calls += 1
        wanted = [*(one.slot.id for one in evidence), *self._unasked]
        return [
            Proposal(slot=slot, text=self._next(slot), rationale="because a test says so")
            for slot in wanted
            if slot in self._texts
        ]

    def _next(self, slot: str) -> str:
        texts = self._texts[slot]
        return texts.pop(0) if len(texts) > 1 else texts[0]

    def spent(self) -> Usage:
        """A call each time."""
        return Usage(calls=self._calls)
