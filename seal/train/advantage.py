"""Advantages reweighted by what went wrong in each turn: pure functions over plain floats.

A reweighting gives every turn of every rollout a positive weight, and a turn's sampled tokens get
weight times advantage. No weight changes a sign: what the group found better stays better.

`none` is GRPO: all weights 1. `paper` is the recipe of arXiv 2605.24426: one weight a rollout, from
the labels of its turns. Its rho is fixed in the paper (`RHO`) and follows the failures in the
released code (`DynamicRho`); which of the two applies is the caller's choice of rho.

A reweighting sees the whole batch, because some can only be stated over a batch.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from seal.errors import ConfigError, did_you_mean
from seal.train.labels import Tag
from seal.types import Record

LOW, HIGH = 0.5, 2.0
"""Bounds of a rollout's weight and of a dynamic rho."""
RHO: Mapping[str, float] = {
    Tag.SPURIOUS_CALL: 2.0,
    Tag.CORRECT_ABSTENTION: 1.8,
    Tag.EMPTY_TURN: 1.5,
    Tag.STATE_MISMATCH: 1.0,
    Tag.RESPONSE_MISMATCH: 0.9,
    Tag.INSTANCE_MISMATCH: 0.6,
    Tag.PASS: 1.0,
}
"""The paper's weight of each label (its table 6); a label that is not here weighs 1."""
STRENGTH = 1.0
"""How far dynamic rho goes: alpha."""
ENOUGH = 32
"""Turns of a label in the window from which dynamic rho trusts it fully."""
PACE = 0.25
"""Share of the way to its target that dynamic rho goes in one step."""


@dataclass(frozen=True, slots=True)
class Row:
    """One rollout of a batch, as reweightings see it."""

    advantage: float
    labels: tuple[str, ...]
    """One per turn; empty if the rollout could not be diagnosed."""
    tokens: tuple[int, ...]
    """Sampled tokens of each turn."""

    def __post_init__(self) -> None:
        if self.labels and len(self.labels) != len(self.tokens):
            raise ValueError(f"{len(self.labels)} labels for {len(self.tokens)} turns")


TurnWeights = list[tuple[float, ...]]
"""Per rollout, one weight per turn."""


def turn_weights(name: str, rows: Sequence[Row], rho: Mapping[str, float] = RHO) -> TurnWeights:
    """One weight per turn of every rollout, under the reweighting of this name.

    Every weight is positive, so no advantage changes its sign; a rollout without labels has
    weights 1.

    Args:
        name: One of `REWEIGHTINGS`.
        rows: The batch, in any order: no rollout's weight depends on its place.
        rho: Weight of each label, where the reweighting goes by labels.

    Raises:
        ConfigError: There is no such reweighting.
    """
    if name not in REWEIGHTINGS:
        raise ConfigError(
            f"no reweighting '{name}'.\nReweightings: {', '.join(REWEIGHTINGS)}."
            + did_you_mean(name, REWEIGHTINGS)
        )
    return REWEIGHTINGS[name](rows, rho)


def reweighted(rows: Sequence[Row], weights: TurnWeights) -> TurnWeights:
    """The advantage of every turn: its weight times the rollout's advantage (eq. 12)."""
    return [
        tuple(weight * row.advantage for weight in of_row)
        for row, of_row in zip(rows, weights, strict=True)
    ]


def step_scale(rows: Sequence[Row], weights: TurnWeights) -> float:
    """How much larger the reweighting makes a step: sum n |w A| over sum n |A|, n tokens.

    Reweighting and a larger step are confounded; a report that shows this figure lets the reader
    tell them apart. 1 if no token has an advantage.
    """
    before = math.fsum(abs(row.advantage) * sum(row.tokens) for row in rows)
    after = math.fsum(
        abs(advantage) * tokens
        for row, of_row in zip(rows, reweighted(rows, weights), strict=True)
        for advantage, tokens in zip(of_row, row.tokens, strict=True)
    )
    return after / before if before else 1.0


