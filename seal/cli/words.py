"""What `seal show ENV` prints: the words as the policy reads them, and a task with its gold."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seal.cli.console import print_json_line, print_line
from seal.envs.contract import default_message
from seal.envs.render import SYSTEM, SYSTEM_RECOVERIES, TOOL_RECOVERIES
from seal.envs.template import EnvironmentTemplate, read_slot_texts
from seal.errors import ConfigError, did_you_mean
from seal.records import RunFolder, read_candidate
from seal.soundness.finding import reference
from seal.types import CallError, Candidate, GoldCall, RecoveryKind, RenderedTool, Rule, Task

_PLAIN, _EVOLVED = "  ", "+ "


def show_environment(
    template: EnvironmentTemplate,
    task_id: str | None,
    candidate_name: str | None,
    error: str | None,
    *,
    as_json: bool,
) -> None:
    """Print prompt and tools under a candidate, what is said about a kind of error, or a task.

    Raises:
        ConfigError: There is no such task, candidate or kind of error.
    """
    candidate = chosen_candidate(template, candidate_name)
    task = _task(template, task_id) if task_id else None
    kind = _kind(error) if error else None
    if as_json:
        print_json_line(_json(template, candidate, task, kind))
        return
    if kind or not task:
        print_line(f"{template.name}: {_described(template, candidate)}")
        for line in _marked(lambda words: _lines(template, words, kind), template, candidate):
            print_line(line)
    if task:
        for line in _task_lines(task):
            print_line(line)
        if not kind:
            print_line(f"What the policy reads: seal show {reference(template)}")


def _described(template: EnvironmentTemplate, candidate: Candidate) -> str:
    changed = _changed(template, candidate)
    if not changed:
        return "the author's original words"
    return f"candidate {candidate.id}, + marks what it changes: {', '.join(changed)}"


def _changed(template: EnvironmentTemplate, candidate: Candidate) -> list[str]:
    """The slots in which a candidate differs from the original words."""
    original = template.original.texts
    return [slot for slot in original if candidate.texts.get(slot, "") != original[slot]]


def chosen_candidate(template: EnvironmentTemplate, name: str | None) -> Candidate:
    """The words of a run or of a file; the original words by default.

    Args:
        template: The environment whose slots they are for.
        name: A run's folder (its final words), `RUN/NAME` as `candidate_of` takes it, a candidate's
            JSON file, or a `slots.toml`, which speaks where it does over the original words.

    Raises:
        ConfigError: It cannot be read, or its texts fit no slots here.
        TemplateError: A `slots.toml` holds what fits no slots here.
    """
    if name is None:
        return template.original
    path = Path(name)
    if path.is_file() and path.suffix == ".toml":
        return template.original.with_texts(read_slot_texts(path, template.renderer))
    if path.is_dir():
        candidate = candidate_of(RunFolder(path), "final")
    elif not path.is_file() and path.parent.is_dir() and path.parent != Path():
        candidate = candidate_of(RunFolder(path.parent), path.name)
    else:
        candidate = read_candidate(path)
    _refuse_strangers(template, candidate, name)
    if problems := template.renderer.problems_of(candidate.texts):
        raise ConfigError("\n".join(f"{name}: {problem}" for problem in problems))
    return candidate


def candidate_of(folder: RunFolder, name: str) -> Candidate:
    """A candidate of a run: `original`, `final`, a generation's number, or an id or its start.

    Raises:
        ConfigError: There is no run here, or no such candidate in it.
    """
    from seal.evolve.lineage import Generation

    ids = {"original": str(folder.settings().get("candidate", ""))}
    generations = list(folder.lines("generations", Generation).read())
    ids["final"] = generations[-1].candidate if generations else ids["original"]
    ids |= {str(generation.index): generation.candidate for generation in generations}
    return folder.candidate(ids.get(name, name))


def _refuse_strangers(template: EnvironmentTemplate, candidate: Candidate, name: str) -> None:
    """A candidate of another environment is one problem, not one for each of its slots."""
    unknown = [slot for slot in candidate.texts if slot not in template.renderer.slots]
    if len(unknown) > 1 and len(unknown) * 2 > len(candidate.texts):
        count = len(candidate.texts)
        share = "none" if len(unknown) == count else f"{count - len(unknown)}"
        raise ConfigError(
            f"{name}: {share} of its {count} slots exist in {template.name}, such as "
            f"'{unknown[0]}'; perhaps it is of another environment."
        )


def _task(template: EnvironmentTemplate, task_id: str) -> Task:
    tasks = {task.id: task for task in template.tasks(None)}
    if task_id not in tasks:
        some = ", ".join(list(tasks)[:3])
        raise ConfigError(
            f"{template.name}: no task '{task_id}'.\n"
            f"There are {len(tasks)} tasks, such as {some}.{did_you_mean(task_id, tasks)}"
        )
    return tasks[task_id]


def _kind(name: str) -> RecoveryKind:
    kinds = {str(kind): kind for kind in (*TOOL_RECOVERIES, *SYSTEM_RECOVERIES)}
    if name not in kinds:
        raise ConfigError(
            f"--error {name}: no such kind of error.\nKinds: {', '.join(kinds)}."
            f"{did_you_mean(name, kinds)}"
        )
    return kinds[name]


def _marked(
    render: Callable[[Candidate], Iterator[str]],
    template: EnvironmentTemplate,
    candidate: Candidate,
) -> Iterator[str]:
    """The lines under a candidate, a plus before those that the original words do not have."""
    before = set(render(template.original))
    for line in render(candidate):
        yield f"{_PLAIN if line in before else _EVOLVED}{line}".rstrip()


def _lines(
    template: EnvironmentTemplate, candidate: Candidate, kind: RecoveryKind | None
) -> Iterator[str]:
    return _recovery_lines(template, candidate, kind) if kind else _word_lines(template, candidate)


def _word_lines(template: EnvironmentTemplate, candidate: Candidate) -> Iterator[str]:
    limits = template.limits
    yield f"limits: {limits.steps} steps a turn, {limits.call_chars:,} characters a call or result"
    yield ""
    yield "system"
    yield from (f"  {line}" for line in template.renderer.prompt(candidate).splitlines())
    for rendered in _visible(template, candidate, None):
        yield ""
        yield from tool_lines(rendered)


def _visible(
    template: EnvironmentTemplate, candidate: Candidate, task: Task | None
) -> list[RenderedTool]:
    """The tools that a task has, or all of them."""
    rendered = template.renderer.tools(candidate)
    names = rendered if task is None or task.tools is None else task.tools
    return [rendered[name] for name in names]


def tool_lines(tool: RenderedTool) -> Iterator[str]:
    """A tool in a line, and a line for each of its parameters."""
    properties = _table(tool.parameters.get("properties"))
    required = tool.parameters.get("required")
    needed = required if isinstance(required, list) else []
    signature = ", ".join(
        f"{name}{'' if name in needed else '?'}: {_type(_table(schema))}"
        for name, schema in properties.items()
    )
    yield f"{tool.name}({signature})"
    yield from (f"  {line}" for line in tool.description.splitlines())
    yield from _parameter_lines(properties, "")


def _parameter_lines(properties: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, schema in properties.items():
        inner = _table(schema)
        prose = " ".join(str(inner.get("description", "")).split())
        yield f"    {prefix}{name}: {prose}".rstrip().removesuffix(":")
        for nested in (inner, _table(inner.get("items"))):
            yield from _parameter_lines(_table(nested.get("properties")), f"{prefix}{name}.")


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _type(schema: Mapping[str, Any]) -> str:
    """A schema's type in a few characters."""
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(_table(option)) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(_table(schema.get('items')))}"
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", ">="), ("maximum", "<="))
        if key in schema
    ]
    return " ".join([str(schema.get("type", "any")), *bounds])


