"""Calls that fuzz an environment's tools: near gold, near its rules, and off both."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from seal.envs.contract import Accepted, accept
from seal.envs.environment import Environment
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import Executed, execute, finish_turn, state_difference
from seal.errors import EnvironmentFailure
from seal.soundness.finding import failed_at, tool_place
from seal.types import GoldCall, Rule, Task, ToolCall, ToolContract

_STARTS = 3
"""Worlds per task: as reset leaves it, part of the way through gold, and at gold's end."""
_CALLS = 24
"""Calls per world, one after the other: refusals depend on what was done before."""
_WATCHED = 100
"""Calls of each tool whose effect on the state is looked at; a state can be large."""


REFUSE = "Raise ToolError(code, message) for what the policy did wrong."
_CITE = "Cite arguments, rules and tools that are in the contract."
_RETURN = "Return text, or what JSON can hold."


@dataclass(frozen=True, slots=True)
class Fault:
    """What a tool did instead of answering or refusing."""

    where: str
    message: str
    remedy: str
    task: Task


@dataclass(frozen=True, slots=True)
class Probe:
    """One call and what came of it; a crash is an exception that is no refusal."""

    task: Task
    tool: str
    executed: Executed | None
    sent: Mapping[str, JsonValue]
    changed: tuple[str, ...] = ()
    """What it changed in the public state, as far as that was looked at."""
    crash: Fault | None = None


class Values:
    """Values worth sending: from schemas, from gold of any task, from rules, and perturbed."""

    def __init__(self, template: EnvironmentTemplate, tasks: Sequence[Task]) -> None:
        self._contract = template.contract
        self._known: dict[tuple[str, str], list[JsonValue]] = defaultdict(list)
        self._by_type: dict[type, list[JsonValue]] = defaultdict(list)
        for name, tool in template.contract.tools.items():
            for argument, schema in properties_of(tool.contract).items():
                rule = tool.contract.rules.get(argument, Rule())
                for value in [*_schema_values(schema), *_rule_values(rule)]:
                    self._add(name, argument, value)
        for task in tasks:
            for call in gold_of(task):
                for arguments in (call.arguments, call.as_said):
                    for argument, value in arguments.items():
                        self._add(call.tool, argument, value)

    def _add(self, tool: str, argument: str, value: JsonValue) -> None:
        known = self._known[tool, argument]
        if value not in known:
            known.append(value)
            self._by_type[type(value)].append(value)

    def draw(
        self, rng: random.Random, tool: str, argument: str, own: Sequence[JsonValue]
    ) -> JsonValue:
        """A value for an argument; `own` are those that the present task's gold sends there."""
        pool = [*own] if own and rng.randint(0, 1) else self._known[tool, argument]
        schema = properties_of(self._contract[tool]).get(argument, {})
        value = rng.choice(pool) if pool else blank(schema)
        if rng.randint(0, 3) == 0:
            alike = self._by_type[type(value)]
            value = rng.choice(alike) if alike and rng.randint(0, 1) else _perturbed(rng, value)
        return value


def probes(
    template: EnvironmentTemplate, tasks: Sequence[Task], rng: random.Random
) -> Iterator[Probe]:
    """Fuzz the tools in worlds of these tasks; calls that break the contract are not sent.

    A tool that has crashed is left alone from then on.
    """
    values = Values(template, tasks)
    borrowed: dict[str, list[GoldCall]] = defaultdict(list)
    for task in tasks:
        for call in gold_of(task):
            borrowed[call.tool].append(call)
    # What a benchmark's tools do to its state is its own affair.
    watched = 0 if template.world.imported_contract() is not None else _WATCHED
    made: Counter[str] = Counter()
    crashed: set[str] = set()
    for task in tasks:
        gold = gold_of(task)
        for done in (0, rng.randint(0, len(gold)), len(gold))[:_STARTS]:
            world = _started(template, task, gold[:done])
            if world is None:
                break
            names = list(task.tools if task.tools is not None else template.contract.tools)
            for _ in range(_CALLS if names else 0):
                tool = rng.choice(names)
                if tool in crashed:
                    continue
                arguments = _arguments(template.contract[tool], gold, borrowed[tool], values, rng)
                look = made[tool] < watched
                probe = _sent(template, task, world, tool, arguments, look=look)
                if probe is not None:
                    made[tool] += 1
                    crashed.update([tool] if probe.crash else [])
                    yield probe


