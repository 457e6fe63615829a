"""`evolve`: generations of rewrites, and what they are worth on tasks nobody has looked at."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seal.config import EvolveConfig, SearchConfig
from seal.envs import EnvironmentTemplate, load_environment
from seal.envs.suspects import known_defects
from seal.errors import ConfigError
from seal.evolve.evidence import Rewriter
from seal.evolve.gate import detectable_effect, fewest_scenarios
from seal.evolve.ledger import Ledger, RecordedRewriter
from seal.evolve.lineage import Generation, changed_slots
from seal.evolve.offline import OfflineRewriter
from seal.evolve.search import Search, Watch
from seal.models.protocol import Policy
from seal.models.registry import open_policy
from seal.records import RunFolder, write_json
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings
from seal.rollout.run import describe_rollouts
from seal.rollout.scores import PairedSummary, ScoreSummary, paired, summarize
from seal.soundness.facts import collect_facts
from seal.types import Candidate, Record, Usage

_NOT_DECISIVE = ("retries", "timeout_s", "cassette")
"""Settings of a model with another value of which a run may be resumed."""


class Evolution(Record):
    """What an evolve run found."""

    environment: str
    policy: str
    rewriter: str
    original: str
    candidate: str
    """The words in force at the end; the original ones if nothing was accepted."""
    generations: tuple[Generation, ...]
    changed: tuple[str, ...]
    """The slots that say something else in the end."""
    dropped_seeds: tuple[str, ...]
    """The author's own slot texts that did not survive."""
    test: PairedSummary
    """Original against evolved words on the test split, read once."""
    original_score: ScoreSummary
    evolved_score: ScoreSummary
    stopped: str
    """Why the search ended."""
    rollouts: int
    """Rollouts spent on the search; the test split comes on top."""
    budget: int
    usage: Usage
    rewriter_usage: Usage


@dataclass
class EvolveOptions:
    """How `evolve` works, beyond its configuration."""

    rollouts: RolloutSettings = field(default_factory=RolloutSettings)
    out: str | Path | None = None
    fresh: bool = False


