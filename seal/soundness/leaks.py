"""No words give an answer away: neither the seed texts nor what an error cites."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from seal.envs.slots import rule_values
from seal.envs.template import EnvironmentTemplate
from seal.soundness.facts import Facts
from seal.soundness.finding import Finding, reference, verdict, world_file
from seal.soundness.probes import gold_of

SEED_CLAIM = "no seed text holds an answer"
LIVE_CLAIM = "no error cites an answer"
CRASH_CLAIM = "tools refuse and never crash"
_RARE = 3
"""A value that fewer scenarios ask for is an answer; one that many do is a word of the domain."""
_SHORTEST = 4


def seeds_keep_answers(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Looks for gold values of few scenarios, which are no rule's, in the seed texts."""
    seeds = {slot: text for slot, text in template.original.texts.items() if text}
    return verdict(SEED_CLAIM, f"{len(seeds)} seed texts", _seed_problems(template, seeds))


def _seed_problems(template: EnvironmentTemplate, seeds: dict[str, str]) -> Iterator[Finding]:
    answers = _rare_answers(template) if seeds else {}
    for slot_id, text in seeds.items():
        tool = template.renderer.slots[slot_id].tool
        words = set(re.findall(r"[\w@.:/-]*\w", text.casefold()))
        for (owner, argument), values in answers.items():
            if tool in (None, owner):
                for value in sorted(values & words):
                    yield Finding(
                        check=SEED_CLAIM,
                        passed=False,
                        where=str(template.folder / "slots.toml"),
                        message=f"{slot_id} says '{value}', which gold sends as {owner}."
                        f"{argument} in fewer than {_RARE} scenarios",
                        remedy="State the rule behind the value, or declare the values with "
                        f"Rule(allowed=...) on {argument}.",
                    )


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
            message=f"{leak.value} is live and equals gold, in task {leak.task} "
            f"({leak.scenarios} scenarios)",
            remedy="Cite what all answers have in common (a form, a range, the values to choose "
            "from), never the one that is right.",
            command=f"seal show {reference(template)} --task {leak.task}",
        )
        for leak in facts.leaks
    )
    return verdict(LIVE_CLAIM, extent, problems)


def tools_refuse(template: EnvironmentTemplate, facts: Facts) -> Iterable[Finding]:
    """An exception that is no `ToolError` would leave rollouts unscored."""
    problems = (
        Finding(
            check=CRASH_CLAIM,
            passed=False,
            where=world_file(template),
            message=crash,
            remedy="Raise ToolError(code, message) for what the policy did wrong.",
        )
        for crash in facts.crashes.values()
    )
    return verdict(CRASH_CLAIM, f"{facts.calls:,} calls", problems)
