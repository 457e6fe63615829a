"""The Jinja of an author's templates, in which no expression makes more than a block may hold.

A limit of time ends a loop. It cannot end one step of Python's own, such as `'a' * 10**9`, and the
memory would be gone before.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import wraps
from math import prod
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST = 1_000_000
"""Characters of a block, and characters or items that one expression may make."""
_BY_NUMBER = frozenset(
    {"batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "tojson", "zfill"}
)
"""Filters and methods whose numbers are lengths."""
_WIDE = re.compile(r"[%{][^a-zA-Z%}]*(\d{7}|\*)")
"""A format that pads to a million characters, or to as many as a value says."""


def concat(parts: Iterable[str]) -> str:
    """The parts as one text.

    Raises:
        SecurityError: It would be too long.
        UnicodeEncodeError: It holds half of a surrogate pair.
    """
    kept: list[str] = []
    length = 0
    for part in parts:
        length += len(part)
        _bound(length)
        kept.append(part)
    text = "".join(kept)
    text.encode()
    return text


class _Code(CodeGenerator):
    """What `~` makes is bounded as well."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        self.write("concat(map(str, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write(")))")


class Sandbox(ImmutableSandboxedEnvironment):
    """Templates that can reach neither Python's insides nor the end of memory."""

    code_generator_class = _Code
    concat = staticmethod(concat)
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - Jinja's own
        super().__init__(**options)
        self.filters = {name: _bounded(name, filter_) for name, filter_ in self.filters.items()}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """What an operator makes, if it is not too much."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _bound(left.bit_length() * abs(right))
        elif operator == "*":
            _bound(_times(left, right))
        elif operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            _bound(len(left) + len(right))
        elif operator == "%":
            _bound_formats((left,))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401, N805 - any name may be given
        """What a call makes, if it is not too much."""
        # Jinja puts a function of its own round `str.format`.
        own = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(own, str):
            _bound_call(__obj.__name__, (own, *given), named)
        return super().call(__context, __obj, *given, **named)


def _bounded(name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter_)
    def run(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the filter takes
        _bound_call(name, given, named)
        return filter_(*given, **named)

    return run


def _bound_call(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse a call whose result could be far too long."""
    values = (*given, *named.values())
    if name in _BY_NUMBER:
        _bound(max((abs(v) for v in values if isinstance(v, int)), default=0))
    if name == "format":
        _bound_formats(given)
    # What is put between or in place of items is there once an item.
    sizes = [len(value) for value in values if isinstance(value, str | list | tuple)]
    _bound(prod(size for size in sizes if size) // 100)


def _bound_formats(values: Iterable[Any]) -> None:
    if any(isinstance(value, str) and _WIDE.search(value) for value in values):
        _bound(LONGEST + 1)


def _times(left: Any, right: Any) -> int:  # noqa: ANN401
    """The length of a text or list that is repeated."""
    for items, times in ((left, right), (right, left)):
        if isinstance(items, str | list | tuple) and isinstance(times, int):
            return len(items) * times
    return 0


def _bound(length: int) -> None:
    if length > LONGEST:
        raise SecurityError(f"it would make more than {LONGEST:,} characters")