def _recovery_lines(
    template: EnvironmentTemplate, candidate: Candidate, kind: RecoveryKind
) -> Iterator[str]:
    """Each text once, after the tools and the arguments that it is said about."""
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in _recoveries(template, candidate, kind):
        about = said.setdefault((one.content, one.words), {})
        about.setdefault(one.tool or SYSTEM, []).extend([one.argument] if one.argument else [])
    for (content, words), tools in said.items():
        yield "; ".join(
            f"{tool}: {', '.join(arguments)}" if arguments else tool
            for tool, arguments in tools.items()
        )
        yield from (f"  {line}" for line in content.splitlines())
        yield f"    {words}"


class _Recovery(NamedTuple):
    """What is said about one error."""

    tool: str | None
    argument: str | None
    content: str
    slot: str | None
    """The slot whose text is in it."""
    words: str
    """What the slot adds, as a sentence."""


def _recoveries(
    template: EnvironmentTemplate, candidate: Candidate, kind: RecoveryKind
) -> Iterator[_Recovery]:
    """What is said about errors of this kind, per tool and argument."""
    if kind in SYSTEM_RECOVERIES:
        yield _recovery(template, candidate, None, kind, None)
        return
    for name, tool in template.contract.tools.items():
        # Only a refusal may be about no argument; an argument that is too many has no name yet.
        if kind == "argument_unexpected":
            yield _recovery(template, candidate, name, kind, "<name>")
            continue
        for argument in [*([None] if kind == "refused" else []), *tool.contract.arguments]:
            yield _recovery(template, candidate, name, kind, argument)


