"""Faults of every sort, each planted at one turn of a gold script, with the label it deserves.

A label is told from how the spoilt script was played: whether the planted call was refused, say,
or whether the state differs. The diagnosis has no part in it. Where two labels are equally right,
both are named; `reordered` and `repeated` are the only sorts for which that happens.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.planted.scripts import Call, Place, Seen, Steps, flat

Label = tuple[str, str | None, str | None]
"""Kind, tool, argument."""
Labels = frozenset[Label]
Told = Callable[[Seen], Labels]
"""The labels of a fault, told from its play; none if the fault did not come about as meant."""
NONE: Labels = frozenset()


@dataclass(frozen=True)
class Planted:
    """A turn with something planted in it."""

    steps: Steps
    told: Told
    answer: str | None = None


Planter = Callable[[Place, random.Random], Planted | None]


def one(kind: str, tool: str | None, argument: str | None = None) -> Labels:
    return frozenset({(kind, tool, argument)})


def _pick(place: Place, rng: random.Random) -> int | None:
    return rng.randrange(len(place.calls)) if place.calls else None


def _where(steps: Steps, call: Call) -> tuple[int, int]:
    """Step and place of the very call that was planted."""
    return next(
        (k, n) for k, step in enumerate(steps) for n, made in enumerate(step) if made is call
    )


def _left_out(place: Place, gold: Call, instead: Call | None = None) -> Told:
    """What a gold call that nobody tried is called."""

    def told(seen: Seen) -> Labels:
        turn = seen.rollout.turns[place.index]
        made = [call.tool for step in turn.steps for call in step.calls]
        if not made:
            return one("no_call", place.calls[0][0])
        for tool, error in seen.errors(place.index):
            # Declared: the one cannot go without the other, and the world said no for want of it.
            if error.argument is None and error.rule.requires == gold[0]:
                return one("refused", tool)
        tools = {tool for tool, _ in place.calls}
        if instead is not None and not tools & set(made):
            return one("wrong_tool", instead[0])
        return one("missing_call", gold[0])

    return told


def dropped(place: Place, rng: random.Random) -> Planted | None:
    at = _pick(place, rng)
    if at is None:
        return None
    rest = [call for k, call in enumerate(place.calls) if k != at]
    steps = [step for step in place.laid_out(rest, rng) if step]
    return Planted(steps, _left_out(place, place.calls[at]))


def nothing(place: Place, _rng: random.Random) -> Planted | None:
    return Planted([], lambda _: one("no_call", place.calls[0][0])) if place.calls else None


def swapped(place: Place, rng: random.Random) -> Planted | None:
    """Another tool is called in place of gold's, and the call goes through."""
    at = _pick(place, rng)
    if at is None:
        return None
    others = [call for call in place.elsewhere if call[0] != place.calls[at][0]]
    others += [
        (tool, dict(rng.choice(place.stage.reads[tool])))
        for tool in place.tools
        if place.stage.reads.get(tool) and tool != place.calls[at][0]
    ]
    if not others:
        return None
    other = rng.choice(others)
    steps = place.laid_out([other if k == at else c for k, c in enumerate(place.calls)], rng)
    step, number = _where(steps, other)
    left_out = _left_out(place, place.calls[at], other)

    def told(seen: Seen) -> Labels:
        return NONE if seen.error(place.index, step, number) else left_out(seen)

    return Planted(steps, told)


def repeated(place: Place, rng: random.Random) -> Planted | None:
    at = _pick(place, rng)
    if at is None:
        return None
    again: Call = (place.calls[at][0], dict(place.calls[at][1]))  # type: ignore[arg-type]
    calls = list(place.calls)
    calls.insert(rng.choice([at + 1, len(calls)]), again)
    steps = place.laid_out(calls, rng)
    step, number = _where(steps, again)

    def told(seen: Seen) -> Labels:
        if seen.error(place.index, step, number):
            return NONE
        labels = _order_labels(place, seen, {again[0]})
        # The later call fails, and only for the repetition.
        return labels | _first_refused(place, seen)

    return Planted(steps, told)


