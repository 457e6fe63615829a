"""Training: one TRL trainer a run, with generations as boundaries inside it.

`train` goes through all steps of all generations in one go, since a trainer that is started anew
starts its schedule anew. At every boundary a checkpoint is saved; the same call resumes from it.
"""

import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from seal.config import TrainConfig
from seal.errors import ConfigError, missing_extra
from seal.models.local import LocalPolicy
from seal.rollout.agent import Arena
from seal.train.checkpoints import newest_checkpoint, saving
from seal.train.collect import Collected, Collector, task_order
from seal.train.exposure import exposed
from seal.train.tasks import tasks_to_train_on
from seal.types import Task

if TYPE_CHECKING:
    from seal.train.grpo import SealTrainer


class Generations(Protocol):
    """What a loop does around the steps of training."""

    def begin(self, number: int, policy: LocalPolicy) -> Arena | None:
        """Do what comes before a generation, with the weights as they are now.

        Called at every boundary: 0 before the first step, up to `train.generations` after the last.
        A run that resumes calls it again for the boundary that it resumes at.

        Returns:
            The words in force for the coming steps; None: stop here.
        """
        ...

    def tasks(self) -> Sequence[Task]:
        """The tasks to train on; `trainable` says which of them will be left out."""
        ...

    def seen(self, step: int, collected: Sequence[Collected], figures: Mapping[str, float]) -> None:
        """Hear of a step's rollouts, once they are weighed and before they are learned from."""
        ...


def train(
    model: Any,  # noqa: ANN401 - a transformers model
    tokenizer: Any,  # noqa: ANN401
    generations: Generations,
    config: TrainConfig,
    *,
    seed: int,
    folder: Path,
    name: str = "local",
) -> None:
    """Train an adapter by GRPO on rollouts with the words in force.

    The folder gets `checkpoint-N` (the last two, N updates), which resume, and for every boundary
    `generation-K`, the adapter alone, as PEFT and `local:BASE+ADAPTER` load it.

    Args:
        model: A transformers model, which gets a fresh LoRA adapter and is given back without it;
            or a PeftModel whose adapter goes on being trained. A run that resumes needs the same.
        tokenizer: Its tokenizer.
        generations: What happens around the steps.
        config: The settings.
        seed: Seed of the adapter's start, of the order of tasks and of the rollouts.
        folder: Where checkpoints are and go.
        name: The policy's name in records.

    Raises:
        MissingExtra: torch, transformers, trl or peft are not installed.
        ConfigError: The settings cannot be, there is no task to train on, or the checkpoints here
            are of other settings.
        ModelFailure, EnvironmentFailure: A step's rollouts did not come out whole, again and again.
    """
    try:
        from peft import PeftModel

        from seal.train.grpo import SealTrainer
    except ImportError:
        raise missing_extra("seal train", "train") from None
    tasks = tasks_to_train_on(generations.tasks())
    given = isinstance(model, PeftModel)
    if given and not any(weight.requires_grad for weight in model.parameters()):
        raise ConfigError(
            "the adapter has nothing that could be trained.\n"
            "Load it with PeftModel.from_pretrained(model, folder, is_trainable=True)."
        )
    _forget_reference(model)
    order = task_order(tasks, config.generations * config.steps * config.groups, seed)
    with warnings.catch_warnings():
        # What TRL and Transformers will do one day is nothing to the user of this version.
        warnings.filterwarnings("ignore", category=FutureWarning, module="transformers|trl|peft")
        try:
            trainer = SealTrainer(model, tokenizer, config, order, seed=seed, folder=folder)
        except (ImportError, RuntimeError, TypeError, ValueError) as cause:
            if not config.trl:
                raise
            raise ConfigError(
                f"train.trl: TRL cannot train with these values ({cause}).\n"
                f"Set others, or leave them out: {', '.join(config.trl)}."
            ) from cause
        try:
            _Conductor(trainer, generations, tasks, name, seed).run()
        finally:
            _forget_reference(model)
            if not given:
                trainer.model.unload()


def adapter_folder(folder: Path, number: int) -> Path:
    """Where the adapter is kept as it was at a boundary."""
    return folder / f"generation-{number}"


def _forget_reference(model: Any) -> None:  # noqa: ANN401
    """Remove TRL's frozen copy of an adapter: a second one could not be added beside it."""
    if "ref" in getattr(model, "peft_config", {}):
        model.delete_adapter("ref")


class _Conductor:
    """Between TRL's trainer and the loop: boundaries, and the rollouts of every step."""

    def __init__(
        self,
        trainer: "SealTrainer",
        generations: Generations,
        tasks: Sequence[Task],
        name: str,
        seed: int,
    ) -> None:
        self._trainer = trainer
        self._generations = generations
        self._tasks = {task.id: task for task in tasks}
        self._name = name
        self._seed = seed
        self._groups = trainer.config.groups
        self._collector = Collector(tasks, trainer.config, seed)
        self._policy: LocalPolicy
        self._arena: Arena
        self._original: Arena
        trainer.conductor = self

    def run(self) -> None:
        """All boundaries and steps that are left."""
        trainer = self._trainer
        checkpoint = newest_checkpoint(Path(trainer.args.output_dir), trainer.settings)
        if checkpoint:
            trainer.resume(checkpoint)
        with trainer.sampling():
            goes_on = self.boundary(trainer.generation)
        if goes_on:
            trainer.train(resume_from_checkpoint=str(checkpoint.folder) if checkpoint else None)

    def boundary(self, number: int) -> bool:
        """Keep the adapter, and let the loop work; whether there are steps to come."""
        self._keep(adapter_folder(Path(self._trainer.args.output_dir), number))
        # A policy of its own for every generation: one that resumes here is in the same state.
        self._policy = self._trainer.policy(self._name, self._seed)
        arena = self._generations.begin(number, self._policy)
        if arena is None:
            return False
        self._arena = arena
        original = arena.template.original
        # Groups that read the same are rolled out together.
        self._original = arena if arena.candidate.id == original.id else arena.under(original)
        return number < self._trainer.config.generations

    def _keep(self, folder: Path) -> None:
        partial = folder.with_name(f"{folder.name}.partial")
        for path in (partial, folder):
            shutil.rmtree(path, ignore_errors=True)
        with saving(folder):
            self._trainer.save_adapter(partial)
            partial.rename(folder)

    def collect(self, names: Sequence[str], step: int) -> list[Collected]:
        """The groups of a step: some read the words in force, the others the author's own."""
        version = self._trainer.version()
        if version != self._policy.version:
            self._policy.refresh(version)
        tasks = [self._tasks[name] for name in names]
        first = step * self._groups
        words = (
            self._arena if exposed(self._trainer.config, self._seed, group) else self._original
            for group in range(first, first + len(tasks))
        )
        return self._collector.collect(words, self._policy, tasks, step)

    def seen(self, step: int, collected: Sequence[Collected], figures: dict[str, float]) -> None:
        """Pass a step's rollouts on to the loop."""
        self._generations.seen(
            step,
            collected,
            {
                **figures,
                "groups_again": float(self._collector.again),
                "exposed": sum(
                    one.rollout.candidate == self._arena.candidate.id for one in collected
                )
                / len(collected),
            },
        )

    def passed(self, step: int) -> bool:
        """Whether a pass over all tasks ends with this step."""
        before, after = step * self._groups, (step + 1) * self._groups
        return before // len(self._tasks) < after // len(self._tasks)
