"""What goes wrong in one run and not in another: their faults, row by row."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from seal.diagnose.run import diagnose, made_with
from seal.errors import ConfigError
from seal.records import RunFolder
from seal.rollout.scores import mean_interval, wilson
from seal.types import DiagnosedRollout, Kind, Record

Change = Literal["new", "gone", "more", "fewer", "unclear"]


class Row(Record):
    """One (tool, argument, kind) in both runs; the first row is of all faults together."""

    tool: str | None
    argument: str | None
    kind: Kind | None
    """None: all faults."""
    first: float
    """Share of the first run's rollouts whose fault it is, in [0, 1], by scenario."""
    second: float
    difference: float
    """Second minus first."""
    low: float
    high: float
    """The 95% interval of the difference, for this row alone."""
    change: Change
    """New and gone: in one run alone; more and fewer: in both, and the interval leaves 0 out."""
    examples: tuple[str, ...]
    """Ids of rollouts of the run that loses more by it."""


class DiagnosisComparison(Record):
    """Two runs' faults, the largest difference first."""

    total: Row
    rows: tuple[Row, ...]
    paired: bool
    """Whether the runs share rollouts; all figures are then of these alone."""
    rollouts: tuple[int, int]
    """Rollouts of each run that the figures are of."""
    scenarios: tuple[int, int]
    left_out: tuple[int, int]
    """Rollouts of each run that are unscored, suspect, or not in the other."""


Fault = tuple[str, str, str]
Wanted = Callable[[Fault | None], bool]


def compare_diagnoses(
    first: str | Path,
    second: str | Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> DiagnosisComparison:
    """Diagnose two runs of `seal run` and compare their faults.

    Raises:
        ConfigError: One is no such run, or they are of different environments.
    """
    folders = [RunFolder(Path(one)) for one in (first, second)]
    names = [_environment(folder) for folder in folders]
    if names[0] != names[1]:
        raise ConfigError(
            f"{first} is a run of {names[0]}, {second} one of {names[1]}: they fail at other tools."
            "\nCompare runs of one environment, with one convention seed."
        )
    sides = [diagnose(folder.path, progress).diagnosed for folder in folders]
    return difference(*sides)


def _environment(folder: RunFolder) -> str:
    settings = made_with(folder)
    if settings["command"] != "run":
        raise ConfigError(
            f"{folder.path}: made by `seal {settings['command']}`, under many candidates.\n"
            "Compare runs of `seal run`, such as: seal run ENV -m MODEL --candidate "
            f"{folder.path}"
        )
    return str(settings["environment"])


def difference(
    first: Sequence[DiagnosedRollout], second: Sequence[DiagnosedRollout]
) -> DiagnosisComparison:
    """The faults of two sets of rollouts, second minus first.

    Where both have rollouts of the same (task, sample), these are paired and the rest is left out;
    else the two are independent samples. The unit is a scenario either way.
    """
    sides = [_counted(first), _counted(second)]
    shared = sides[0].keys() & sides[1].keys()
    if shared:
        sides = [{name: one for name, one in side.items() if name in shared} for side in sides]
    counted = [list(side.values()) for side in sides]
    faults = {_fault(one) for side in counted for one in side} - {None}
    rows = [_row(fault, counted, paired=bool(shared)) for fault in faults if fault]
    rows.sort(
        key=lambda r: (-abs(r.difference), -r.first, r.tool or "", r.argument or "", r.kind or "")
    )
    sizes = [len(side) for side in counted]
    return DiagnosisComparison(
        total=_row(None, counted, paired=bool(shared)),
        rows=tuple(rows),
        paired=bool(shared),
        rollouts=(sizes[0], sizes[1]),
        scenarios=(_scenarios(counted[0]), _scenarios(counted[1])),
        left_out=(len(first) - sizes[0], len(second) - sizes[1]),
    )


def _counted(diagnosed: Iterable[DiagnosedRollout]) -> dict[str, DiagnosedRollout]:
    """The rollouts that count, by id."""
    return {one.rollout: one for one in diagnosed if one.reward is not None and not one.suspect}


def _scenarios(diagnosed: Iterable[DiagnosedRollout]) -> int:
    return len({one.scenario for one in diagnosed})


def _fault(one: DiagnosedRollout) -> Fault | None:
    fault = one.fault
    return None if fault is None else (fault.tool or "", fault.argument or "", fault.kind.value)


def _row(fault: Fault | None, sides: Sequence[Sequence[DiagnosedRollout]], *, paired: bool) -> Row:
    """One fault in both runs; None: any fault."""
    hits = [[one for one in side if _is(one, fault)] for side in sides]
    means = [_by_scenario(side, fault) for side in sides]
    first, second = (statistics.fmean(each.values()) if each else 0.0 for each in means)
    if paired:
        pairs = [means[1][name] - value for name, value in means[0].items()]
        effect, low, high = mean_interval(pairs)
    else:
        effect = second - first
        low, high = independent_interval(list(means[0].values()), list(means[1].values()))
    more = hits[1] if len(hits[1]) > len(hits[0]) else hits[0]
    return Row(
        tool=fault[0] or None if fault else None,
        argument=fault[1] or None if fault else None,
        kind=Kind(fault[2]) if fault else None,
        first=round(first, 6),
        second=round(second, 6),
        difference=round(effect, 6),
        low=round(low, 6),
        high=round(high, 6),
        change=_change(len(hits[0]), len(hits[1]), low, high),
        examples=tuple(sorted(one.rollout for one in more)[:2]),
    )


def _is(one: DiagnosedRollout, fault: Fault | None) -> bool:
    return one.fault is not None and fault in (None, _fault(one))


def _by_scenario(side: Iterable[DiagnosedRollout], fault: Fault | None) -> dict[str, float]:
    """Per scenario the share of its rollouts with this fault."""
    found: dict[str, list[bool]] = defaultdict(list)
    for one in side:
        found[one.scenario].append(_is(one, fault))
    return {name: statistics.fmean(values) for name, values in found.items()}


def _change(first: int, second: int, low: float, high: float) -> Change:
    if not first or not second:
        return "new" if second else "gone"
    if low > 0:
        return "more"
    return "fewer" if high < 0 else "unclear"


def independent_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of the difference of two independent means in [0, 1], second minus first.

    Source: R. G. Newcombe, 1998, method 10, which combines the two Wilson intervals.

    >>> [
    ...     round(x, 4)
    ...     for x in independent_interval([1.0] * 48 + [0.0] * 32, [1.0] * 56 + [0.0] * 14)
    ... ]
    [0.0524, 0.3339]
    """
    if not first or not second:
        return -1.0, 1.0
    (l1, u1), (l2, u2) = wilson(first), wilson(second)
    p1, p2 = statistics.fmean(first), statistics.fmean(second)
    low = p2 - p1 - math.hypot(p2 - l2, u1 - p1)
    high = p2 - p1 + math.hypot(u2 - p2, p1 - l1)
    return max(-1.0, low), min(1.0, high)
