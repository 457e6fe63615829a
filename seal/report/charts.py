"""Where the marks of a chart stand, in percent of its width; the template draws them."""

from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A value with its interval, on an axis."""

    left: float
    middle: float
    right: float


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from left to right, the same for every row of a table."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The place of a value, in percent; values beyond an end stand at the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def mark(self, low: float, value: float, high: float) -> Mark:
        """A value and its interval."""
        return Mark(self.at(low), self.at(value), self.at(high))

    @property
    def zero(self) -> float:
        """The place of zero."""
        return self.at(0.0)


SCORES = Axis(0.0, 1.0)


def difference_axis(values: Iterable[float]) -> Axis:
    """An axis that holds zero and all these differences, with round ends.

    >>> difference_axis([0.53, 1.0, -0.07])
    Axis(low=-0.1, high=1.0)
    """
    found = list(values)
    low = _reach(max([0.0, *(-value for value in found)]))
    high = _reach(max([0.0, *found]))
    return Axis(-low, high)


def _reach(value: float) -> float:
    return next((step for step in _STEPS if value <= step), 1.0)
