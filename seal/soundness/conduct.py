"""Whether tools keep their word: what fuzzing shows of them beside the rules that they cite."""

import json
import re
from collections import Counter

from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import Executed
from seal.soundness.finding import tool_place
from seal.soundness.probes import REFUSE, Fault, Probe, allowed_values, called_with

_OFTEN = 5
"""Refusals of a declared value, and no success, before it is said that the tool never takes it."""
_ERROR = re.compile(r"\W*error\b", re.IGNORECASE)


class Conduct:
    """The first fault of each sort and tool."""

    def __init__(self, template: EnvironmentTemplate) -> None:
        self._template = template
        self._faults: dict[tuple[str, str], Fault] = {}
        self._taken: set[tuple[str, str, str]] = set()
        self._refused: Counter[tuple[str, str, str]] = Counter()
        self._refusals: dict[tuple[str, str, str], Probe] = {}

    def add(self, probe: Probe) -> None:
        """Look at what one call did."""
        if probe.crash is not None:
            self._faults.setdefault((probe.tool, "crash"), probe.crash)
            return
        done = probe.executed
        if done is None:
            return
        self._declared_values(probe, done)
        changed = ", ".join(probe.changed)
        if done.error is None:
            self._result(probe, done.output)
            if changed and not self._template.contract[probe.tool].mutates:
                self._note(
                    probe,
                    f"it is declared with mutates=False, and changes {changed}",
                    "Leave mutates=False out, or keep what it notes in a private attribute.",
                )
        elif changed:
            self._note(
                probe,
                f"it refuses, and has changed {changed}",
                "Refuse before anything is changed; what counts refusals can be private.",
            )

    def faults(self) -> tuple[Fault, ...]:
        """What was found, tool by tool."""
        for (tool, argument, value), probe in self._refusals.items():
            key = (tool, argument, value)
            if key not in self._taken and self._refused[key] >= _OFTEN:
                self._note(
                    probe,
                    f"the rule of {argument} allows {value}, and the tool always refuses it",
                    "Declare what the tool takes: words will tell the rule to every policy.",
                )
        return tuple(fault for _, fault in sorted(self._faults.items()))

    def _note(self, probe: Probe, what: str, remedy: str) -> None:
        place = tool_place(self._template, probe.tool)
        message = f"{called_with(probe.tool, probe.sent)}: {what}"
        fault = Fault(place, message, remedy, probe.task)
        self._faults.setdefault((probe.tool, remedy), fault)

    def _result(self, probe: Probe, output: str) -> None:
        """A result that says no would pass by the words for errors; None says nothing at all."""
        if _says_error(output):
            self._note(probe, f"it answers {output[:80]!r}", REFUSE)
        method = getattr(self._template.world, probe.tool, None)
        hint = getattr(method, "__annotations__", {}).get("return")
        if hint in (str, "str") and output == "null":
            self._note(probe, "it is to return a text, and returns None", "Return what it did.")

    def _declared_values(self, probe: Probe, done: Executed) -> None:
        """Count what becomes of the values that rules allow."""
        for argument, rule in self._template.contract[probe.tool].rules.items():
            value = probe.sent.get(argument)
            if value is not None and value in allowed_values(rule):
                key = (probe.tool, argument, json.dumps(value, ensure_ascii=False))
                if done.error is None:
                    self._taken.add(key)
                elif done.error.argument == argument:
                    self._refused[key] += 1
                    self._refusals.setdefault(key, probe)


def _says_error(output: str) -> bool:
    """Whether a tool's result begins with the word error, or is an object that has one."""
    if _ERROR.match(output):
        return True
    try:
        made = json.loads(output) if output.startswith("{") else None
    except ValueError:
        return False
    return isinstance(made, dict) and bool(made.get("error"))
