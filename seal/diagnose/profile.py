"""What goes wrong most, and which words could have prevented it: diagnoses, aggregated.

Counts decay with a half-life of two generations, so that a failure which words have cured fades.
The profile does not depend on the order in which rollouts came in. A generation is added to what
was counted before, and no earlier rollout is looked at again, but for those that it replaces.
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
    """Scored rollouts whose gold is not in doubt; all counts are of these."""
    failed: int
    suspect: int = 0
    """Rollouts in no count, since their gold is in doubt."""


@dataclass(slots=True)
class _Tally:
    """What one row adds up, undecayed: whole numbers, so that what was added can be taken back."""

    faults: int = 0
    count: int = 0
    errors: int = 0
    recovered: int = 0
    rewards: Counter[float] = field(default_factory=Counter)
    slots: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)


Key = tuple[str, str, Kind, bool]
"""Tool, argument, kind, and whether evolved words were in force."""


@dataclass(slots=True)
class _Generation:
    """The counts of one generation."""

    tallies: dict[Key, _Tally] = field(default_factory=lambda: defaultdict(_Tally))
    failed: Counter[bool] = field(default_factory=Counter)
    """Failed rollouts by exposure."""
    rollouts: int = 0
    suspect: int = 0

    def count(self, one: DiagnosedRollout, times: int, *, evolved: bool) -> None:
        """Add a rollout, or with -1 take it back."""
        if one.reward is None:
            return
        if one.suspect:
            self.suspect += times
            return
        self.rollouts += times
        if one.reward < 1.0:
            self.failed[evolved] += times
        seen: set[Key] = set()
        blamed = False
        for diagnosis in one.diagnoses:
            if not diagnosis.kind.blames:
                continue
            key = (diagnosis.tool or "", diagnosis.argument or "", diagnosis.kind, evolved)
            tally = self.tallies[key]
            if key not in seen:
                seen.add(key)
                tally.count += times
                tally.rewards[one.reward] += times
            if diagnosis.call_id and diagnosis.kind in _ERRORS:
                tally.errors += times
                tally.recovered += times * diagnosis.recovered
            # Of two calls of gold that were left out alike, one is the fault.
            if diagnosis == one.fault and not blamed:
                blamed = True
                tally.faults += times
                tally.examples[one.rollout] += times
            _describe(tally, diagnosis, times)


class ProfileBuilder:
    """The profile of train rollouts, generation by generation, the latest weighing fully.

    Args:
        original: The id of the original words, which tells the two exposures apart.
    """

    def __init__(self, original: str) -> None:
        self._original = original
        self._generations: list[_Generation] = []
        self._counted: dict[tuple[str, str], tuple[_Generation, list[DiagnosedRollout]]] = {}

    def add(self, diagnosed: Iterable[DiagnosedRollout]) -> None:
        """Add a generation; a rollout that was used before counts here alone from now on."""
        latest = _Generation()
        for one in diagnosed:
            key = (one.rollout, one.candidate)
            evolved = one.candidate != self._original
            generation, earlier = self._counted.get(key, (latest, []))
            if generation is not latest:
                for old in earlier:
                    generation.count(old, -1, evolved=evolved)
                earlier = []
            latest.count(one, 1, evolved=evolved)
            self._counted[key] = (latest, [*earlier, one])
        self._generations.append(latest)

    def profile(self) -> Profile:
        """The profile of what was added."""
        latest = len(self._generations) - 1
        weighed = [
            (0.5 ** ((latest - place) / HALF_LIFE), one)
            for place, one in enumerate(self._generations)
        ]
        failed = {
            evolved: sum(weight * one.failed[evolved] for weight, one in weighed)
            for evolved in (False, True)
        }
        keys = {
            key for one in self._generations for key, tally in one.tallies.items() if tally.count
        }
        rows = [
            _row(key, [(w, g.tallies[key]) for w, g in weighed if key in g.tallies], failed[key[3]])
            for key in keys
        ]
        rows.sort(
            key=lambda r: (-r.share, -r.count, r.tool or "", r.argument or "", r.kind, r.evolved)
        )
        return Profile(
            rows=tuple(rows),
            rollouts=sum(one.rollouts for one in self._generations),
            failed=sum(one.failed.total() for one in self._generations),
            suspect=sum(one.suspect for one in self._generations),
        )


def build_profile(generations: Iterable[Iterable[DiagnosedRollout]], original: str) -> Profile:
    """The profile of collections of train rollouts, one a generation, the latest last."""
    builder = ProfileBuilder(original)
    for diagnosed in generations:
        builder.add(diagnosed)
    return builder.profile()


_ERRORS = {
    Kind.MALFORMED_CALL,
    Kind.UNKNOWN_TOOL,
    Kind.ARGUMENT_MISSING,
    Kind.ARGUMENT_UNEXPECTED,
    Kind.ARGUMENT_TYPE,
    Kind.ARGUMENT_VALUE,
    Kind.REFUSED,
}


def _describe(tally: _Tally, diagnosis: Diagnosis, times: int) -> None:
    if diagnosis.slot:
        tally.slots[diagnosis.slot] += times
    if diagnosis.code:
        tally.codes[diagnosis.code] += times
    if diagnosis.masked:
        tally.masked[diagnosis.masked] += times
    if diagnosis.argument and diagnosis.found:
        tally.shapes[shape_of(diagnosis.found)] += times


def _row(key: Key, weighed: Sequence[tuple[float, _Tally]], failed: float) -> ProfileRow:
    tool, argument, kind, evolved = key
    tallies = [tally for _, tally in weighed]
    faults = sum(weight * tally.faults for weight, tally in weighed)
    count = sum(weight * tally.count for weight, tally in weighed)
    errors = sum(weight * tally.errors for weight, tally in weighed)
    recovered = sum(weight * tally.recovered for weight, tally in weighed)
    reward = sum(weight * _total(tally.rewards) for weight, tally in weighed)
    return ProfileRow(
        tool=tool or None,
        argument=argument or None,
        kind=kind,
        evolved=evolved,
        faults=round(faults, 6),
        share=round(faults / failed, 6) if failed else 0.0,
        count=round(count, 6),
        mean_reward=round(reward / count, 6),
        recovery_rate=round(recovered / errors, 6) if errors else None,
        slots=_by_count(tally.slots for tally in tallies),
        codes=_by_count(tally.codes for tally in tallies),
        masked=_by_count(tally.masked for tally in tallies)[:3],
        shapes=_by_count(tally.shapes for tally in tallies)[:3],
        examples=tuple(sorted({n for t in tallies for n in +t.examples})[:EXAMPLES]),
    )


def _total(rewards: Counter[float]) -> float:
    """The sum of rewards, the same whatever their order."""
    return sum(reward * rewards[reward] for reward in sorted(rewards))


def _by_count(counters: Iterable[Counter[str]]) -> tuple[str, ...]:
    """What was counted, the most frequent first, and of equals the first by name."""
    counter: Counter[str] = sum(counters, Counter())
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
