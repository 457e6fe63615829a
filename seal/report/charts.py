"""Where the marks of a chart stand, in percent of its width; the template draws them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

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


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a curve's field, from the upper left corner, and what stands there."""

    x: float
    y: float
    value: float
    top: float
    """Upper end of its interval; its own place where it has none."""
    bottom: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of a curve between two points."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Values in [0, 1] over a count, as points and the lines between them."""

    points: tuple[Point, ...]
    lines: tuple[Line, ...]


def curve(values: Iterable[tuple[float, tuple[float, float, float], str]], most: float) -> Curve:
    """A curve in a field that goes from 0 to `most` and from 0 to 1.

    Args:
        values: Of each point its place, its interval (low, value, high), and its label.
        most: The place at the right end.
    """
    wide = Axis(0.0, max(most, 1.0))
    points = tuple(
        Point(
            x=wide.at(place),
            y=_height(value),
            value=value,
            top=_height(high),
            bottom=_height(low),
            label=label,
        )
        for place, (low, value, high), label in values
    )
    lines = tuple(Line(a.x, a.y, b.x, b.y) for a, b in pairwise(points))
    return Curve(points, lines)


def _height(value: float) -> float:
    return round(100 - SCORES.at(value), 2)


def _reach(value: float) -> float:
    return next((step for step in _STEPS if value <= step), 1.0)
