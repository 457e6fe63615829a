"""`train`: a policy and the words it reads, evolved and trained together."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seal.config import LoopConfig
from seal.envs import EnvironmentTemplate, load_environment
from seal.errors import ConfigError, missing_extra
from seal.evolve.evidence import Rewriter
from seal.evolve.lineage import Generation, changed_slots
from seal.evolve.offline import OfflineRewriter
from seal.evolve.run import check_size, decisive_sampling, dropped_seeds
from seal.loop.generations import Clock, Loop, Named, Watch
from seal.loop.outcome import (
    Checkpoint,
    FinalScores,
    StepFigures,
    Training,
    added_up,
    final_scores,
)
from seal.records import SCHEMA, RunFolder, default_folder, write_json
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings
from seal.rollout.run import describe_rollouts
from seal.train.tasks import tasks_to_train_on
from seal.types import Rollout, Sampling

TRAINER, ADAPTER = "trainer", "adapter"
"""Folders in a run folder: the trainer's checkpoints; the adapter of the best one."""
SEEDS = 2**32
"""Seeds below this are those that numpy takes, with which transformers seeds everything."""


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How `train` works, beyond its configuration."""

    seed: int = 0
    out: str | Path | None = None
    """The run folder; None: one under `runs/` that the same settings find again."""
    fresh: bool = False


class Silent:
    """A watch that looks away."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def lesson(self, step: int, total: int, loss: float) -> None:
        """Say nothing."""

    def advance(self, rollouts: int) -> None:
        """Say nothing."""

    def generation(self, generation: Generation) -> None:
        """Say nothing."""

    def step(self, figures: StepFigures) -> None:
        """Say nothing."""

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Say nothing."""


def train(
    environment: str | Path | EnvironmentTemplate,
    model: str,
    *,
    rewriter: Rewriter | None = None,
    config: LoopConfig | None = None,
    options: TrainOptions | None = None,
    watch: Watch | None = None,
) -> Training:
    """Train a local model on an environment while the environment's words evolve.

    Args:
        environment: A folder, a name, `name@SEED`, or a loaded template.
        model: `local:NAME_OR_PATH`, as after `-m`.
        rewriter: What proposes texts; the offline rewriter by default.
        config: Warm start, search, training, evaluation.
        options: Seed and run folder.
        watch: Is told how it goes.

    Raises:
        ConfigError: The model cannot be trained, the settings cannot be, or the run folder is of
            other settings.
        MissingExtra: torch, transformers, trl or peft are not installed.
    """
    template = (
        environment
        if isinstance(environment, EnvironmentTemplate)
        else load_environment(environment)
    )
    config, options = config or LoopConfig(), options or TrainOptions()
    rewriter, watch = rewriter or OfflineRewriter(), watch or Silent()
    settings = describe(template, model, rewriter, config, options.seed)
    out = options.out or default_folder("train", template.name, settings)
    folder = RunFolder(Path(out))
    if options.fresh or not folder.finished:
        check_work(template, config)
    with folder.opened(settings, fresh=options.fresh):
        if (found := read_training(folder)) is not None:
            return found
        folder.save_candidate(template.original)
        parts = _Parts(rewriter, options.seed, folder, watch)
        found = _train(template, model, config, parts)
        folder.finish(found.model_dump(mode="json"))
        _forget_resume_points(folder)
    return found


def check_work(template: EnvironmentTemplate, config: LoopConfig) -> None:
    """Refuse, before anything is spent, what could not come to a result.

    Raises:
        ConfigError: The settings cannot be, or a split lacks tasks.
        MissingExtra: What trains is not installed.
    """
    try:
        from seal.train.arguments import check_arguments

        check_arguments(config.train)
    except ImportError:
        raise missing_extra("seal train", "train") from None
    if config.evolve.budget:
        check_size(template, config.evolve, "evolve.")
    for split in ("train", "validation", "test"):
        if not template.tasks(split):
            raise ConfigError(
                f"{template.name}: no task in the {split} split.\n"
                f'Give the environment more scenarios, or tasks with split = "{split}".'
            )
    tasks_to_train_on(template.tasks("train"))


def _refuse_untrainable(model: str) -> None:
    if not model.startswith("local:"):
        raise ConfigError(
            f"-m {model}: only local models can be trained, and this is {_what_it_is(model)}.\n"
            "Name one, such as local:tiny or local:smollm2. To improve the words alone: "
            f"seal evolve ENV -m {model}"
        )


def _what_it_is(model: str) -> str:
    kind = model.partition(":")[0]
    names = {"sim": "a simulated reader", "gold": "a replay of gold calls", "replay": "a replay"}
    return names.get(kind, "a model on a server")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a run works with, beside its settings."""

    rewriter: Rewriter
    seed: int
    folder: RunFolder
    watch: Watch


