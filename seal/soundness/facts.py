"""Facts and live values: which rule values may be written out, and which change between worlds.

A *fact* is the same in every scenario; words may state it. A *live* value varies; stated in words
it would be wrong elsewhere, or give an answer away, so only an error that happens may cite it.
"""

import inspect
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from seal.envs.slots import rule_values
from seal.envs.template import EnvironmentTemplate
from seal.envs.time_limit import patience
from seal.soundness.conduct import Conduct
from seal.soundness.finding import sample_tasks
from seal.soundness.probes import Fault, Probe, gold_of, probes
from seal.types import CallError, Rule, Task

_TASKS = 96
"""Tasks that are fuzzed, unless the caller names them."""
_SEEN = 3
"""Scenarios in which an undeclared value must have been cited, always the same, to be a fact."""
_LEAK_SHARE = 0.5
"""A number can equal gold by chance; one that does in half of the scenarios is no chance."""
_TOLD_SHARE = 0.6
"""The same for the one known value that a message names; one that is always the same is no leak."""
_WORD = re.compile(r"[\w@.:/-]*\w")


class LiveValue(NamedTuple):
    """A rule value that varies: never written out, never shown to a rewriter."""

    tool: str
    argument: str | None
    key: str

    def __str__(self) -> str:
        return dotted(self.tool, self.argument, self.key)


class Leak(NamedTuple):
    """A live value that is a task's answer."""

    value: LiveValue
    task: str
    scenarios: int
    """Scenarios in which it equalled gold."""


def words_of(text: str) -> set[str]:
    """The words of a text in small letters; codes, addresses and numbers stay whole."""
    return set(_WORD.findall(text.casefold()))


def dotted(tool: str, argument: str | None, key: str) -> str:
    """`book_room.day.format`, or `book_room.requires` for a rule of the tool itself."""
    return ".".join(part for part in (tool, argument, key) if part)


@dataclass(frozen=True, slots=True)
class Facts:
    """What fuzzing found out about an environment's rules."""

    facts: Mapping[tuple[str, str | None], Mapping[str, str]]
    """Rule key -> text, per tool and argument."""
    live: tuple[LiveValue, ...]
    refusals: Mapping[str, tuple[str, ...]]
    """The codes with which each tool refused, the most frequent first."""
    leaks: tuple[Leak, ...]
    faults: tuple[Fault, ...]
    """What tools did that no tool should."""
    calls: int
    """Calls that reached a tool."""

    def of(self, tool: str, argument: str | None = None) -> dict[str, str]:
        """The facts of an argument (a nested one has its outer one's), or of the tool itself."""
        outer = argument.split(".")[0] if argument else None
        return dict(self.facts.get((tool, outer), {}))

    def codes(self, tool: str) -> tuple[str, ...]:
        """The codes with which a tool was seen to refuse."""
        return self.refusals.get(tool, ())

    def written_out(self) -> dict[str, str]:
        """Every fact by its dotted name."""
        return {
            dotted(tool, argument, key): text
            for (tool, argument), known in self.facts.items()
            for key, text in known.items()
        }


def collect_facts(
    template: EnvironmentTemplate, *, seed: int = 0, tasks: Sequence[Task] | None = None
) -> Facts:
    """Fuzz the tools over many tasks, and tell facts from live values.

    The same environment, seed and tasks give the same facts. Declared rules are facts without being
    cited, unless an error was seen to cite another value.

    Args:
        template: The environment.
        seed: Seed of the fuzzing.
        tasks: The tasks whose worlds are fuzzed; None: a sample over all splits.
    """
    chosen = sample_tasks(template, _TASKS) if tasks is None else list(tasks)
    tally = _Tally(template, chosen)
    for name, tool in template.contract.tools.items():
        for argument, rule in [(None, tool.contract.rule), *tool.contract.rules.items()]:
            tally.declare(name, argument, rule)
    rng = random.Random(f"facts/{template.name}/{seed}")
    with patience(inspect.getsourcefile(template.world)):
        for probe in probes(template, chosen, rng):
            tally.add(probe)
    # What one scenario alone shows may differ in the next: it takes two to make a fact.
    return tally.facts(max(2, min(_SEEN, len({task.scenario for task in chosen}))))


