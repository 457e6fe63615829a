"""What a set of rollouts scores, with its interval; the unit is a scenario."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from seal.types import Record, Rollout

UNSCORED_SHARE = 0.02
"""Above this share of unscored scenarios a comparison is undecided."""
Z = 1.96
"""Two-sided 95%."""


class ScoreSummary(Record):
    """The mean reward over scored rollouts, with its 95% interval by scenario."""

    score: float | None
    """None if nothing was scored."""
    low: float | None
    high: float | None
    scored: int
    total: int
    bound: float | None
    """The score with unscored rollouts counted as failures."""
    groups: dict[str, float] = Field(default_factory=dict)
    """The score of each task group."""


class PairedSummary(Record):
    """The mean difference of scenario scores, second minus first, with its 95% interval."""

    effect: float
    low: float
    high: float
    pairs: int
    """Scenarios scored on both sides."""
    unscored: int
    """Scenarios with a rollout unscored on either side."""
    first: float
    second: float
    shared: int
    """Rollouts that both sides have; the scores are of these."""
    left_out: int
    """Rollouts that one side has alone."""

    @property
    def undecided(self) -> bool:
        """So many scenarios are unscored that the difference proves nothing."""
        return self.unscored > UNSCORED_SHARE * (self.pairs + self.unscored)


def summarize(rollouts: Sequence[Rollout]) -> ScoreSummary:
    """The score of rollouts."""
    rewards = [r.reward for r in rollouts if r.reward is not None]
    if not rewards:
        return ScoreSummary(
            score=None, low=None, high=None, scored=0, total=len(rollouts), bound=None
        )
    score = statistics.fmean(rewards)
    low, high = wilson([statistics.fmean(v) for v in _by_scenario(rollouts).values()])
    groups: dict[str, list[float]] = defaultdict(list)
    for rollout in rollouts:
        if rollout.reward is not None:
            groups[rollout.group].append(rollout.reward)
    return ScoreSummary(
        score=score,
        low=low,
        high=high,
        scored=len(rewards),
        total=len(rollouts),
        bound=sum(rewards) / len(rollouts),
        groups={name: statistics.fmean(values) for name, values in sorted(groups.items())},
    )


def _by_scenario(rollouts: Iterable[Rollout]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for rollout in rollouts:
        if rollout.reward is not None:
            found[rollout.scenario].append(rollout.reward)
    return found


def wilson(values: Sequence[float]) -> tuple[float, float]:
    """The Wilson interval for the mean of independent values in [0, 1].

    Values between 0 and 1 count as the number of coin flips that would vary as much. Source:
    E. B. Wilson, 1927, with the effective sample size p (1 - p) / standard error squared.
    """
    n = float(len(values))
    p = statistics.fmean(values)
    if len(values) > 1 and 0 < p < 1 and (variance := statistics.variance(values)) > 0:
        n = max(n, p * (1 - p) / (variance / n))
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Mean of paired differences in [-1, 1], and its 95% interval.

    Few pairs that all agree are no certainty: one pair won and one lost are added before the
    interval is taken. Source: D. G. Bonett and R. M. Price, 2012, the adjusted Wald interval for
    paired proportions, with sums of parts of a win in place of counts.

    >>> [round(x, 2) for x in mean_interval([1.0] * 8)]
    [1.0, 0.43, 1.0]
    """
    if not differences:
        return 0.0, -1.0, 1.0
    n = len(differences) + 2
    centre = sum(differences) / n
    spread = (sum(d * d for d in differences) + 2) / n - centre**2
    half = Z * math.sqrt(max(0.0, spread) / n)
    return statistics.fmean(differences), max(-1.0, centre - half), min(1.0, centre + half)


def scenario_differences(
    first: Sequence[Rollout], second: Sequence[Rollout]
) -> dict[str, float | None]:
    """Per scenario, the mean reward difference over its (task, sample) pairs, second minus first.

    None where any rollout of a pair is unscored; pairs that only one side has are left out.
    """
    others = {rollout.id: rollout for rollout in second}
    differences: dict[str, list[float | None]] = defaultdict(list)
    for rollout in first:
        other = others.get(rollout.id)
        if other is None:
            continue
        if rollout.reward is None or other.reward is None:
            differences[rollout.scenario].append(None)
        else:
            differences[rollout.scenario].append(other.reward - rollout.reward)
    return {name: _mean_or_none(values) for name, values in differences.items()}


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def paired(first: Sequence[Rollout], second: Sequence[Rollout]) -> PairedSummary:
    """The paired difference of two sets of rollouts."""
    differences = scenario_differences(first, second)
    known = [d for d in differences.values() if d is not None]
    effect, low, high = mean_interval(known)
    shared = {r.id for r in first} & {r.id for r in second}
    return PairedSummary(
        effect=effect,
        low=low,
        high=high,
        pairs=len(known),
        unscored=len(differences) - len(known),
        first=summarize([r for r in first if r.id in shared]).score or 0.0,
        second=summarize([r for r in second if r.id in shared]).score or 0.0,
        shared=len(shared),
        left_out=len({r.id for r in first} ^ {r.id for r in second}),
    )