def _train(
    template: EnvironmentTemplate, model: str, config: LoopConfig, parts: _Parts
) -> Training:
    from seal.models.weights import load_weights, split_name
    from seal.train.trainer import train as train_adapter

    _silence_progress_bars()
    seed, folder = parts.seed, parts.folder
    clock = Clock(folder)
    with clock.timed("warm start"):
        base = _warm_start(template, model, config, parts.watch)
    _hold_to_base(folder, base)
    rollouts = evaluation(config, seed)
    loop = Loop(template, parts.rewriter, config, rollouts, folder, parts.watch)
    # An adapter that the warm start left is trained on: one adapter holds both in the end.
    weights, tokenizer = load_weights(*split_name(base), merge=False)
    checkpoints = folder.path / TRAINER
    train_adapter(weights, tokenizer, loop, config.train, seed=seed, folder=checkpoints, name=base)
    del weights
    with clock.timed("test"):
        scores = _read_test_split(template, config, base, loop, folder)
    return Training(
        environment=template.name,
        policy=model,
        base=base,
        rewriter=parts.rewriter.name,
        original=template.original.id,
        candidate=loop.candidate.id,
        generations=tuple(loop.generations),
        steps=loop.steps,
        checkpoints=tuple(loop.checkpoints),
        best=loop.best,
        changed=tuple(changed_slots(template.original, loop.candidate)),
        dropped_seeds=dropped_seeds(template.original, loop.candidate),
        test=scores,
        rollouts=loop.ledger.spent,
        budget=config.evolve.budget,
        usage=loop.ledger.usage,
        rewriter_usage=loop.rewriter.spent(),
        stages=added_up(clock.stages()),
    )


def _silence_progress_bars() -> None:
    """Of files that are read and written: progress is the watch's to show."""
    from transformers import logging

    logging.disable_progress_bar()


def _warm_start(template: EnvironmentTemplate, model: str, config: LoopConfig, watch: Watch) -> str:
    """The policy that training starts from, as `-m` takes it."""
    from seal.train.starts import warm_start

    watch.stage("warm start")
    return warm_start(model, template, config.warm_start, watch).name


def _hold_to_base(folder: RunFolder, base: str) -> None:
    """Note what a run trains on; one that resumes must find the same.

    Raises:
        ConfigError: The warm start has been made anew since the run began, and differs.
    """
    from seal.models.weights import split_name, weights_version

    path = folder.path / "base.json"
    now = {"seal": SCHEMA, "base": base, "version": weights_version(*split_name(base))}
    if not path.is_file():
        write_json(path, now)
        return
    try:
        kept = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as cause:
        raise ConfigError(
            f"{path}: what the run trains on cannot be read here ({cause}).\n"
            "Restore the file, or start the run over with --fresh."
        ) from cause
    if kept != now:
        raise ConfigError(
            f"{folder.path}: this run began with {kept.get('base')}, version "
            f"{kept.get('version')}; its warm start is now {base}, version {now['version']}.\n"
            "Environment or SEAL have changed since. Start the run over with --fresh."
        )