class _Tally:
    """What errors have cited so far, and where."""

    def __init__(self, template: EnvironmentTemplate, tasks: Sequence[Task]) -> None:
        self.calls = 0
        self._conduct = Conduct(template)
        self._answers: dict[tuple[str, str], set[str]] = defaultdict(set)
        for task in tasks:
            for call in gold_of(task):
                for argument, sent in call.arguments.items():
                    self._answers[call.tool, argument].add(str(sent).casefold())
        self._texts: dict[LiveValue, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._declared: set[LiveValue] = set()
        self._codes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._told: dict[LiveValue, dict[str, tuple[str, str, bool]]] = defaultdict(dict)
        self._comparable: dict[LiveValue, set[str]] = defaultdict(set)
        self._equal: dict[LiveValue, dict[str, str]] = defaultdict(dict)
        self._textual: set[LiveValue] = set()

    def declare(self, tool: str, argument: str | None, rule: Rule) -> None:
        for key, text in rule_values(rule).items():
            if text:
                self._texts[LiveValue(tool, argument, key)][text] = set()
                self._declared.add(LiveValue(tool, argument, key))

    def add(self, probe: Probe) -> None:
        self.calls += 1
        self._conduct.add(probe)
        error = probe.executed.error if probe.executed else None
        if error is None:
            return
        self._codes[probe.tool][error.code] += 1
        for key, text in rule_values(error.rule).items():
            if text:
                value = LiveValue(probe.tool, error.argument, key)
                self._texts[value][text].add(probe.task.scenario)
                self._compare(value, error, probe.task)
        self._read(probe, error)

    def _read(self, probe: Probe, error: CallError) -> None:
        """Note whether the one answer to some task that a message names is that of this task.

        What the call itself or the user says is no news, and of several values none is told.
        """
        words = words_of(error.message)
        users = " ".join(turn.user for turn in probe.task.turns)
        known = words_of(" ".join([users, *map(str, probe.sent.values())]))
        for (tool, argument), answers in self._answers.items():
            if tool != probe.tool or error.argument not in (None, argument):
                continue
            named = (words & answers) - known
            wanted = _gold_texts(probe.task, tool, argument)
            if wanted and len(named) == 1:
                text = named.pop()
                value = LiveValue(tool, argument, "message")
                seen = (probe.task.id, text, text in wanted)
                self._told[value].setdefault(probe.task.scenario, seen)

    def _compare(self, value: LiveValue, error: CallError, task: Task) -> None:
        """Note whether a cited single value is what gold sends there."""
        cited = _single(getattr(error.rule, value.key))
        if cited is None or value.key == "requires":
            return
        wanted = [
            sent
            for call in gold_of(task)
            if call.tool == value.tool
            for name, sent in call.arguments.items()
            if value.argument in (None, name)
        ]
        if not wanted:
            return
        self._comparable[value].add(task.scenario)
        if cited in [str(sent) for sent in wanted]:
            self._equal[value].setdefault(task.scenario, task.id)
            if value.key in ("format", "unit"):
                self._textual.add(value)

    def facts(self, enough: int) -> Facts:
        """The verdict on every value: the same wherever it was seen, and seen often enough."""
        facts: dict[tuple[str, str | None], dict[str, str]] = defaultdict(dict)
        live = []
        for value, texts in self._texts.items():
            scenarios = set().union(*texts.values())
            if len(texts) == 1 and (value in self._declared or len(scenarios) >= enough):
                facts[value.tool, value.argument][value.key] = next(iter(texts))
            else:
                live.append(value)
        return Facts(
            facts=dict(facts),
            live=tuple(sorted(live, key=str)),
            refusals={
                tool: tuple(sorted(codes, key=lambda code: (-codes[code], code)))
                for tool, codes in self._codes.items()
            },
            leaks=tuple(self._leaks(live)),
            faults=self._conduct.faults(),
            calls=self.calls,
        )

    def _leaks(self, live: Sequence[LiveValue]) -> list[Leak]:
        leaks = []
        for value in live:
            equal = self._equal.get(value, {})
            often = len(equal) >= _LEAK_SHARE * len(self._comparable.get(value, ()))
            if equal and (often or value in self._textual):
                leaks.append(Leak(value, min(equal.values()), len(equal)))
        for value, told in self._told.items():
            right = [(task, text) for task, text, is_gold in told.values() if is_gold]
            often = len(right) > _TOLD_SHARE * len(told)
            if often and len({text for _, text in right}) > 1:
                leaks.append(Leak(value, min(task for task, _ in right), len(right)))
        return leaks


def _gold_texts(task: Task, tool: str, argument: str) -> set[str]:
    """What gold of a task sends as an argument, in small letters."""
    return {
        str(call.arguments[argument]).casefold()
        for call in gold_of(task)
        if call.tool == tool and argument in call.arguments
    }


def _single(value: JsonValue | tuple[object, ...]) -> str | None:
    """The text of a rule value that names one value alone."""
    if isinstance(value, tuple) and len(value) == 1:
        return str(value[0])
    return str(value) if isinstance(value, str | int | float) else None
