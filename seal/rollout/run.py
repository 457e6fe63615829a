"""`run`: the rollouts of a policy on a split, in memory or in a run folder that resumes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seal.envs import EnvironmentTemplate, load_environment
from seal.envs.suspects import known_defects, suspects_among
from seal.errors import ConfigError
from seal.models.gold import ReplayPolicy
from seal.models.protocol import Policy
from seal.models.registry import open_policy
from seal.records import RunFolder
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings, roll_out_all
from seal.rollout.scores import ScoreSummary, summarize
from seal.types import Candidate, Rollout, Split, Usage


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What `run` rolls out, and how."""

    split: Split | None = "train"
    """None: all splits."""
    limit: int | None = None
    """Tasks at most, from the beginning of the split."""
    samples: int = 1
    """Rollouts of every task."""
    rollouts: RolloutSettings = field(default_factory=RolloutSettings)
    candidate: Candidate | None = None
    """The words in force; None: the original words."""
    strict_abstention: bool = False
    """Whether a call fails a turn in which gold makes none, even if it changes nothing."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The rollouts of a run in the order of the tasks, and their score."""

    rollouts: tuple[Rollout, ...]
    summary: ScoreSummary
    usage: Usage
    quarantined: int
    """Tasks that are left out because their gold fails or they cannot be solved."""
    suspect: tuple[str, ...]
    """Tasks that are in, although their gold is in doubt."""


def run(
    environment: str | Path | EnvironmentTemplate,
    policy: Policy | str,
    settings: RunSettings | None = None,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> RunResult:
    """Roll a policy out on the tasks of a split.

    Args:
        environment: A folder, a name, `name@SEED`, or a loaded template.
        policy: What acts, or its name as after `-m`.
        settings: What to roll out.
        out: A run folder, created or resumed; None: nothing is written.
        fresh: Start the run folder over.
        progress: Is told the rollouts done and to do.

    Raises:
        ConfigError: There are no such tasks, or the run folder is of other settings.
        ModelFailure: The policy's model fails from the start.
    """
    template = (
        environment
        if isinstance(environment, EnvironmentTemplate)
        else load_environment(environment)
    )
    settings = settings or RunSettings()
    policy = open_policy(policy) if isinstance(policy, str) else policy
    jobs = _jobs(template, settings)
    arena = Arena(template, settings.candidate, strict_abstention=settings.strict_abstention)
    if isinstance(policy, ReplayPolicy) and policy.contracts != {arena.contract_hash}:
        raise ConfigError(
            f"{policy.name}: recorded on another environment than {template.name}, or before its "
            "contract changed.\nReplay a run on the environment it was made with."
        )
    if out is None:
        done = _complete(arena, jobs, policy, settings, {}, lambda _: None, progress)
        return result_of(arena, done)
    folder = RunFolder(Path(out))
    with folder.opened(describe(arena, policy, settings), fresh=fresh):
        folder.save_candidate(arena.candidate)
        lines = folder.lines("rollouts", Rollout)
        # A rollout that broke is made again; the one that went through comes later and counts.
        known = {rollout.id: rollout for rollout in lines.read() if rollout.failure is None}
        done = _complete(arena, jobs, policy, settings, known, lines.append, progress)
        result = result_of(arena, done)
        folder.finish(summary_json(result))
    return result


def _jobs(template: EnvironmentTemplate, settings: RunSettings) -> list[Job]:
    tasks = template.tasks(settings.split)[: settings.limit]
    if not tasks:
        counts = {s: len(template.tasks(s)) for s in ("train", "gate", "validation", "test")}
        raise ConfigError(
            f"{template.name}: no tasks in split '{settings.split}'.\n"
            f"Tasks by split: {', '.join(f'{s} {n}' for s, n in counts.items())}.\n"
            "Choose one with --split, or all of them with --split all."
        )
    return [Job(task, sample) for task in tasks for sample in range(settings.samples)]


def _complete(
    arena: Arena,
    jobs: Sequence[Job],
    policy: Policy,
    settings: RunSettings,
    known: dict[str, Rollout],
    keep: Callable[[Rollout], None],
    progress: Callable[[int, int], None],
) -> list[Rollout]:
    """The rollouts of all jobs in their order, those that are known not made again."""
    ids = [f"{job.task.id}#{job.sample}" for job in jobs]
    todo = [job for name, job in zip(ids, jobs, strict=True) if name not in known]
    kept = len(jobs) - len(todo)
    progress(kept, len(jobs))
    outcomes = roll_out_all(arena, todo, policy, settings.rollouts)
    for done, outcome in enumerate(outcomes, start=kept + 1):
        keep(outcome.rollout)
        known[outcome.rollout.id] = outcome.rollout
        progress(done, len(jobs))
    return [known[name] for name in ids]


def describe_rollouts(arena: Arena, policy: Policy, settings: RolloutSettings) -> dict[str, Any]:
    """What decides every record of rollouts, whichever command makes them."""
    return {
        "environment": arena.template.name,
        "folder": arena.template.reference,
        "contract": arena.contract_hash,
        "candidate": arena.candidate.id,
        "words": arena.words_hash,
        "policy": policy.name,
        "policy_version": policy.version,
        "seed": settings.seed,
        "sampling": settings.sampling.model_dump(),
    }


def describe(arena: Arena, policy: Policy, settings: RunSettings) -> dict[str, Any]:
    """All that decides a run's records; what does not (workers, say) is left out."""
    return {
        "command": "run",
        **describe_rollouts(arena, policy, settings.rollouts),
        "split": settings.split or "all",
        "limit": settings.limit,
        "samples": settings.samples,
        **({"strict_abstention": True} if settings.strict_abstention else {}),
    }


def result_of(arena: Arena, rollouts: Sequence[Rollout]) -> RunResult:
    """The result of finished rollouts."""
    template = arena.template
    made = {rollout.task for rollout in rollouts}
    tasks = [task for task in template.tasks(None) if task.id in made]
    return RunResult(
        rollouts=tuple(rollouts),
        summary=summarize(rollouts),
        usage=sum((rollout.usage for rollout in rollouts), Usage()),
        quarantined=sum(one.status == "broken" for one in known_defects(template).values()),
        suspect=tuple(one.task for one in suspects_among(template, arena.gold, tasks)),
    )


def summary_json(result: RunResult) -> dict[str, Any]:
    """The summary line of a run, as `--json` prints it."""
    return {
        **result.summary.model_dump(),
        "unscored": result.summary.total - result.summary.scored,
        "quarantined": result.quarantined,
        "suspect": len(result.suspect),
        "usage": result.usage.model_dump(),
    }