def _read_test_split(
    template: EnvironmentTemplate,
    config: LoopConfig,
    base: str,
    loop: Loop,
    folder: RunFolder,
) -> FinalScores:
    """Base and trained policy under original and evolved words, each once on the same tasks."""
    from seal.models.weights import open_local_policy, split_name
    from seal.train.trainer import adapter_folder

    adapter = _keep_adapter(adapter_folder(folder.path / TRAINER, loop.best), folder)
    jobs = [Job(task) for task in template.tasks("test")[: config.test_tasks]]
    original = Arena(template)
    arenas = original, original.under(loop.candidate)

    def read(name: str) -> tuple[list[Rollout], list[Rollout]]:
        loop.ledger.policy = open_local_policy(name)
        without, within = (loop.ledger.roll_out(arena, jobs, free=True) for arena in arenas)
        return without, within

    loop.watch.stage(f"test split: the base policy on {len(jobs)} tasks")
    of_base = read(base)
    if loop.best == 0:
        return final_scores(of_base, of_base)
    loop.watch.stage(f"test split: the trained policy on {len(jobs)} tasks")
    return final_scores(of_base, read(f"local:{split_name(base)[0]}+{adapter}"))


def _keep_adapter(made: Path, folder: RunFolder) -> Path:
    """Copy the best adapter to where users look for it; it appears there as a whole."""
    if not made.is_dir():
        raise ConfigError(
            f"{made}: the adapter of the best checkpoint is missing.\n"
            "Restore it, or start the run over with --fresh."
        )
    place = folder.path / ADAPTER
    partial = place.with_name(f"{ADAPTER}.partial")
    for path in (partial, place):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(made, partial)
    partial.rename(place)
    return place


def _forget_resume_points(folder: RunFolder) -> None:
    """Remove what only an unfinished run needs; the adapters of all checkpoints stay."""
    for path in (folder.path / TRAINER).glob("checkpoint-*"):
        shutil.rmtree(path, ignore_errors=True)


def read_training(folder: RunFolder) -> Training | None:
    """The result of a finished training run, None while it is unfinished.

    Raises:
        ConfigError: It is something else, or of another version of SEAL.
    """
    try:
        found = folder.result()
        return None if found is None else Training.model_validate(found)
    except (ValueError, ValidationError) as cause:
        raise ConfigError(
            f"{folder.path / 'result.json'}: no result of `seal train` can be read here "
            f"({str(cause).splitlines()[0]}).\n"
            "Restore the file, or make the run again with --fresh."
        ) from cause


def evaluation(config: LoopConfig, seed: int) -> RolloutSettings:
    """How all rollouts are drawn that are not trained on: greedily."""
    return RolloutSettings(
        seed=seed, sampling=Sampling(temperature=0.0, max_tokens=config.train.max_tokens)
    )


def describe(
    template: EnvironmentTemplate, model: str, rewriter: Rewriter, config: LoopConfig, seed: int
) -> dict[str, Any]:
    """All that decides a training run's records.

    Raises:
        ConfigError: The model cannot be trained, is not here, or has yet to be fetched; or the seed
            is none.
    """
    _refuse_untrainable(model)
    if not 0 <= seed < SEEDS:
        raise ConfigError(
            f"seed {seed}: a training takes seeds from 0 to {SEEDS - 1}.\nGive another: --seed 0"
        )
    from seal.models.weights import TINY, split_name, weights_version

    path, adapter = split_name(model)
    version = TINY if path == TINY else weights_version(path, adapter)
    named = Named(model, version)
    return {
        "command": "train",
        **describe_rollouts(Arena(template), named, evaluation(config, seed)),
        "rewriter": rewriter.name,
        "config": config.model_dump(exclude={"evolve": {"dollars", "rewriter"}}, exclude_none=True),
        "rewriter_sampling": decisive_sampling(config.evolve),
    }


def work_ahead(template: EnvironmentTemplate, config: LoopConfig) -> dict[str, int]:
    """The rollouts that a whole run makes at most, by what they are for."""
    train = config.train
    validation = min(config.validation_tasks, len(template.tasks("validation")))
    test = min(config.test_tasks, len(template.tasks("test")))
    return {
        "evolve": config.evolve.budget,
        "steps": train.generations * train.steps,
        "train": train.generations * train.steps * train.groups * train.group_size,
        "validation": (train.generations + 1) * validation,
        "test": 4 * test,
    }
