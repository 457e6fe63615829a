"""The contract of a world that an author wrote: type hints and rules of its `@tool` methods."""

import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticSerializationError

from seal.envs.contract import Contract, Prose, Tool, build_tool
from seal.envs.environment import Conventions, Environment, RuleSource, ToolMark
from seal.envs.misfits import author_code
from seal.envs.time_limit import within
from seal.errors import TemplateError, did_you_mean
from seal.types import Rule

_OPTIONS = ("requires", "mutates")
"""What `@tool` takes beside rules."""
_BARE: Mapping[Any, str] = {
    dict: "a model, or dict[str, T]",
    list: "list[T]",
    tuple: "tuple[T, ...]",
    set: "set[T]",
    frozenset: "frozenset[T]",
}
"""Hints that do not say what is inside, and what would."""
_NAME_CHARS = 64
_NAME = re.compile(rf"[A-Za-z0-9_]{{1,{_NAME_CHARS}}}")
"""Names of tools that the APIs of models take."""
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_SHOWN = 60
"""Characters of a default that does not fit."""


def contract_of(world: type[Environment], conventions: Conventions) -> Contract:
    """The contract of every `@tool` method, in the author's order.

    Raises:
        TemplateError: A hint is missing or is no JSON type, a rule names no argument or cannot be
            drawn, or something requires a tool that is not there.
    """
    marks = {
        name: (member, mark)
        for owner in reversed(world.__mro__)
        for name, member in vars(owner).items()
        for mark in [getattr(one, "__seal_tool__", None) for one in _layers(member)]
        if mark is not None
    }
    for name, (member, _) in marks.items():
        _refuse_odd(name, member, world)
    tools = {name: _tool_of(name, *marked, conventions) for name, marked in marks.items()}
    problems = [
        f"{_place(marks[name][0])}: {problem}"
        for name, tool in tools.items()
        for problem in _unknown_prerequisites(tool, tools)
    ]
    if problems:
        raise TemplateError("\n".join(problems))
    return Contract(tools)


def refuse_taken_names(world: type[Environment]) -> None:
    """Refuse a tool that replaces a method of `Environment`: nothing would work as it should.

    Raises:
        TemplateError: There is such a tool.
    """
    owners = [owner for owner in world.__mro__ if owner not in Environment.__mro__]
    for name, member in (item for owner in owners for item in vars(owner).items()):
        if hasattr(member, "__seal_tool__") and (name[0] == "_" or name in vars(Environment)):
            raise TemplateError(
                f"{_place(member)}: a tool may not be called '{name}': SEAL or Python itself "
                f"calls a method so.\nCall it such as '{name.strip('_')}_it'."
            )


def _layers(member: Any) -> list[Any]:  # noqa: ANN401
    """A member, and the function inside if it is a class or static method."""
    return [getattr(member, "__func__", None), member]


def _refuse_odd(name: str, member: Any, world: type[Environment]) -> None:  # noqa: ANN401
    """Refuse what is no method, and methods whose result nobody would see."""
    if not inspect.isfunction(member) or not inspect.signature(member).parameters:
        raise TemplateError(
            f"{inspect.getsourcefile(world)}: {name} is no method.\n"
            f"Write @tool, and nothing else, on the line above: def {name}(self, ...)"
        )
    if not _NAME.fullmatch(name):
        raise TemplateError(
            f"{_place(member)}: '{name}' is no name for a tool: a model's API would refuse it.\n"
            f"Write at most {_NAME_CHARS} letters (a to z), digits and _."
        )
    waits = inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
    if waits or inspect.isgeneratorfunction(member):
        raise TemplateError(
            f"{_place(member)}: {name} is {'async' if waits else 'a generator'}: "
            "what it does would never be done.\n"
            "Write a plain method that returns what a policy is to read."
        )


def _unknown_prerequisites(tool: Tool, tools: Mapping[str, Tool]) -> Iterator[str]:
    contract = tool.contract
    for argument, rule in [("", contract.rule), *contract.rules.items()]:
        if rule.requires is not None and rule.requires not in tools:
            owner = f"{contract.name}.{argument}".removesuffix(".")
            yield (
                f"{owner} requires '{rule.requires}', which is no tool.\n"
                f"Tools: {', '.join(tools)}.{did_you_mean(rule.requires, tools)}"
            )


def _place(method: Any) -> str:  # noqa: ANN401
    return f"{inspect.getsourcefile(method)}:{inspect.getsourcelines(method)[1]}"