class _Silent:
    """A watch that looks away."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def generation(self, generation: Generation) -> None:
        """Say nothing."""


def evolve(
    environment: str | Path | EnvironmentTemplate,
    policy: Policy | str,
    *,
    rewriter: Rewriter | None = None,
    config: EvolveConfig | None = None,
    options: EvolveOptions | None = None,
    watch: Watch | None = None,
) -> Evolution:
    """Improve an environment's words for a policy, each change behind the gate.

    Args:
        environment: A folder, a name, `name@SEED`, or a loaded template.
        policy: What acts, or its name as after `-m`.
        rewriter: What proposes; the offline rewriter by default.
        config: Generations, budget, gate.
        options: Seed, workers, run folder.
        watch: Is told of stages and generations.

    Raises:
        ConfigError: The run folder is of other settings.
        ModelFailure: A model fails from the start.
    """
    template = (
        environment
        if isinstance(environment, EnvironmentTemplate)
        else load_environment(environment)
    )
    config, options = config or EvolveConfig(), options or EvolveOptions()
    rewriter, watch = rewriter or OfflineRewriter(), watch or _Silent()
    check_size(template, config)
    policy = open_policy(policy) if isinstance(policy, str) else policy
    arena = Arena(template)
    if options.out is None:
        return _evolve(arena, policy, rewriter, config, options, watch)
    folder = RunFolder(Path(options.out))
    with folder.opened(describe(arena, policy, rewriter, config, options), fresh=options.fresh):
        result = _evolve(arena, policy, rewriter, config, options, watch)
        folder.finish(result.model_dump(mode="json"))
    return result


def check_size(template: EnvironmentTemplate, config: SearchConfig, table: str = "") -> None:
    """Refuse a search that could not adopt anything, whatever came of it.

    Args:
        template: The environment.
        config: How the search spends its rollouts.
        table: What `--set` wants before these settings' names, such as `evolve.`.

    Raises:
        ConfigError: There are too few gate scenarios, no test tasks, or too small a budget.
    """
    scenarios, needed = gate_scenarios(template, config), fewest_scenarios(config.gate)
    if config.gate.scenarios < needed:
        raise ConfigError(
            f"{table}gate.scenarios={config.gate.scenarios}: the first test needs {needed} to "
            "adopt a rewrite even if it wins them all.\n"
            f"Raise it, with --set {table}gate.scenarios={needed} or more."
        )
    if scenarios < needed:
        raise ConfigError(
            f"{template.name}: {scenarios} gate scenarios; the first test needs {needed} to adopt "
            "a rewrite even if it wins them all.\n"
            "Give the environment more scenarios (of tasks.jsonl, 3 in 10 go to the gate) or a "
            "generator."
        )
    if not template.tasks("test"):
        raise ConfigError(
            f"{template.name}: no task in the test split, on which the result is read.\n"
            'Give the environment more scenarios, or tasks with split = "test".'
        )
    profiled = min(config.profile_tasks, len(template.tasks("train")))
    if config.budget < profiled:
        raise ConfigError(
            f"{table}budget={config.budget}: one generation begins with {profiled} rollouts of "
            f"train tasks.\nRaise it, or lower {table}profile_tasks, with --set."
        )


def _evolve(
    arena: Arena,
    policy: Policy,
    rewriter: Rewriter,
    config: EvolveConfig,
    options: EvolveOptions,
    watch: Watch,
) -> Evolution:
    template = arena.template
    folder = RunFolder(Path(options.out)) if options.out else None
    if folder:
        folder.save_candidate(arena.candidate)
    watch.stage("telling facts from live values")
    recorded = RecordedRewriter(rewriter, folder)
    ledger = Ledger(policy, options.rollouts, config.budget, folder)
    search = Search(arena, collect_facts(template), recorded, ledger, config, watch)
    lines = folder.lines("generations", Generation) if folder else None
    kept = len(list(lines.read())) if lines else 0
    generations = []
    for generation in search.generations(config.generations, config.patience):
        generations.append(generation)
        if folder and lines and generation.index >= kept:
            folder.save_candidate(search.candidate)
            lines.append(generation)
    if folder:
        profile = search.profile.model_dump(mode="json")
        write_json(folder.path / "profile.json", {"seal": 1, **profile})
    watch.stage("reading the test split")
    jobs = [Job(task) for task in template.tasks("test")]
    before = ledger.roll_out(arena, jobs, free=True)
    after = ledger.roll_out(arena.under(search.candidate), jobs, free=True)
    return Evolution(
        environment=template.name,
        policy=policy.name,
        rewriter=rewriter.name,
        original=arena.candidate.id,
        candidate=search.candidate.id,
        generations=tuple(generations),
        changed=tuple(changed_slots(arena.candidate, search.candidate)),
        dropped_seeds=dropped_seeds(arena.candidate, search.candidate),
        test=paired(before, after),
        original_score=summarize(before),
        evolved_score=summarize(after),
        stopped=search.stopped,
        rollouts=ledger.spent,
        budget=config.budget,
        usage=ledger.usage,
        rewriter_usage=recorded.spent(),
    )


def dropped_seeds(original: Candidate, evolved: Candidate) -> tuple[str, ...]:
    """The slots whose original text is no longer part of what they say."""
    return tuple(
        slot
        for slot, text in sorted(original.texts.items())
        if text and text not in evolved.texts.get(slot, "")
    )


def describe(
    arena: Arena,
    policy: Policy,
    rewriter: Rewriter,
    config: EvolveConfig,
    options: EvolveOptions,
) -> dict[str, Any]:
    """All that decides an evolve run's records."""
    return {
        "command": "evolve",
        **describe_rollouts(arena, policy, options.rollouts),
        "rewriter": rewriter.name,
        "config": config.model_dump(exclude={"dollars", "model", "rewriter"}),
        "rewriter_sampling": decisive_sampling(config),
    }


def decisive_sampling(config: SearchConfig) -> dict[str, Any]:
    """How the rewriter's model is called, without what may differ when a run is resumed."""
    return {key: value for key, value in config.rewriter if key not in _NOT_DECISIVE}


def gate_power(template: EnvironmentTemplate, config: SearchConfig) -> tuple[int, float]:
    """The scenarios that one adoption test may use, and the gain that the first would detect."""
    scenarios = gate_scenarios(template, config)
    return scenarios, detectable_effect(config.gate, scenarios)


def gate_scenarios(template: EnvironmentTemplate, config: SearchConfig) -> int:
    """The scenarios that one adoption test may use."""
    if template.generated:
        return config.gate.scenarios
    doubted = known_defects(template)
    certain = {task.scenario for task in template.tasks("gate") if task.id not in doubted}
    return min(config.gate.scenarios, len(certain))
