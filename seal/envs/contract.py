"""Tool contracts: from types or imported schemas, and the validation of calls against them.

A contract holds no prose. Validation is strict ("9" is no integer, 9.0 is one) and never repairs.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PydanticUserError,
    ValidationError,
    create_model,
)

from seal.errors import EnvironmentFailure, TemplateError
from seal.types import (
    Arguments,
    CallError,
    RecoveryKind,
    Rule,
    ToolCall,
    ToolContract,
    content_hash,
)

_STRICT = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=False)
_DEPTH = 64
"""Levels of nested arguments; no tool means more, and no record could hold much more."""
_PROSE_KEYS = ("description", "title", "examples")


@dataclass(frozen=True, slots=True)
class Prose:
    """The words that come with a tool: its docstring, or an imported description."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool: its contract, its own prose, and what validates its arguments."""

    contract: ToolContract
    prose: Prose
    validator: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Contract:
    """All tools of an environment, by name."""

    tools: Mapping[str, Tool]

    def __getitem__(self, name: str) -> ToolContract:
        return self.tools[name].contract

    def declared(self) -> list[dict[str, Any]]:
        """The part of the contract hash that the tools make up."""
        return [tool.contract.model_dump() for _, tool in sorted(self.tools.items())]


def build_tool(
    name: str,
    fields: Mapping[str, tuple[Any, Any]],
    *,
    prose: Prose,
    rule: Rule | None = None,
    rules: dict[str, Rule] | None = None,
    mutates: bool = True,
    where: str = "",
) -> Tool:
    """A tool from (type, default) per argument; `...` marks a required one.

    Arguments may have any name: pydantic only ever sees them as aliases.
    """
    aliased: dict[str, Any] = {
        f"argument_{i}": (hint, Field(default, alias=argument))
        for i, (argument, (hint, default)) in enumerate(fields.items())
    }
    try:
        model = create_model(f"{name}_arguments", __config__=_STRICT, **aliased)
        schema = model.model_json_schema(by_alias=True)
    except (RecursionError, TypeError, ValueError, PydanticUserError) as cause:
        raise TemplateError(
            f"{where or name}: the arguments of {name} are no JSON types "
            f"({str(cause).splitlines()[0]})."
        ) from cause
    if "$defs" in schema:
        schema = _inline(schema, schema.pop("$defs"), (), where or name)
    parameters = without_prose(schema)
    parameters.setdefault("properties", {})
    return Tool(
        ToolContract(
            name=name,
            parameters=parameters,
            rule=rule or Rule(),
            rules=rules or {},
            mutates=mutates,
        ),
        prose,
        model,
    )