def reordered(place: Place, rng: random.Random) -> Planted | None:
    pairs = [k for k in range(len(place.calls) - 1) if place.calls[k] != place.calls[k + 1]]
    if not pairs:
        return None
    at = rng.choice(pairs)
    calls = list(place.calls)
    calls[at], calls[at + 1] = calls[at + 1], calls[at]

    def told(seen: Seen) -> Labels:
        swapped = {calls[at][0], calls[at + 1][0]}
        return _first_refused(place, seen) or _order_labels(place, seen, swapped)

    return Planted(place.laid_out(calls, rng), told)


def _first_refused(place: Place, seen: Seen) -> Labels:
    """The first of gold's calls that failed for coming at the wrong time, as the world said it."""
    failed = dict(reversed(seen.errors(place.index)))
    first = next((tool for tool, _ in place.calls if tool in failed), None)
    return one("refused", first, failed[first].argument) if first else NONE


def _order_labels(place: Place, seen: Seen, tools: set[str]) -> Labels:
    missing = seen.missing(place.index)
    if not seen.state_differs(place.index) and missing:
        return one("output_missing", missing[0])
    return frozenset(("state_mismatch", tool, None) for tool in tools)


def _spoilt(place: Place, at: int, call: Call, rng: random.Random, *, gives_up: bool) -> Steps:
    """The turn with one call otherwise; a policy that gives up makes none after it."""
    before, after = list(place.calls[:at]), list(place.calls[at + 1 :])
    return place.laid_out([*before, call, *([] if gives_up else after)], rng, apart=gives_up)


def _told_of_call(place: Place, steps: Steps, call: Call, argument: str, *, gives_up: bool) -> Told:
    """The label of a call whose one argument was spoilt: what came of it is in its result."""
    step, number = _where(steps, call)

    def told(seen: Seen) -> Labels:
        error = seen.error(place.index, step, number)
        if error is None and gives_up:
            return NONE
        return one(error.kind if error else "wrong_argument", call[0], argument)

    return told


def _argument(
    spoil: Callable[[Place, Call, random.Random], tuple[str, Any] | None], *, gives_up: bool = False
) -> Planter:
    """A planter that gives one argument of one call another value."""

    def planter(place: Place, rng: random.Random) -> Planted | None:
        at = _pick(place, rng)
        chosen = None if at is None else spoil(place, place.calls[at], rng)
        if at is None or chosen is None:
            return None
        tool, arguments = place.calls[at]
        call: Call = (tool, {**arguments, chosen[0]: chosen[1]})  # type: ignore[dict-item]
        steps = _spoilt(place, at, call, rng, gives_up=gives_up)
        return Planted(steps, _told_of_call(place, steps, call, chosen[0], gives_up=gives_up))

    return planter


def _other_value(place: Place, call: Call, rng: random.Random) -> tuple[str, Any] | None:
    """A value that gold gives the same argument in some other task."""
    tool, arguments = call
    names = [
        (name, [v for v in place.stage.values[tool, name] if v != arguments[name]])
        for name in arguments
    ]
    names = [(name, values) for name, values in names if values]
    if not names:
        return None
    name, values = rng.choice(names)
    return name, rng.choice(values)


def _made_up(_place: Place, call: Call, rng: random.Random) -> tuple[str, Any] | None:
    """A value of the right type that nobody has heard of."""
    arguments = call[1]
    if not isinstance(arguments, dict) or not arguments:
        return None
    name = rng.choice(sorted(arguments))
    value = arguments[name]
    if isinstance(value, bool):
        return name, not value
    if isinstance(value, int | float):
        return name, value + rng.choice([1, 7])
    if isinstance(value, str):
        return name, f"{value}x"
    return None if not isinstance(value, list) or not value else (name, value[:-1])


