"""The checks behind `seal check`: is an environment fit to learn in, without asking any model."""

from collections.abc import Callable, Iterable, Iterator

from seal.envs.template import EnvironmentTemplate
from seal.errors import SealError, TemplateError
from seal.soundness.catalogue import labels_there, seeds_reproduce, splits_apart, tasks_differ
from seal.soundness.facts import Facts, LiveValue, collect_facts
from seal.soundness.finding import Finding, problem_of
from seal.soundness.gold import dropped_calls_noticed, gold_solves
from seal.soundness.lazy import lazy_agents_fail
from seal.soundness.leaks import errors_keep_answers, tools_refuse, words_keep_answers
from seal.soundness.rendering import blocks_render
from seal.soundness.verifier import verifier_looks_only, verifier_repeats
from seal.soundness.worlds import worlds_apart, worlds_elsewhere, worlds_repeat

__all__ = [
    "AGREE_CLAIM",
    "CHECKS",
    "TASKS_CLAIM",
    "Facts",
    "Finding",
    "LiveValue",
    "check_environment",
    "collect_facts",
    "unloadable",
]

AGREE_CLAIM = "contract, words and tasks agree"
TASKS_CLAIM = "tasks can be made"
Check = Callable[[EnvironmentTemplate], Iterable[Finding]]
CHECKS: tuple[Check, ...] = (
    blocks_render,
    labels_there,
    splits_apart,
    tasks_differ,
    seeds_reproduce,
    gold_solves,
    dropped_calls_noticed,
    lazy_agents_fail,
    worlds_repeat,
    worlds_apart,
    worlds_elsewhere,
    verifier_repeats,
    verifier_looks_only,
    words_keep_answers,
)
"""Each says one thing about a template; they know nothing of each other."""


def check_environment(
    template: EnvironmentTemplate, facts: Facts | None = None
) -> Iterator[Finding]:
    """The findings of every check, as they come; an environment is sound if all have passed.

    Args:
        template: The environment.
        facts: What fuzzing it found; collected here if it is not given.
    """
    try:
        template.tasks(None)
    except SealError as error:
        yield unloadable(error)
        return
    # A template that has loaded agrees with its contract: loading refuses any other.
    tools = len(template.contract.tools)
    extent = f"{tools} tools, {len(template.renderer.slots)} slots"
    yield Finding(check=AGREE_CLAIM, passed=True, message=extent)
    for check in CHECKS:
        yield from check(template)
    known = collect_facts(template) if facts is None else facts
    yield from tools_refuse(template, known)
    yield from errors_keep_answers(template, known)


def unloadable(error: SealError) -> Finding:
    """The finding that stands for all others where a template cannot be loaded."""
    wrong = isinstance(error, TemplateError)
    return problem_of(AGREE_CLAIM if wrong else TASKS_CLAIM, error)
