"""No words give an answer away: neither what a policy reads nor what an error cites."""

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator

from seal.envs.slots import rule_values
from seal.envs.template import EnvironmentTemplate
from seal.soundness.facts import Facts, words_of
from seal.soundness.finding import (
    Finding,
    reference,
    show_command,
    tool_place,
    verdict,
    world_file,
)
from seal.soundness.probes import gold_of

WORDS_CLAIM = "no word holds an answer"
LIVE_CLAIM = "no error cites an answer"
CONDUCT_CLAIM = "tools keep their word, and never crash"
_RARE = 3
"""A value that fewer scenarios ask for is an answer; one that many do is a word of the domain."""
_SHORTEST = 4


def words_keep_answers(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Looks for gold values of few scenarios, which are no rule's, in all that the policy reads."""
    # An imported benchmark's prose is not the author's to mend, and often lists values by example.
    imported = template.world.imported_contract() is not None
    tools = "slot texts" if imported else f"{len(template.contract.tools)} tools"
    problems = _word_problems(template, imported=imported)
    return verdict(WORDS_CLAIM, f"the prompt and {tools}", problems)


def _word_problems(template: EnvironmentTemplate, *, imported: bool) -> Iterator[Finding]:
    renderer, original = template.renderer, template.original
    texts = {"": renderer.prompt(original)}
    for name, rendered in renderer.tools(original).items():
        texts[name] = "" if imported else rendered.words()
    for slot, text in original.texts.items():
        owner = renderer.slots[slot].tool or ""
        texts[owner] = f"{texts[owner]} {text}"
    answers = _rare_answers(template)
    for reader, text in texts.items():
        words = words_of(text)
        for (tool, argument), values in answers.items():
            if reader in ("", tool):
                for value in sorted(values & words):
                    yield _leak(template, reader, value, f"{tool}.{argument}")


def _leak(template: EnvironmentTemplate, reader: str, value: str, argument: str) -> Finding:
    return Finding(
        check=WORDS_CLAIM,
        passed=False,
        where=_place(template, reader, value),
        message=f"the words of {reader or 'the system message'} say '{value}', which gold sends as "
        f"{argument} in fewer than {_RARE} scenarios",
        remedy="State the rule behind the value, or declare the values with "
        f"Rule(allowed=...) on {argument.rpartition('.')[2]}.",
        command=f"seal show {reference(template)}",
    )


def _place(template: EnvironmentTemplate, reader: str, value: str) -> str:
    """The first of the texts behind some words that has the value in it, with its line."""
    folder = template.folder
    files = [folder / "slots.toml", folder / "env.toml", folder / "system.jinja"]
    files += [folder / "tools" / f"{reader}.jinja"] if reader else []
    for file in reversed(files):
        if file.is_file():
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if value in words_of(line):
                    return f"{file}:{number}"
    method = getattr(template.world, reader, None)
    lines, first = inspect.getsourcelines(method) if method else ([], 0)
    for number, line in enumerate(lines, first):
        if value in words_of(line):
            return f"{world_file(template)}:{number}"
    return world_file(template)


def _rare_answers(template: EnvironmentTemplate) -> dict[tuple[str, str], set[str]]:
    """Per tool and argument, the gold texts that few scenarios send and no rule declares."""
    seen: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for task in template.tasks(None):
        for call in gold_of(task):
            for argument, value in call.arguments.items():
                text = str(value).casefold()
                if len(text) >= _SHORTEST and not isinstance(value, bool | list | dict):
                    seen[call.tool, argument, text].add(task.scenario)
    answers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (tool, argument, text), scenarios in seen.items():
        contract = template.contract[tool]
        rule = contract.rules.get(argument)
        public = " ".join(rule_values(rule).values()) if rule else ""
        public += str(contract.parameters)
        if len(scenarios) < _RARE and text not in public.casefold():
            answers[tool, argument].add(text)
    return answers


def errors_keep_answers(template: EnvironmentTemplate, facts: Facts) -> Iterable[Finding]:
    """A live value that equals gold would hand the policy its answer for one wrong call."""
    extent = f"{facts.calls:,} calls, {len(facts.live)} live values"
    problems = (
        Finding(
            check=LIVE_CLAIM,
            passed=False,
            where=tool_place(template, leak.value.tool),
            message=f"{leak.value} is live and equals gold, in task {leak.task} "
            f"({leak.scenarios} scenarios)",
            remedy="Cite what all answers have in common (a form, a range, the values to choose "
            "from), never the one that is right.",
            command=f"seal show {reference(template)} --task {leak.task}",
        )
        for leak in facts.leaks
    )
    return verdict(LIVE_CLAIM, extent, problems)


def tools_keep_their_word(template: EnvironmentTemplate, facts: Facts) -> Iterable[Finding]:
    """Tools answer or refuse; an exception that is no `ToolError` would leave rollouts unscored."""
    problems = (
        Finding(
            check=CONDUCT_CLAIM,
            passed=False,
            where=fault.where,
            message=fault.message,
            remedy=fault.remedy,
            command=show_command(template, fault.task),
        )
        for fault in facts.faults
    )
    return verdict(CONDUCT_CLAIM, f"{facts.calls:,} calls", problems)
