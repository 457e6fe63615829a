"""What a rewriter may know, and what it may answer.

The type is the guard: it has no field for gold, for the text of a user, for a tool's raw output or
for anything of the gate split, so none of them can reach a rewriter, whatever model it is.
"""

from collections.abc import Sequence
from typing import Protocol

from seal.types import Kind, Record, Slot, ToolContract, Usage


class EvidenceRow(Record):
    """One row of the profile, as the rewriter sees it: figures and shapes, never values."""

    tool: str | None
    argument: str | None
    kind: Kind
    codes: tuple[str, ...] = ()
    """The refusal codes seen, the most frequent first."""
    masked: tuple[str, ...] = ()
    """What the refusals said, the most frequent first, with every value masked (`…`)."""
    faults: int
    """Failed rollouts whose fault this was."""
    share: float
    """Of all failed rollouts, in [0, 1]: the loss that better words could prevent."""
    recovery_rate: float | None
    """Of such errors, the share that was corrected within the turn; None if there were none."""
    shapes: tuple[str, ...] = ()
    """The forms of the values that were sent, such as `text, 3 letters`."""


class Attempt(Record):
    """What was tried for a slot before, and how it went."""

    text: str
    accepted: bool
    reason: str


class SlotEvidence(Record):
    """All that a rewriter gets for one slot."""

    slot: Slot
    current: str
    placeholders: tuple[str, ...]
    contract: ToolContract | None
    """The slot's tool; None for the words of the whole system."""
    facts: dict[str, str]
    """What is known of the slot's argument, or, for a tool's slots, of the tool and each argument
    (`day.format`): the same in every scenario, so it may be written out."""
    tools: tuple[str, ...]
    """The names of all tools."""
    rows: tuple[EvidenceRow, ...]
    """The profile rows that this slot could have prevented, largest share first."""
    attempts: tuple[Attempt, ...] = ()
    refusal: str | None = None
    """Why a guard refused the text proposed just before; it is asked once more."""


class Proposal(Record):
    """A rewriter's answer for one slot; an empty text empties the slot."""

    slot: str
    text: str
    rationale: str


class Rewriter(Protocol):
    """What proposes slot texts. It proposes for at most the slots it is asked about."""

    name: str

    def propose(self, evidence: Sequence[SlotEvidence]) -> list[Proposal]:
        """Texts for some of the slots, in the order of the evidence.

        Raises:
            ModelFailure: The rewriter's model could not be called.
        """
        ...

    def spent(self) -> Usage:
        """What all proposals so far cost."""
        ...
