"""The checks behind `seal check`: is an environment fit to learn in, without asking any model."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence

from seal.envs.template import EnvironmentTemplate
from seal.envs.time_limit import patience
from seal.errors import EnvironmentFailure, SealError, TemplateError
from seal.soundness.agreement import AGREE_CLAIM, contract_agrees
from seal.soundness.catalogue import labels_there, seeds_reproduce, splits_apart, tasks_differ
from seal.soundness.facts import Facts, LiveValue, collect_facts
from seal.soundness.finding import Finding, failed_at, problem_of
from seal.soundness.gold import gold_solves, tampered_gold_noticed
from seal.soundness.lazy import lazy_agents_fail
from seal.soundness.leaks import (
    CONDUCT_CLAIM,
    errors_keep_answers,
    tools_keep_their_word,
    words_keep_answers,
)
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

TASKS_CLAIM = "tasks can be made"
Check = Callable[[EnvironmentTemplate], Iterable[Finding]]
CHECKS: tuple[Check, ...] = (
    contract_agrees,
    blocks_render,
    labels_there,
    splits_apart,
    tasks_differ,
    seeds_reproduce,
    worlds_repeat,
    gold_solves,
    tampered_gold_noticed,
    lazy_agents_fail,
    worlds_apart,
    worlds_elsewhere,
    verifier_repeats,
    verifier_looks_only,
    words_keep_answers,
)
"""Each says one thing about a template; they know nothing of each other."""
COMPARING: tuple[Check, ...] = (
    tampered_gold_noticed,
    lazy_agents_fail,
    worlds_apart,
    worlds_elsewhere,
    verifier_repeats,
)
"""Those that compare plays with one another; where no two are alike, they would blame the wrong."""


def check_environment(
    template: EnvironmentTemplate, facts: Facts | None = None, checks: Sequence[Check] = CHECKS
) -> Iterator[Finding]:
    """The findings of every check, as they come; an environment is sound if all have passed.

    Args:
        template: The environment.
        facts: What fuzzing it found; collected here if it is not given.
        checks: Those that need no facts, if not all are wanted.
    """
    try:
        template.tasks(None)
    except SealError as error:
        yield unloadable(error)
        return
    alike = True
    source = inspect.getsourcefile(template.world)
    for check in checks:
        if check in COMPARING and not alike:
            continue
        found: list[Finding] = []
        with patience(source) as watch:
            found.extend(check(template))
        yield from found
        alike = alike and not (check is worlds_repeat and any(not one.passed for one in found))
        if watch.failure:
            yield _stuck(template, watch.failure)
            return
    known = collect_facts(template) if facts is None else facts
    yield from tools_keep_their_word(template, known)
    yield from errors_keep_answers(template, known)


def _stuck(template: EnvironmentTemplate, failure: EnvironmentFailure) -> Finding:
    """The finding after which no other check is worth its time."""
    return Finding(
        check=CONDUCT_CLAIM,
        passed=False,
        where=failed_at(template, failure),
        message=str(failure),
        remedy="Bound the loop; nothing further was checked.",
    )


def unloadable(error: SealError) -> Finding:
    """The finding that stands for all others where a template cannot be loaded."""
    wrong = isinstance(error, TemplateError)
    return problem_of(AGREE_CLAIM if wrong else TASKS_CLAIM, error)