def _as_said(place: Place, call: Call, rng: random.Random) -> tuple[str, Any] | None:
    """The value as the user said it: in another unit or form than the tool takes."""
    gold = place.task.turns[place.index].gold or ()
    said = next(g.as_said for g in gold if (g.tool, dict(g.arguments)) == call)
    names = [name for name, value in said.items() if isinstance(value, type(call[1][name]))]  # type: ignore[index]
    return None if not names else (name := rng.choice(sorted(names)), said[name])


def _out_of_set(place: Place, call: Call, rng: random.Random) -> tuple[str, Any] | None:
    """A value that is none of those declared."""
    rules = place.stage.template.contract[call[0]].rules
    names = [n for n in call[1] if "enum" in place.schema(call[0], n)]  # type: ignore[arg-type]
    names += [n for n in call[1] if n in rules and rules[n].allowed]
    return (rng.choice(names), "nothing of the sort") if names else None


def _ill_typed(place: Place, call: Call, rng: random.Random) -> tuple[str, Any] | None:
    plain = {"string": 17, "integer": "seventeen", "number": "much", "boolean": "maybe"}
    plain |= {"array": "none", "object": "none"}  # type: ignore[dict-item]
    kinds = {name: place.schema(call[0], name).get("type") for name in call[1]}  # type: ignore[union-attr]
    names = [name for name, kind in kinds.items() if kind in plain]
    if not names:
        return None
    name = rng.choice(names)
    return name, plain[str(kinds[name])]


def _unexpected(_place: Place, _call: Call, rng: random.Random) -> tuple[str, Any] | None:
    return rng.choice(["please", "urgent", "note"]), rng.choice([True, "now", 3])


def _missing(*, gives_up: bool) -> Planter:
    def planter(place: Place, rng: random.Random) -> Planted | None:
        at = _pick(place, rng)
        if at is None:
            return None
        tool, arguments = place.calls[at]
        required = [n for n in place.stage.template.contract[tool].required if n in arguments]
        if not required:
            return None
        name = rng.choice(required)
        call: Call = (tool, {k: v for k, v in arguments.items() if k != name})  # type: ignore[union-attr]
        steps = _spoilt(place, at, call, rng, gives_up=gives_up)
        return Planted(steps, lambda _: one("argument_missing", tool, name))

    return planter


def _unread(name: Callable[[str, random.Random], tuple[str, str | None]], kind: str) -> Planter:
    """A call of which the name or the arguments cannot be used."""

    def planter(place: Place, rng: random.Random) -> Planted | None:
        at = _pick(place, rng)
        if at is None:
            return None
        tool, arguments = place.calls[at]
        called, text = name(tool, rng)
        call: Call = (called, json.dumps(arguments) if text is None else text)
        steps = _spoilt(place, at, call, rng, gives_up=rng.random() < 0.3)
        return Planted(steps, lambda _: one(kind, called or None))

    return planter


def _torn(tool: str, rng: random.Random) -> tuple[str, str | None]:
    return tool, rng.choice(['{"a": 1', "[]", "{'a': 1}", '{"a": }', "please"])


def _unknown(tool: str, rng: random.Random) -> tuple[str, str | None]:
    return rng.choice([f"{tool}_now", f"do_{tool}", tool.replace("_", "") + "s"]), None


def too_early(place: Place, rng: random.Random) -> Planted | None:
    """A tool that is held out is called before it appears, in a turn that wants a call."""
    hidden = place.task.turns[place.index].hidden
    at = _pick(place, rng)
    if at is None or not hidden:
        return None
    name = rng.choice(hidden)
    call: Call = (name, json.dumps(place.calls[at][1]))
    steps = _spoilt(place, at, call, rng, gives_up=False)
    return Planted(steps, lambda _: one("unknown_tool", name))