def called_with(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call as findings name it."""
    return f"{tool}, called with {json.dumps(dict(arguments), ensure_ascii=False)[:200]}"


def gold_of(task: Task) -> list[GoldCall]:
    """All gold calls of a task, in order."""
    return [call for turn in task.turns for call in turn.gold or ()]


def _started(
    template: EnvironmentTemplate, task: Task, calls: Sequence[GoldCall]
) -> Environment | None:
    """A world part of the way through gold; None if it cannot be brought there."""
    try:
        world = template.new_world(task)
        for call in calls:
            _execute(template, world, call.tool, call.arguments)
    except EnvironmentFailure:
        return None
    return world


def _arguments(
    contract: ToolContract,
    gold: Sequence[GoldCall],
    others: Sequence[GoldCall],
    values: Values,
    rng: random.Random,
) -> dict[str, JsonValue]:
    """A gold call with one argument or none changed, or a call drawn argument by argument."""
    own = [call for call in gold if call.tool == contract.name]
    models = own or others
    mine = {
        name: [call.arguments[name] for call in own if name in call.arguments]
        for name in contract.arguments
    }
    if models and rng.randint(0, 3):
        arguments = dict(rng.choice(models).arguments)
        if contract.arguments and rng.randint(0, 5):
            changed = rng.choice(contract.arguments)
            arguments[changed] = values.draw(rng, contract.name, changed, ())
        return arguments
    return {
        name: values.draw(rng, contract.name, name, mine[name])
        for name in contract.arguments
        if name in contract.required or rng.randint(0, 1)
    }


def _sent(
    template: EnvironmentTemplate,
    task: Task,
    world: Environment,
    tool: str,
    arguments: Mapping[str, JsonValue],
    *,
    look: bool,
) -> Probe | None:
    """One call; `look`: at the state before and after it."""
    changed: list[str] = []
    try:
        before = finish_turn(world, ()).state if look else {}
        executed = _execute(template, world, tool, arguments)
        if look and executed:
            changed = state_difference(before, finish_turn(world, ()).state)
    except EnvironmentFailure as failure:
        place = failed_at(template, failure)
        why = " ".join(str(failure).split("\n")).removeprefix(f"{template.name}: ")
        called = called_with(tool, arguments)
        message = f"{called}: {why.removeprefix(f'tool {tool}: ')}"
        remedy = REFUSE if place else _CITE if " cites " in why else _RETURN
        crash = Fault(place or tool_place(template, tool), message, remedy, task)
        return Probe(task, tool, None, arguments, crash=crash)
    return Probe(task, tool, executed, arguments, tuple(changed)) if executed else None


def _execute(
    template: EnvironmentTemplate, world: Environment, tool: str, arguments: Mapping[str, JsonValue]
) -> Executed | None:
    call = ToolCall(id="probe", tool=tool, arguments=json.dumps(dict(arguments)))
    accepted = accept(template.contract, call, (tool,))
    return execute(template, world, accepted, call.id) if isinstance(accepted, Accepted) else None


def properties_of(contract: ToolContract) -> dict[str, Any]:
    """The schema of each argument."""
    properties = contract.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _schema_values(schema: Mapping[str, Any]) -> list[JsonValue]:
    """What a schema itself says may be sent."""
    found = [*schema.get("enum", ())]
    found += [schema[key] for key in ("const", "default", "minimum", "maximum") if key in schema]
    for option in schema.get("anyOf", ()):
        found += _schema_values(option) or [blank(option)]
    return found or [blank(schema)]


def _rule_values(rule: Rule) -> list[JsonValue]:
    """The values on both sides of what a rule draws."""
    found: list[JsonValue] = [*(rule.allowed or ())]
    if isinstance(rule.allowed, dict):
        found += allowed_values(rule)
    for bound in (rule.minimum, rule.maximum):
        if bound is not None:
            found += [bound, bound - 1, bound + 1]
    return found


def allowed_values(rule: Rule) -> tuple[JsonValue, ...]:
    """The values that may be sent; a mapping's keys are what they stand for."""
    allowed = rule.allowed or ()
    return tuple(allowed.values()) if isinstance(allowed, dict) else allowed


_BLANKS: Mapping[str, JsonValue] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}


def blank(schema: Mapping[str, Any]) -> JsonValue:
    """Some value of a schema's type."""
    if "enum" in schema:
        first: JsonValue = schema["enum"][0]
        return first
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("required", ())
        properties = schema.get("properties", {})
        return {name: blank(properties.get(name, {})) for name in wanted}
    if kind == "array":
        items = schema.get("items")
        return [blank(items)] if isinstance(items, Mapping) else []
    return _BLANKS.get(str(kind), "x")


def _perturbed(rng: random.Random, value: JsonValue) -> JsonValue:
    """A value beside this one, of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, value * 60, value * 1000])
    if isinstance(value, float):
        return rng.choice([value + 1, -value, 0.0, value * 1000])
    if isinstance(value, str):
        return rng.choice([value.upper(), value.lower(), f"{value}x", value[:-1], ""])
    if isinstance(value, list):
        return rng.choice([[], value[:1], value + value])
    return value
