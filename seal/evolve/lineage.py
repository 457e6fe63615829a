"""The lineage: every generation with its patches, tests and verdict; nothing is thrown away."""

import difflib
from typing import Literal

from seal.types import Candidate, Kind, Record

Verdict = Literal["accepted", "refused", "undecided"]
TestKind = Literal["bundle", "half", "removal", "standing"]
"""A standing test is of all evolved words against the original ones, after the policy changed."""


class PatchEvidence(Record):
    """The diagnoses behind one patch."""

    row: str
    """The profile row: `tool.argument kind`."""
    share: float
    """Of the failed rollouts, those with this fault."""
    faults: float
    examples: tuple[str, ...] = ()


class Patch(Record):
    """One slot's change."""

    slot: str
    before: str
    after: str
    rationale: str
    evidence: tuple[PatchEvidence, ...]
    screened: float | None = None
    """Mean reward difference on the train tasks it was screened on."""
    verdict: Verdict | Literal["retired"] = "undecided"
    """Retired: an adopted text that did not earn its place again; it gives way to the author's."""
    reason: str = ""
    support: Literal["own evidence", "bundle evidence"] | None = None
    """How an accepted patch was proved: by its own test, or with the bundle it came in."""


class GateResult(Record):
    """One paired test on gate scenarios."""

    test: TestKind
    slots: tuple[str, ...]
    """The slots whose patches the test was about."""
    k: int
    """The test's number among its kind; the level is alpha / (k (k + 1))."""
    verdict: Verdict
    reason: str
    effect: float
    """Mean difference of the scenario scores, child minus parent; of a removal, kept minus not; of
    a standing test, evolved minus original words."""
    low: float
    high: float
    pairs: int
    """Scenarios scored under both."""
    wins: int
    """Scenarios that speak for the patches; of a removal, for keeping the patch."""
    losses: int
    unscored: int
    e_value: float
    """The capital that decided; of a removal that was not adopted, of the bet for the patch."""
    threshold: float


class Generation(Record):
    """One evolve step."""

    index: int
    parent: str
    candidate: str
    """The words in force after it; the parent's where nothing was accepted."""
    accepted: bool
    reason: str
    patches: tuple[Patch, ...]
    gates: tuple[GateResult, ...]
    failed: int
    """Failed rollouts in its profile."""
    profiled: int
    """Rollouts in its profile."""
    rollouts: int
    """Rollouts it spent."""


def row_name(tool: str | None, argument: str | None, kind: Kind) -> str:
    """A profile row as patches name it.

    >>> row_name("dim", "level", Kind.WRONG_ARGUMENT)
    'dim.level wrong_argument'
    """
    return f"{'.'.join(part for part in (tool, argument) if part)} {kind}".strip()


def changed_slots(old: Candidate, new: Candidate) -> list[str]:
    """The slots that say something else, by name."""
    slots = sorted(old.texts.keys() | new.texts.keys())
    return [slot for slot in slots if old.texts.get(slot, "") != new.texts.get(slot, "")]


def diff_lines(before: str, after: str) -> list[str]:
    """A text's change, as lines that start with `-` or `+`; an empty text has no line."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[:2] in ("- ", "+ ")]
