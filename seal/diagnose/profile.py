"""What goes wrong most, and which words could have prevented it: diagnoses, aggregated.

Counts decay with a half-life of two generations, so that a failure which words have cured fades.
The profile does not depend on the order in which rollouts came in.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from seal.types import DiagnosedRollout, Diagnosis, Kind, Record

HALF_LIFE = 2.0
"""Generations after which a count weighs half."""
EXAMPLES = 2


class ProfileRow(Record):
    """One (tool, argument, kind), over the rollouts of one exposure."""

    tool: str | None
    argument: str | None
    kind: Kind
    evolved: bool
    """Whether the rollouts had evolved words in force."""
    faults: float
    """Failed rollouts whose fault it is, decayed."""
    share: float
    """Of all failed rollouts: the preventable loss, in [0, 1]."""
    count: float
    """Rollouts in which it occurs, recovered or not, decayed."""
    mean_reward: float
    """Of those rollouts."""
    recovery_rate: float | None
    """Of its occurrences that are errors, the share that was corrected within the turn."""
    slots: tuple[str, ...]
    """The slots that could have prevented it, the most often named first."""
    codes: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    """What refusals said, their values masked."""
    shapes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Ids of rollouts whose fault it is."""


class Profile(Record):
    """The rows, largest preventable loss first."""

    rows: tuple[ProfileRow, ...]
    rollouts: int
    failed: int


@dataclass(slots=True)
class _Tally:
    """What one row adds up."""

    faults: float = 0.0
    count: float = 0.0
    reward: float = 0.0
    errors: float = 0.0
    recovered: float = 0.0
    slots: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


Key = tuple[str, str, Kind, bool]


def build_profile(generations: Sequence[Iterable[DiagnosedRollout]], original: str) -> Profile:
    """The profile of train rollouts, one collection a generation, the latest last.

    Args:
        generations: Diagnosed rollouts; the last collection weighs fully. One that was used again
            in a later generation counts there alone.
        original: The id of the original words, which tells the two exposures apart.
    """
    tallies: dict[Key, _Tally] = defaultdict(_Tally)
    failed_weight: dict[bool, float] = defaultdict(float)
    rollouts = failed = 0
    counted: set[tuple[str, str]] = set()
    for age, diagnosed in enumerate(reversed(generations)):
        weight = 0.5 ** (age / HALF_LIFE)
        fresh = [d for d in diagnosed if (d.rollout, d.candidate) not in counted]
        counted |= {(d.rollout, d.candidate) for d in fresh}
        for one in sorted(fresh, key=lambda d: (d.rollout, d.candidate)):
            if one.reward is None:
                continue
            evolved = one.candidate != original
            rollouts += 1
            if one.reward < 1.0:
                failed += 1
                failed_weight[evolved] += weight
            _add(tallies, one, weight, evolved=evolved)
    rows = [_row(key, tally, failed_weight[key[3]]) for key, tally in tallies.items()]
    rows.sort(key=lambda r: (-r.share, -r.count, r.tool or "", r.argument or "", r.kind, r.evolved))
    return Profile(rows=tuple(rows), rollouts=rollouts, failed=failed)


def _add(
    tallies: dict[Key, _Tally], one: DiagnosedRollout, weight: float, *, evolved: bool
) -> None:
    seen: set[Key] = set()
    blamed = False
    for diagnosis in one.diagnoses:
        if not diagnosis.kind.blames:
            continue
        key = (diagnosis.tool or "", diagnosis.argument or "", diagnosis.kind, evolved)
        tally = tallies[key]
        if key not in seen:
            seen.add(key)
            tally.count += weight
            tally.reward += weight * (one.reward or 0.0)
        if diagnosis.call_id and diagnosis.kind in _ERRORS:
            tally.errors += weight
            tally.recovered += weight * diagnosis.recovered
        # Of two calls of gold that were left out alike, one is the fault.
        if diagnosis == one.fault and not blamed:
            blamed = True
            tally.faults += weight
            tally.examples.append(one.rollout)
        _describe(tally, diagnosis)


_ERRORS = {
    Kind.MALFORMED_CALL,
    Kind.UNKNOWN_TOOL,
    Kind.ARGUMENT_MISSING,
    Kind.ARGUMENT_UNEXPECTED,
    Kind.ARGUMENT_TYPE,
    Kind.ARGUMENT_VALUE,
    Kind.REFUSED,
}


def _describe(tally: _Tally, diagnosis: Diagnosis) -> None:
    if diagnosis.slot:
        tally.slots[diagnosis.slot] += 1
    if diagnosis.code:
        tally.codes[diagnosis.code] += 1
    if diagnosis.masked:
        tally.masked[diagnosis.masked] += 1
    if diagnosis.argument and diagnosis.found:
        tally.shapes[shape_of(diagnosis.found)] += 1


def _row(key: Key, tally: _Tally, failed: float) -> ProfileRow:
    tool, argument, kind, evolved = key
    return ProfileRow(
        tool=tool or None,
        argument=argument or None,
        kind=kind,
        evolved=evolved,
        faults=round(tally.faults, 6),
        share=round(tally.faults / failed, 6) if failed else 0.0,
        count=round(tally.count, 6),
        mean_reward=round(tally.reward / tally.count, 6),
        recovery_rate=round(tally.recovered / tally.errors, 6) if tally.errors else None,
        slots=_by_count(tally.slots),
        codes=_by_count(tally.codes),
        masked=_by_count(tally.masked)[:3],
        shapes=_by_count(tally.shapes)[:3],
        examples=tuple(sorted(tally.examples)[:EXAMPLES]),
    )


def _by_count(counter: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counter, key=lambda name: (-counter[name], name)))


def shape_of(shown: str) -> str:
    """The form of a value without the value: what may be told of it to a rewriter.

    >>> shape_of('"14.00"'), shape_of("2"), shape_of('"blue"')
    ('text like 00.00', 'integer', 'lower-case word')
    """
    try:
        value: JsonValue = json.loads(shown)
    except ValueError:
        return "text"
    if isinstance(value, bool) or value is None:
        return "true, false or null"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return _shape_of_text(value)
    return "list" if isinstance(value, list) else "object"


_CASES = {"lower-case": str.islower, "upper-case": str.isupper, "capitalised": str.istitle}


def _shape_of_text(text: str) -> str:
    if not text:
        return "empty text"
    if re.search(r"\d", text) and len(text) <= 20:
        return f"text like {''.join(map(_masked, text))}"
    if re.fullmatch(r"[^\W\d]+", text):
        for case, holds in _CASES.items():
            if holds(text):
                return f"{case} word"
        return "word"
    return "several words" if " " in text else "text"


def _masked(letter: str) -> str:
    """A letter or digit of any alphabet by one that stands for all of them."""
    if letter.isnumeric():
        return "0"
    if letter.isalpha():
        return "A" if letter.isupper() else "a"
    return letter