def lost(place: Place, rng: random.Random) -> Planted | None:
    """Nothing but tools that are not there, until it gives up or the limit ends it."""
    if not place.calls:
        return None
    names = rng.sample(["book_table", "send_mail", "open_file", "ask_user"], 2)
    count = rng.randint(1, place.stage.template.limits.steps)
    made = [names[0], *(rng.choice(names) for _ in range(count - 1))]
    steps: Steps = [[(name, rng.choice([{}, dict(place.calls[-1][1])]))] for name in made]
    return Planted(steps, lambda _: one("unknown_tool", names[0]))


def spurious(place: Place, rng: random.Random) -> Planted | None:
    """A call where the agent should ask or decline."""
    if place.task.turns[place.index].gold != ():
        return None
    calls = place.elsewhere
    if not calls:
        return None
    tool, arguments = rng.choice(calls)
    other = _other_value(place, (tool, arguments), rng) or _made_up(place, (tool, arguments), rng)
    changed = {**arguments, **(dict([other]) if other else {})}  # type: ignore[dict-item]
    return Planted([[(tool, changed)]], lambda _: one("spurious_call", tool))


def wrong_answer(place: Place, rng: random.Random) -> Planted | None:
    if not place.task.turns[place.index].answer:
        return None
    steps = [step for step in place.laid_out(place.calls, rng) if step]
    told = one("answer_mismatch", None)
    return Planted(steps, lambda _: told, answer=rng.choice(["I do not know.", "Done.", ""]))


def dawdled(place: Place, rng: random.Random) -> Planted | None:
    """Harmless reads until the limit ends the turn, before gold's first call."""
    tools = {tool for tool, _ in place.calls}
    reads = [tool for tool in place.tools if place.stage.reads.get(tool) and tool not in tools]
    if not place.calls or not reads:
        return None
    tool = rng.choice(reads)
    read = dict(rng.choice(place.stage.reads[tool]))
    steps: Steps = [[(tool, dict(read))] for _ in range(place.stage.template.limits.steps)]

    def told(seen: Seen) -> Labels:
        return NONE if seen.errors(place.index) else one("limit_reached", place.calls[0][0])

    return Planted([*steps, list(place.calls)], told)


FAULTS: Mapping[str, Planter] = {
    "dropped call": dropped,
    "no call": nothing,
    "swapped call": swapped,
    "repeated call": repeated,
    "reordered calls": reordered,
    "wrong argument": _argument(_other_value),
    "refused argument, given up": _argument(_other_value, gives_up=True),
    "made-up argument": _argument(_made_up),
    "silent rule broken": _argument(_as_said),
    "value out of its set": _argument(_out_of_set),
    "ill-typed argument": _argument(_ill_typed),
    "ill-typed, given up": _argument(_ill_typed, gives_up=True),
    "extra argument": _argument(_unexpected),
    "missing argument": _missing(gives_up=False),
    "missing, given up": _missing(gives_up=True),
    "malformed call": _unread(_torn, "malformed_call"),
    "call without a name": _unread(lambda _tool, _rng: ("", None), "malformed_call"),
    "unknown tool": _unread(_unknown, "unknown_tool"),
    "nothing but unknown tools": lost,
    "tool too early": too_early,
    "call on abstention": spurious,
    "wrong answer": wrong_answer,
    "limit reached": dawdled,
}
"""By sort; each returns None where it does not apply."""

ERRORS = ("ill-typed argument", "extra argument", "missing argument", "malformed call")
ERRORS += ("unknown tool", "value out of its set", "made-up argument")
"""Faults that a policy can be told of and correct."""


def corrected(place: Place, rng: random.Random) -> tuple[Steps, str] | None:
    """An error and right after it the right call, with the id of the call that erred."""
    at = _pick(place, rng)
    room = place.stage.template.limits.steps - len(place.calls) - 1
    if at is None or room < 1:
        return None
    alone = Place(place.stage, place.task, place.index, (place.calls[at],))
    planted = FAULTS[rng.choice(ERRORS)](alone, rng)
    if planted is None:
        return None
    (wrong,) = flat(planted.steps)
    steps = [[call] for call in (*place.calls[:at], wrong, *place.calls[at:])]
    return steps, f"{place.index}-{at}-0"
