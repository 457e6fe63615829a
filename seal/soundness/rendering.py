"""Every block renders, whatever a candidate says and whatever went wrong with a call."""

from collections.abc import Iterable, Iterator

from seal.envs.render import SYSTEM_RECOVERIES, TOOL_RECOVERIES
from seal.envs.slots import PLACEHOLDERS
from seal.envs.template import EnvironmentTemplate
from seal.errors import TemplateError, blame
from seal.soundness.finding import Finding, problem_of, reference, verdict
from seal.types import CallError, Candidate, RecoveryKind, Rule

CLAIM = "every block renders on every kind of error"
_FULL = Rule(
    allowed={"name": "value"},
    format="a form",
    unit="a unit",
    minimum=0,
    maximum=1,
    requires="a tool",
)
_RECEIVED = (None, "x" * 200, {"a": [1, None, "{b}"]})


def blocks_render(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Renders prompt, tools and recoveries with empty, seed and full texts, for every error.

    Loading has rendered each block once, with no rule to cite; a block that branches on what an
    error says can still fail on the branch that loading did not take.
    """
    candidates = {
        "with empty slots": Candidate(texts=dict.fromkeys(template.renderer.slots, "")),
        "with the seed texts": template.original,
        "with full slots": full_candidate(template),
    }
    blocks = 1 + len(SYSTEM_RECOVERIES)
    blocks += sum(
        1 + len(tool.contract.arguments) + len(TOOL_RECOVERIES)
        for tool in template.contract.tools.values()
    )
    return verdict(CLAIM, f"{blocks} blocks", _problems(template, candidates))


def full_candidate(template: EnvironmentTemplate) -> Candidate:
    """A candidate whose every slot speaks and uses each placeholder that it may."""
    return Candidate(
        texts={
            slot.id: " ".join(
                ["Text of {{a}} slot.", *(f"See {{{key}}}." for key in PLACEHOLDERS[slot.kind])]
            )
            for slot in template.renderer.slots.values()
        }
    )


def _problems(template: EnvironmentTemplate, candidates: dict[str, Candidate]) -> Iterator[Finding]:
    for slot, times in template.renderer.printed.items():
        if times > 1:
            yield Finding(
                check=CLAIM,
                passed=False,
                where=_place(template, *_printed_as(slot)),
                message=template.renderer.absence(slot),
                remedy="A text that is there twice costs its tokens twice.",
                command=f"seal show {reference(template)}",
            )
    said: set[str] = set()
    for how, candidate in candidates.items():
        for error, command in _failures(template, candidate):
            if str(error) not in said:
                said.add(str(error))
                found = problem_of(CLAIM, error, command)
                yield found.model_copy(update={"message": f"{found.message} ({how})"})


def _printed_as(slot: str) -> tuple[str, str]:
    """A slot's tool (or none) and what its text is called in a block."""
    owner, _, rest = slot.partition(".")
    kind, _, argument = rest.partition(".")
    nested = f"constraint['{argument}']" if "." in argument else f"constraint.{argument}"
    return owner, nested if kind == "constraint" else kind


def _place(template: EnvironmentTemplate, owner: str, text: str) -> str:
    """The last line with a text in the author's file of a tool, or of the system."""
    name = f"tools/{owner}.jinja" if owner in template.contract.tools else "system.jinja"
    path = template.folder / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{path}:{found[-1]}" if found else str(path)


def _silence(template: EnvironmentTemplate, tool: str | None, kind: RecoveryKind) -> TemplateError:
    place = _place(template, tool or "", f"block recovery_{kind} ")
    return TemplateError(
        f"{place}: block recovery_{kind}: it says nothing, so a policy would not know that its "
        "call failed.\nPrint {{ error.message }} in it."
    )


def _failures(
    template: EnvironmentTemplate, candidate: Candidate
) -> Iterator[tuple[TemplateError, str]]:
    """Why blocks do not render, each with the command that shows it."""
    renderer, show = template.renderer, f"seal show {reference(template)}"
    try:
        with blame(TemplateError, f"{template.folder}: the prompt or a tool"):
            prompt = renderer.prompt(candidate)
            renderer.tools(candidate)
        described = bool(template.manifest.description.strip())
        if not prompt and described and candidate is template.original:
            place = _place(template, "", "block prompt ")
            yield (
                TemplateError(f"{place}: block prompt: empty.\nPrint {{{{ prose }}}} in it."),
                show,
            )
    except TemplateError as cause:
        yield cause, show
    owners: list[tuple[str | None, tuple[RecoveryKind, ...]]] = [(None, SYSTEM_RECOVERIES)]
    owners += [(name, TOOL_RECOVERIES) for name in template.contract.tools]
    for tool, kinds in owners:
        for kind in kinds:
            for error in call_errors(template, tool, kind):
                try:
                    with blame(
                        TemplateError, f"{template.folder}: {tool or 'system'}: recovery_{kind}"
                    ):
                        content, _ = renderer.recovery(tool, error, candidate)
                    if not content and candidate is template.original:
                        yield _silence(template, tool, kind), f"{show} --error {kind}"
                except TemplateError as cause:
                    yield cause, f"{show} --error {kind}"


def call_errors(
    template: EnvironmentTemplate, tool: str | None, kind: RecoveryKind
) -> Iterable[CallError]:
    """Errors of one kind that between them say everything an error can say, and nothing."""
    yield CallError(kind=kind, code=kind, message="A message.")
    arguments: list[str | None] = [None]
    rules: dict[str | None, Rule] = {}
    if tool is not None:
        contract = template.contract[tool]
        arguments += contract.arguments
        rules = dict([(None, contract.rule), *contract.rules.items()])
    for argument in arguments:
        for rule in (rules.get(argument, Rule()), _FULL):
            for received in _RECEIVED:
                yield CallError(
                    kind=kind,
                    code=kind,
                    message="A message.",
                    argument=argument,
                    received=received,
                    rule=rule,
                )