def _inline(node: Any, defs: dict[str, Any], seen: tuple[str, ...], where: str) -> Any:  # noqa: ANN401
    """The schema with every `$ref` written out."""
    if isinstance(node, list):
        return [_inline(item, defs, seen, where) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = str(node["$ref"]).rsplit("/", 1)[-1]
        if target in seen:
            raise TemplateError(f"{where}: argument type {target} contains itself; spell it out.")
        return _inline(defs[target], defs, (*seen, target), where)
    return {key: _inline(value, defs, seen, where) for key, value in node.items()}


def without_prose(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """The schema without descriptions and titles; arguments of those names stay."""

    def strip(node: Any, *, names: bool) -> Any:  # noqa: ANN401
        if isinstance(node, list):
            return [strip(item, names=False) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("uniqueItems") is True and isinstance(node.get("default"), list):
            # A set has another order in every process.
            node = {**node, "default": sorted(node["default"], key=json.dumps)}
        return {
            key: strip(value, names=key == "properties" and not names)
            for key, value in node.items()
            if names or key not in _PROSE_KEYS
        }

    result: dict[str, JsonValue] = strip(schema, names=False)
    return result


_SIMPLE: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "float": float,
    "boolean": bool,
    "null": type(None),
}


def hint_of(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a type
    """The Python type of an imported JSON schema."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    options = schema.get("anyOf") or schema.get("type")
    if isinstance(options, list):
        kinds = [hint_of(o if isinstance(o, Mapping) else {"type": o}) for o in options]
        return Union[tuple(kinds)]  # noqa: UP007 - built at run time
    if options in ("array", "tuple", "list"):
        return list[hint_of(schema.get("items") or {})]  # type: ignore[misc]
    if options in ("object", "dict"):
        return dict[str, JsonValue]
    return _SIMPLE.get(str(options), JsonValue)


def parse_arguments(text: str) -> Arguments | None:
    """The JSON object in a call's raw text, None if there is none that a record could hold."""
    try:
        value = _DECODER.decode(text)
        return _kept(value, _DEPTH) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _kept(value: Any, depth: int) -> Any:  # noqa: ANN401
    """A value as records hold it: 9.0 is 9, which integer and number arguments both accept.

    Raises:
        ValueError: It is nested too deeply, infinite, or half of a surrogate pair.
    """
    if not depth:
        raise ValueError("nested too deeply")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("too large a number")
        return int(value) if value.is_integer() else value
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list):
        return [_kept(item, depth - 1) for item in value]
    elif isinstance(value, dict):
        return {_kept(key, depth): _kept(item, depth - 1) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that fits its contract, with arguments of the hinted types."""

    tool: str
    arguments: dict[str, Any]
    given: Arguments
    """The arguments as JSON, without defaults."""


def accept(contract: Contract, call: ToolCall, visible: Collection[str]) -> Accepted | CallError:
    """Check one call against the contract, without running it."""
    if call.tool in visible and len(call.arguments) < _SHORT:
        known = _simple(contract.tools[call.tool], call.arguments)
        if known is not None:
            return Accepted(call.tool, dict(known[0]), dict(known[1]))
    arguments = parse_arguments(call.arguments or "{}")
    if not call.tool or arguments is None:
        shown = call.arguments[:80]
        said = default_message("malformed_call", call.tool)
        return _error("malformed_call", said, None, shown)
    if call.tool not in visible:
        said = default_message("unknown_tool", call.tool)
        return _error("unknown_tool", said, None, call.tool)
    tool = contract.tools[call.tool]
    try:
        return Accepted(call.tool, _typed(tool, arguments), arguments)
    except ValidationError as cause:
        return _validation_error(tool, arguments, cause)


def _typed(tool: Tool, arguments: Arguments) -> dict[str, Any]:
    """The arguments with the types of the hints; those left out are the tool's to fill in.

    Raises:
        ValidationError: They do not fit the hints.
        EnvironmentFailure: An author's validator raised something else.
    """
    # From JSON, since strict Python would refuse a list for a tuple and a text for an enum.
    try:
        model = tool.validator.model_validate_json(json.dumps(arguments), strict=True)
    except ValidationError:
        raise
    except Exception as cause:
        # A model that an author wrote may have a validator of its own.
        what = f"the arguments of {tool.contract.name}"
        raise EnvironmentFailure(f"{what}: {type(cause).__name__}: {cause}") from cause
    return {
        alias: getattr(model, name)
        for name, info in tool.validator.model_fields.items()
        if name in model.model_fields_set and (alias := info.alias)
    }


@lru_cache(maxsize=4096)
def _simple(tool: Tool, text: str) -> tuple[dict[str, Any], Arguments] | None:
    """The arguments of a right call all of whose values are plain: rollouts repeat each other."""
    arguments = parse_arguments(text or "{}")
    if arguments is None:
        return None
    try:
        typed = _typed(tool, arguments)
    except ValidationError:
        return None
    return (typed, arguments) if _PLAIN.issuperset(map(type, typed.values())) else None


_SHORT = 2000
"""Characters of a call that is worth remembering."""
_PLAIN = frozenset({str, int, float, bool, type(None)})


_KINDS: dict[str, RecoveryKind] = {
    "missing": "argument_missing",
    "extra_forbidden": "argument_unexpected",
}
_VALUE_ERRORS = (
    "enum",
    "literal_error",
    "string_too",
    "string_pattern",
    "greater_than",
    "less_than",
    "multiple_of",
    "too_long",
    "too_short",
    "value_error",
    "finite_number",
)
_ORDER = ("argument_missing", "argument_unexpected", "argument_type", "argument_value")


def _validation_error(tool: Tool, arguments: Arguments, cause: ValidationError) -> CallError:
    """The worst of a call's problems: one at a time, as a person would say it."""
    found = []
    for error in cause.errors(include_url=False, include_context=False, include_input=False):
        # A field that an argument's object lacks or has too many: the argument is there.
        kind = _KINDS.get(error["type"]) if len(error["loc"]) == 1 else None
        kind = kind or (
            "argument_value" if error["type"].startswith(_VALUE_ERRORS) else "argument_type"
        )
        found.append((_ORDER.index(kind), kind, str(error["loc"][0])))
    _, kind, argument = min(found)
    message = default_message(kind, tool.contract.name, argument)
    rule = tool.contract.rules.get(argument, Rule())
    return _error(kind, message, argument, arguments.get(argument), rule)


def default_message(kind: RecoveryKind, tool: str, argument: str = "") -> str:
    """What SEAL itself says about a call that never reaches its tool: `error.message` in words."""
    return {
        "malformed_call": "This is not a call: a name and a JSON object.",
        "unknown_tool": f"There is no tool '{tool}'.",
        "argument_missing": f"Argument '{argument}' is missing.",
        "argument_unexpected": f"{tool} has no argument '{argument}'.",
        "argument_type": f"Argument '{argument}' has the wrong type.",
        "argument_value": f"Argument '{argument}' has a value that is not accepted.",
    }[kind]


def _error(
    kind: RecoveryKind,
    message: str,
    argument: str | None,
    received: JsonValue,
    rule: Rule | None = None,
) -> CallError:
    return CallError(
        kind=kind,
        code=kind,
        message=message,
        argument=argument,
        received=received,
        rule=rule or Rule(),
    )


def contract_hash(parts: Mapping[str, Any]) -> str:
    """The hash that a candidate can never move: contracts, tasks, gold outputs, verifier code."""
    return content_hash(parts, 16)
