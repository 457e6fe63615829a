"""Contract, words and tasks agree: beside what loading refuses, what it has no eyes for."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from seal.envs.environment import check_names
from seal.envs.template import EnvironmentTemplate
from seal.errors import EnvironmentFailure, did_you_mean
from seal.soundness.finding import Finding, reference, show_command, task_place, tool_place, verdict
from seal.soundness.probes import allowed_values, gold_of, properties_of
from seal.types import Rule, ToolContract

AGREE_CLAIM = "contract, words and tasks agree"
_GAP = re.compile(r"\{(\w+)\}")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def contract_agrees(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Docstrings and rules speak of what the contract has, and gold keeps the declared rules.

    A template that has loaded agrees with its contract by name: loading refuses any other.
    """
    extent = f"{len(template.contract.tools)} tools, {len(template.renderer.slots)} slots"
    return verdict(AGREE_CLAIM, extent, _problems(template))


def _problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    # An imported benchmark's prose and tasks are not the author's to mend.
    authored = template.world.imported_contract() is None
    for name, tool in template.contract.tools.items():
        if authored:
            yield from _prose_problems(template, tool.contract, tool.prose.parameters)
        for argument, rule in tool.contract.rules.items():
            schema = properties_of(tool.contract)[argument]
            for problem in _rule_problems(rule, schema):
                yield Finding(
                    check=AGREE_CLAIM,
                    passed=False,
                    where=tool_place(template, name),
                    message=f"the rule of {name}.{argument}: {problem}",
                    remedy="Mend the rule, or move it to the argument that it is meant for.",
                    command=f"seal show {reference(template)}",
                )
    yield from _hidden_methods(template)
    yield from _gold_problems(template)
    yield from _unkept_prerequisites(template)
    if authored:
        yield from _user_problems(template)


def _hidden_methods(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Tools and checks in whose place the world of the first task has a value."""
    for task in template.tasks(None)[:1]:
        try:
            values = vars(template.new_world(task))
        except EnvironmentFailure:
            return  # Playing gold says so.
        for name in (*template.contract.tools, *check_names(template.world)):
            if name in values:
                yield Finding(
                    check=AGREE_CLAIM,
                    passed=False,
                    where=tool_place(template, name),
                    message=f"reset sets self.{name}, which hides the method {name}",
                    remedy="Give one of them another name.",
                )


def _prose_problems(
    template: EnvironmentTemplate, contract: ToolContract, prose: Mapping[str, str]
) -> Iterator[Finding]:
    for argument in prose:
        if argument not in contract.arguments:
            known = ", ".join(contract.arguments) or "none"
            yield Finding(
                check=AGREE_CLAIM,
                passed=False,
                where=tool_place(template, contract.name),
                message=f"the docstring of {contract.name} describes '{argument}', which is no "
                "argument of it, so nobody would read it",
                remedy=f"Arguments: {known}.{did_you_mean(argument, contract.arguments)}",
                command=f"seal show {reference(template)}",
            )


def _rule_problems(rule: Rule, schema: Mapping[str, Any]) -> Iterator[str]:
    if rule.minimum is not None and rule.maximum is not None and rule.minimum > rule.maximum:
        yield f"minimum {rule.minimum} is above maximum {rule.maximum}"
    for value in allowed_values(rule):
        if not _fits(value, schema):
            kind = schema.get("type", "another type")
            yield f"it allows {value!r}, and the argument's type is {kind}"
            return


def _fits(value: JsonValue, schema: Mapping[str, Any]) -> bool:
    """Whether a schema takes a value, or a list of such; objects are left aside."""
    if "anyOf" in schema:
        return any(_fits(value, option) for option in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", (schema.get("const"),))
    kind = str(schema.get("type"))
    if kind == "array":
        return _fits(value, schema.get("items") or {})
    if kind not in _TYPES:
        return True
    return isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


def _gold_problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    """The first task of each argument in which gold breaks the declared rule."""
    said = set()
    for task in template.tasks(None):
        for call in gold_of(task):
            rules = template.contract[call.tool].rules
            for argument, value in call.arguments.items():
                wrong = _breach(rules.get(argument, Rule()), value)
                if wrong and (call.tool, argument) not in said:
                    said.add((call.tool, argument))
                    yield Finding(
                        check=AGREE_CLAIM,
                        passed=False,
                        where=tool_place(template, call.tool),
                        message=f"gold of task {task.id} sends {call.tool}.{argument} = {value!r}, "
                        f"and its rule says {wrong}",
                        remedy="Mend the rule or gold: words will tell the rule to every policy.",
                        command=show_command(template, task),
                    )


def _breach(rule: Rule, value: JsonValue) -> str:
    """What a rule says against a value, empty if nothing."""
    if isinstance(value, list):
        return next((wrong for item in value if (wrong := _breach(rule, item))), "")
    allowed = allowed_values(rule)
    if allowed and isinstance(value, str | int | float) and value not in allowed:
        return f"that it may be {', '.join(map(repr, allowed))[:160]}"
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is not None and rule.minimum is not None and number < rule.minimum:
        return f"at least {rule.minimum}"
    if number is not None and rule.maximum is not None and number > rule.maximum:
        return f"at most {rule.maximum}"
    return ""


def _unkept_prerequisites(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Tools that require another one, which gold never calls before them."""
    kept: dict[str, bool] = {}
    for task in template.tasks(None):
        before: set[str] = set()
        for call in gold_of(task):
            required = template.contract[call.tool].rule.requires
            if required is not None:
                kept[call.tool] = kept.get(call.tool, False) or required in before
            before.add(call.tool)
    for tool in (tool for tool, ever in kept.items() if not ever):
        yield Finding(
            check=AGREE_CLAIM,
            passed=False,
            where=tool_place(template, tool),
            message=f"{tool} requires {template.contract[tool].rule.requires}, and in no task does "
            "gold call that before it",
            remedy="Mend `requires` or gold: words will tell the rule to every policy.",
            command=f"seal show {reference(template)}",
        )


def _user_problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Turns in which the user says nothing, or has a gap where a value belongs."""
    arguments = {a for tool in template.contract.tools.values() for a in tool.contract.arguments}
    for task in template.tasks(None):
        for index, turn in enumerate(task.turns):
            gaps = [name for name in _GAP.findall(turn.user) if name in arguments]
            if gaps or not turn.user.strip():
                said = f"has the gap {{{gaps[0]}}} in what is said" if gaps else "says nothing"
                yield Finding(
                    check=AGREE_CLAIM,
                    passed=False,
                    where=task_place(template, task),
                    message=f"task {task.id}, turn {index}: the user {said}",
                    remedy="Write what the user wants; is an f missing before the quotes?",
                    command=show_command(template, task),
                )
                return