def _recovery(
    template: EnvironmentTemplate,
    candidate: Candidate,
    tool: str | None,
    kind: RecoveryKind,
    argument: str | None,
) -> _Recovery:
    rule = Rule()
    if tool is not None:
        contract = template.contract[tool]
        rule = contract.rules.get(argument, Rule()) if argument else contract.rule
    message = "<message of the tool's ToolError>"
    if kind != "refused":
        message = default_message(kind, tool or "<name>", argument or "")
    error = CallError(kind=kind, code=kind, message=message, argument=argument, rule=rule)
    content, slot = template.renderer.recovery(tool, error, candidate)
    words = _addition(template, candidate, f"{tool or SYSTEM}.recovery.{kind}", slot)
    return _Recovery(tool, argument, content, slot, words)


def _addition(
    template: EnvironmentTemplate, candidate: Candidate, slot: str, used: str | None
) -> str:
    """What a recovery slot adds to a message, or why it adds nothing."""
    text = candidate.texts.get(slot, "")
    if slot not in template.renderer.slots:
        return "no words are added: the block prints no recovery slot"
    if used:
        return f"with the words of {slot}: {text}"
    if text:
        return f"no words are added: {slot} cites nothing that this error has"
    return "no words are added: the recovery slot is empty"


def _task_lines(task: Task) -> Iterator[str]:
    yield f"task {task.id}, scenario {task.scenario}, {task.group}, split {task.split}"
    if task.tools is not None:
        yield f"  tools: {', '.join(task.tools)}"
    if task.checks:
        yield f"  checks: {', '.join(task.checks)}"
    for number, turn in enumerate(task.turns):
        yield f"  turn {number}"
        yield f"    user: {turn.user}"
        if turn.gold is None:
            yield "    gold: none; checks decide"
        elif not turn.gold:
            yield "    gold: no call; ask or decline"
        yield from (f"    gold: {_call(call)}" for call in turn.gold or ())
        if turn.answer:
            yield f"    answer holds: {', '.join(turn.answer)}"
        if turn.hidden:
            yield f"    hidden: {', '.join(turn.hidden)}"


def _call(call: GoldCall) -> str:
    given = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
    )
    said = ", ".join(f"{name} as {value!r}" for name, value in call.as_said.items())
    return f"{call.tool}({given}){f'    the user said {said}' if said else ''}"


def _json(
    template: EnvironmentTemplate,
    candidate: Candidate,
    task: Task | None,
    kind: RecoveryKind | None,
) -> dict[str, object]:
    """Prompt and tools as an OpenAI-compatible server gets them, and what else was asked for."""
    answer: dict[str, object] = {
        "environment": template.name,
        "candidate": candidate.id,
        "changed": _changed(template, candidate),
        "system": template.renderer.prompt(candidate),
        "tools": [
            {"type": "function", "function": tool.model_dump(mode="json")}
            for tool in _visible(template, candidate, task)
        ],
    }
    if task:
        answer["task"] = task.model_dump(mode="json")
    if kind:
        answer["recoveries"] = [
            {
                "tool": one.tool,
                "argument": one.argument,
                "content": one.content,
                "slot": one.slot,
            }
            for one in _recoveries(template, candidate, kind)
        ]
    return answer