def rollout_weight(labels: Sequence[str], rho: Mapping[str, float] = RHO) -> float:
    """The paper's weight of a rollout, in [0.5, 2]; 1 if it has no labels.

    p(z) is the share of turns with label z (eq. 10), and the weight is the mean of rho under p,
    clipped (eq. 11). The order of turns does not matter.
    """
    if not labels:
        return 1.0
    return _clipped(math.fsum(rho.get(label, 1.0) for label in labels) / len(labels))


def _clipped(value: float) -> float:
    return min(HIGH, max(LOW, value))


def _ones(rows: Sequence[Row], _: Mapping[str, float]) -> TurnWeights:
    return [(1.0,) * len(row.tokens) for row in rows]


def _by_rollout(rows: Sequence[Row], rho: Mapping[str, float]) -> TurnWeights:
    return [(rollout_weight(row.labels, rho),) * len(row.tokens) for row in rows]


REWEIGHTINGS: Mapping[str, Callable[[Sequence[Row], Mapping[str, float]], TurnWeights]] = {
    "none": _ones,
    "paper": _by_rollout,
}


class LabelTally(Record):
    """How often turns had a label, and what their rollouts earned."""

    turns: int = 0
    reward: float = 0.0
    """Sum over these turns of their rollout's reward."""

    def __add__(self, other: "LabelTally") -> "LabelTally":
        return LabelTally(turns=self.turns + other.turns, reward=self.reward + other.reward)


class DynamicRho(Record):
    """The rho in force, and the counts that move it; what a checkpoint keeps."""

    rho: dict[str, float] = Field(default_factory=lambda: {str(z): rho for z, rho in RHO.items()})
    window: dict[str, LabelTally] = Field(default_factory=dict)
    """Since the window was last closed."""
    total: dict[str, LabelTally] = Field(default_factory=dict)


def observe(state: DynamicRho, batch: Iterable[tuple[Sequence[str], float | None]]) -> DynamicRho:
    """Rho after the rollouts of one step, with which that same step is weighted.

    This is the rule of the released code, which the paper does not state: every label's rho goes a
    quarter of the way to

        clip(base (1 + alpha prevalence stagnation confidence), 0.5, 2)

    where prevalence is the label's share of all turns, stagnation 1 - the mean reward of the
    rollouts that carry it, and confidence min(1, its turns / 32). The target of `pass` is its base.
    Counts are those of the window, or of everything seen while the window is empty.

    Args:
        state: Before the step.
        batch: Labels and reward of each rollout, in any order; unscored ones say nothing.
    """
    seen = _tallied(batch)
    window, total = _merged(state.window, seen), _merged(state.total, seen)
    counts = window or total
    turns = sum(tally.turns for tally in counts.values())
    rho = {
        label: (1 - PACE) * state.rho.get(label, base)
        + PACE * _target(label, base, counts.get(label, LabelTally()), turns)
        for label, base in DynamicRho().rho.items()
    }
    return DynamicRho(rho=rho, window=window, total=total)


def close_window(state: DynamicRho) -> DynamicRho:
    """Start counting anew, as the released code does after each pass over its tasks."""
    return state.model_copy(update={"window": {}})


def _target(label: str, base: float, tally: LabelTally, turns: int) -> float:
    if label == Tag.PASS or not tally.turns:
        return base
    prevalence = tally.turns / turns
    stagnation = 1.0 - tally.reward / tally.turns
    confidence = min(1.0, tally.turns / ENOUGH)
    return _clipped(base * (1.0 + STRENGTH * prevalence * stagnation * confidence))


def _tallied(batch: Iterable[tuple[Sequence[str], float | None]]) -> dict[str, LabelTally]:
    rewards: dict[str, list[float]] = {}
    for labels, reward in batch:
        for label in labels if reward is not None else ():
            rewards.setdefault(str(label), []).append(reward or 0.0)
    # An exact sum does not depend on the order of rollouts.
    return {
        label: LabelTally(turns=len(values), reward=math.fsum(values))
        for label, values in sorted(rewards.items())
    }


def _merged(
    one: Mapping[str, LabelTally], other: Mapping[str, LabelTally]
) -> dict[str, LabelTally]:
    labels = sorted({*one, *other})
    return {
        label: one.get(label, LabelTally()) + other.get(label, LabelTally()) for label in labels
    }
