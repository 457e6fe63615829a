"""Turns in another form that means the same: no fault, whatever they look like."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.planted.scripts import Call, Place, Steps, flat, text_of


def harmless(place: Place, rng: random.Random) -> Iterator[tuple[str, Steps]]:
    """The turn in forms that mean the same; whether they do is for the verifier to say."""
    if not place.calls:
        return
    plain = [step for step in place.laid_out(place.calls, rng) if step]
    for sort, rewrite in _REWRITES.items():
        steps = [[rewrite(place, call) for call in step] for step in plain]
        if any(
            text_of(one[1]) != text_of(two[1])
            for one, two in zip(flat(steps), flat(plain), strict=True)
        ):
            yield sort, steps
    if len(place.calls) > 1:
        calls = list(place.calls)
        at = rng.randrange(len(calls) - 1)
        calls[at], calls[at + 1] = calls[at + 1], calls[at]
        yield "order within a turn", place.laid_out(calls, rng)
    again = rng.choice(place.calls)
    if not place.stage.template.contract[again[0]].mutates or _only_reads(again[0]):
        yield "repeated read", place.laid_out([*place.calls, again], rng)
    reads = harmless_reads(place)
    if reads:
        calls = [*place.calls]
        calls.insert(rng.randint(0, len(calls)), rng.choice(reads))
        yield "extra read", place.laid_out(calls, rng)


def harmless_reads(place: Place) -> list[Call]:
    """Calls that look as if they changed nothing."""
    reads: list[Call] = [(t, a) for t in place.tools for a in place.stage.reads.get(t, [])[:5]]
    reads += [(t, {}) for t in place.tools if _only_reads(t) and _needs_nothing(place, t)]
    return reads


def _only_reads(tool: str) -> bool:
    return tool.startswith(("get_", "display_", "list_", "view_", "check_")) or tool in (
        *("ls", "pwd", "cat", "find", "du", "wc", "tail"),
        *("trading_get_login_status", "posting_get_login_status", "ticket_get_login_status"),
    )


def _needs_nothing(place: Place, tool: str) -> bool:
    return not place.stage.template.contract[tool].required


def _as_floats(_place: Place, call: Call) -> Call:
    """The call with every integer written as 65.0."""

    def written(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, list):
            return [written(item) for item in value]
        return {k: written(v) for k, v in value.items()} if isinstance(value, dict) else value

    return call[0], json.dumps(written(call[1]))


def _spelt(place: Place, call: Call) -> Call:
    tool, arguments = call
    names = place.stage.template.contract[tool].arguments
    defaults = {n: s["default"] for n in names if "default" in (s := place.schema(tool, n))}
    return tool, {**defaults, **arguments}  # type: ignore[dict-item]


def _left(place: Place, call: Call) -> Call:
    tool, arguments = call
    return tool, {
        name: value
        for name, value in arguments.items()  # type: ignore[union-attr]
        if "default" not in (schema := place.schema(tool, name)) or schema["default"] != value
    }


_REWRITES = {"65 for 65.0": _as_floats, "default spelt out": _spelt, "default left out": _left}