def _tool_of(name: str, method: Any, mark: ToolMark, conventions: Conventions) -> Tool:  # noqa: ANN401
    where = _place(method)
    fields = _fields(name, method, where)
    for argument in mark.rules:
        if argument not in fields:
            raise TemplateError(
                f"{where}: {name} declares a rule for '{argument}', which is no argument of it.\n"
                f"Arguments: {', '.join(fields) or 'none'}. "
                f"Options of @tool: {', '.join(_OPTIONS)}."
                f"{did_you_mean(argument, [*fields, *_OPTIONS])}"
            )
    for argument, given in fields.items():
        with author_code(TemplateError, f"{where}: {name}({argument}): the default"):
            problem = _misfit(*given)
        if problem:
            raise TemplateError(
                f"{where}: {name}({argument}): the default {problem}.\n"
                f"Write {argument}: T = VALUE, and T | None where the value is None."
            )
    rules = {
        argument: _rule(source, conventions, f"{where}: {name}: the rule of '{argument}'")
        for argument, source in mark.rules.items()
    }
    return build_tool(
        name,
        fields,
        prose=_docstring(method),
        rule=_requirement(mark, conventions, f"{where}: {name}: requires"),
        rules={argument: rule for argument, rule in rules.items() if rule.stated()},
        mutates=mark.mutates,
        where=where,
    )


def _fields(name: str, method: Any, where: str) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401
    """Hint and default of every argument; `...` marks a required one."""
    with author_code(TemplateError, f"{where}: the type hints of {name}"):
        hints = typing.get_type_hints(method, include_extras=True)
    fields: dict[str, tuple[Any, Any]] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TemplateError(
                f"{where}: {name}({parameter}) cannot be given by name, as a policy gives it.\n"
                "Write each argument by itself, without *, ** and /; a list is list[T]."
            )
        if parameter.name not in hints:
            raise TemplateError(
                f"{where}: {name}({parameter.name}) has no type hint.\n"
                "The hints of a tool are its contract."
            )
        hint = hints[parameter.name]
        if bare := _bare(hint, ()):
            raise TemplateError(
                f"{where}: {name}({parameter.name}): '{bare.__name__}' does not say what is "
                f"inside.\nWrite {_BARE[bare]}."
            )
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hint, default)
    return fields


def _misfit(hint: Any, default: Any) -> str | None:  # noqa: ANN401
    """Why a default, which a policy reads and the tool is given, is none; None: it is one."""
    try:
        model = create_model("Given", __config__=_STRICT, value=(hint, Field(alias="value")))
    except (RecursionError, TypeError, ValueError, PydanticUserError):
        return None  # The hint is wrong already, which is said of the whole contract.
    if default is ...:
        inside = not model.model_fields["value"].is_required()
        return "stands inside Field, where Python does not see it" if inside else None
    try:
        model.model_validate({"value": default}).model_dump_json()
    except ValidationError as cause:
        said = cause.errors(include_url=False)[0]["msg"]
        return f"{repr(default)[:_SHOWN]} does not fit the hint ({said})"
    except PydanticSerializationError:
        return f"{repr(default)[:_SHOWN]} is no JSON"
    return None


def _bare(hint: Any, seen: tuple[Any, ...]) -> Any:  # noqa: ANN401 - a hint
    """The first collection in a hint, models included, whose items have no type; None: none."""
    inner = list(typing.get_args(hint))
    kind = typing.get_origin(hint) or hint
    if inspect.isclass(kind) and kind in _BARE and not inner:
        return kind
    if inspect.isclass(hint) and issubclass(hint, BaseModel) and hint not in seen:
        seen = (*seen, hint)
        inner = [field.annotation for field in hint.model_fields.values()]
    return next((found for one in inner if (found := _bare(one, seen))), None)


def _requirement(mark: ToolMark, conventions: Conventions, what: str) -> Rule:
    tool = _drawn(mark.requires, conventions, what)
    if tool is not None and not isinstance(tool, str):
        raise TemplateError(f"{what} is {tool!r}; name a tool, or None for none.")
    return Rule(requires=tool)


def _rule(source: RuleSource, conventions: Conventions, what: str) -> Rule:
    rule = _drawn(source, conventions, what)
    if rule is None:
        return Rule()
    if not isinstance(rule, Rule):
        raise TemplateError(f"{what} is {rule!r}, which is no Rule.\nWrite such as Rule(unit=...).")
    return rule


def _drawn(source: object, conventions: Conventions, what: str) -> object:
    """What an author declared, or what their function of the conventions returns."""
    if not callable(source):
        return source
    try:
        with author_code(TemplateError, what):
            return within(lambda: source(conventions))
    except TemplateError as failure:
        cause = failure.__cause__
        key = str(cause.args[0]) if isinstance(cause, KeyError) and cause.args else None
        if key is None or key in conventions:
            raise
        raise TemplateError(
            f"{what}: no convention '{key}'.\n"
            f"Conventions: {', '.join(conventions) or 'none'}.{did_you_mean(key, conventions)}"
        ) from cause


def _docstring(method: Any) -> Prose:  # noqa: ANN401
    """First paragraph, and the `Args:` entries, of a Google-style docstring."""
    text = inspect.getdoc(method) or ""
    head, _, rest = text.partition("\nArgs:\n")
    parameters: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break
        entry, colon, prose = line.strip().partition(":")
        if colon and entry.isidentifier() and len(line) - len(line.lstrip()) <= 4:
            name = entry
            parameters[name] = prose.strip()
        elif name and line.strip():
            parameters[name] += f" {line.strip()}"
    return Prose(" ".join(head.split("\n\n")[0].split()), parameters)
