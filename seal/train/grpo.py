"""TRL's GRPO trainer with our rollouts, rewards and weights; the one module that loads TRL.

Everything else is TRL's: advantages within a group, the loss, its masks, the optimizer.
"""

import contextlib
import hashlib
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from seal.config import TrainConfig
from seal.models.local import LocalPolicy
from seal.train.advantage import DynamicRho, Row, close_window, observe, step_scale, turn_weights
from seal.train.arguments import grpo_arguments, updates_per_step
from seal.train.checkpoints import Checkpoint, saving, seal_checkpoint
from seal.train.collect import Collected
from seal.train.packing import repack
from seal.train.prefix import Apart, Pairs, beginnings_of, common_beginning, read, score
from seal.train.spans import per_token, turn_tokens
from seal.types import Task, content_hash

WORTH_SHARING = 16
"""Tokens that rollouts must have in common for their beginning to be computed apart."""


class Conductor(Protocol):
    """What decides, between the trainer's steps, what is rolled out."""

    def collect(self, names: Sequence[str], step: int) -> list[Collected]:
        """The rollouts of a step: group after group, for the tasks of these names in turn."""
        ...

    def seen(self, step: int, collected: Sequence[Collected], figures: dict[str, float]) -> None:
        """Hear of the rollouts of a step once they are weighed."""
        ...

    def boundary(self, number: int) -> bool:
        """Do what comes between two generations; whether to go on."""
        ...

    def passed(self, step: int) -> bool:
        """Whether a pass over all tasks ends with this step."""
        ...


class SealTrainer(GRPOTrainer):
    """GRPO on rollouts that a conductor collects.

    Args:
        model: A transformers model, which gets a LoRA adapter, or a PeftModel with one to train.
        tokenizer: Its tokenizer.
        config: The settings.
        order: The task of every group, step after step.
        seed: The run's seed.
        folder: Where checkpoints go.
    """

    _buffered_inputs: Any

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - a transformers model
        tokenizer: Any,  # noqa: ANN401
        config: TrainConfig,
        order: Sequence[Task],
        *,
        seed: int,
        folder: Path,
    ) -> None:
        self.settings = {**config.model_dump(), "seed": seed}
        self.rho = DynamicRho()
        self.conductor: Conductor
        self.config = config
        self._rows: list[Collected] = []
        self._frozen = ""
        self._learning = False
        self._apart: list[Apart] | None = None
        arguments = grpo_arguments(config, model, seed=seed, folder=folder)
        lora = LoraConfig(
            r=config.lora_rank,
            lora_alpha=config.lora_alpha,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )

        def reward(collected_reward: list[float], **_: object) -> list[float]:
            return collected_reward

        reward.__name__ = config.reward
        with warnings.catch_warnings():
            # It is experimental, and we stay with the version of TRL that this was written for.
            warnings.filterwarnings("ignore", message="You are using 'rollout_func'")
            super().__init__(
                model=model,
                reward_funcs=reward,
                args=arguments,
                train_dataset=Dataset.from_dict({"prompt": [task.id for task in order]}),
                processing_class=tokenizer,
                peft_config=None if isinstance(model, PeftModel) else lora,
                rollout_func=lambda prompts, _: self._rolled_out(prompts),
                callbacks=[_Boundary(self)],
            )
        self.remove_callback(PrinterCallback)

    @property
    def step(self) -> int:
        """How many steps, that is batches of rollouts, came before."""
        return int(self.state.global_step) // updates_per_step(self.args)

    @property
    def generation(self) -> int:
        """How many generations came before."""
        return self.step // self.config.steps

    def policy(self, name: str, seed: int) -> LocalPolicy:
        """The model as it is now, as a policy."""
        live = self.accelerator.unwrap_model(self.model)
        return LocalPolicy(
            name, self.version(), live.get_base_model(), self.processing_class, seed=seed
        )

    def resume(self, checkpoint: Checkpoint) -> None:
        """Take weights, rho and count from a checkpoint; `train` then takes the rest."""
        self._load_from_checkpoint(str(checkpoint.folder))
        self.rho = checkpoint.rho
        self.state.global_step = checkpoint.updates

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter alone, as PEFT loads it."""
        live = self.accelerator.unwrap_model(self.model)
        live.save_pretrained(
            str(folder), selected_adapters=["default"], save_embedding_layers=False
        )

    def version(self) -> str:
        """A hash of all weights; what is frozen is looked at once."""
        if not self._frozen:
            self._frozen = _hash(w for w in self.model.parameters() if not w.requires_grad)
        trained = _hash(w for w in self.model.parameters() if w.requires_grad)
        return content_hash([self._frozen, trained])

    @contextlib.contextmanager
    def sampling(self) -> Iterator[None]:
        """The model in evaluation mode, and no draw of what happens here missing from training.

        So a run that resumes at a boundary goes on with the draws of one that never stopped.
        """
        training = self.model.training
        python, numpy = random.getstate(), np.random.get_state()
        self.model.eval()
        try:
            with torch.random.fork_rng():
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            self.model.train(training)

    def _rolled_out(self, prompts: list[str]) -> dict[str, list[Any]]:
        """What TRL asks of its rollout function: as many rows as prompts, group after group."""
        size = self.config.group_size
        with self.sampling():
            self._rows = self.conductor.collect(prompts[::size], self.step)
        if len(self._rows) != len(prompts):
            raise ValueError(f"{len(self._rows)} rollouts for {len(prompts)} prompts")
        records = [row.record for row in self._rows]
        return {
            "prompt_ids": [record.prompt_ids for record in records],
            "completion_ids": [record.completion_ids for record in records],
            "logprobs": [record.log_probs for record in records],
            "env_mask": [[int(sampled) for sampled in record.sampled] for record in records],
            "collected_reward": [row.reward for row in self._rows],
        }

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """TRL's batch, its advantages reweighted turn by turn where that is asked for."""
        training = self.model.training
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if not training:
            return batch
        rows = [
            Row(advantage, row.labels, tuple(turn_tokens(row.record, len(row.task.turns))))
            for advantage, row in zip(batch["advantages"].tolist(), self._rows, strict=True)
        ]
        scale = 1.0
        if self.config.reweighting != "none":
            weights = turn_weights(self.config.reweighting, rows, self._observed())
            scale = step_scale(rows, weights)
            spread = [
                torch.tensor(per_token(row.record, of_turn))
                for row, of_turn in zip(self._rows, weights, strict=True)
            ]
            padded = torch.nn.utils.rnn.pad_sequence(spread, batch_first=True)
            short = batch["completion_ids"].shape[1] - padded.shape[1]
            padded = torch.nn.functional.pad(padded, (0, short)).to(batch["advantages"].device)
            batch["advantages"] = batch["advantages"][:, None] * padded
        seen = sorted({row.rollout.candidate for row in self._rows})
        words = [seen.index(row.rollout.candidate) for row in self._rows]
        batch["words"] = torch.tensor(words, device=batch["advantages"].device)
        figures = {**self._figures(rows), "step_scale": scale}
        for name, value in figures.items():
            self._metrics["train"][name].append(value)
        self.conductor.seen(self.step, self._rows, figures)
        return batch

    def _observed(self) -> dict[str, float]:
        """The weights of the labels for this step, which dynamic rho has already seen."""
        if self.config.rho == "dynamic":
            self.rho = observe(self.rho, [(row.labels, row.reward) for row in self._rows])
        rho = self.rho.rho
        if self.conductor.passed(self.step):
            self.rho = close_window(self.rho)
        return rho

    def _figures(self, rows: Sequence[Row]) -> dict[str, float]:
        size = self.config.group_size
        rewards = [row.reward for row in self._rows]
        groups = [rewards[at : at + size] for at in range(0, len(rewards), size)]
        return {
            "mean_reward": sum(rewards) / len(rewards),
            "mean_score": sum(row.rollout.reward or 0.0 for row in self._rows) / len(rewards),
            "mixed_groups": sum(len(set(group)) > 1 for group in groups) / len(groups),
            "sampled_tokens": float(sum(sum(row.tokens) for row in rows)),
            "trained_tokens": float(sum(sum(row.tokens) for row in rows if row.advantage)),
        }

    def _prepare_inputs(self, generation_batch: Any) -> Any:  # noqa: ANN401 - TRL's
        """TRL's micro-batch, of rollouts that were packed anew."""
        before = self._buffered_inputs
        inputs = super()._prepare_inputs(generation_batch)
        if not self.model.training or self._buffered_inputs is before:
            return inputs
        window = self.args.gradient_accumulation_steps
        self._buffered_inputs = repack(self._buffered_inputs, window, free=self._is_free())
        return self._buffered_inputs[self._step % self.args.steps_per_generation]

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,  # noqa: ANN401 - TRL's
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """TRL's log-probs and entropies, what all rollouts begin with being computed once."""
        rows = batch_size or len(input_ids)
        chunks = list(zip(input_ids.split(rows), attention_mask.split(rows), strict=True))
        shared = [common_beginning(*chunk, logits_to_keep) for chunk in chunks]
        backbone = self.accelerator.unwrap_model(model).get_base_model().model
        if min(map(len, shared)) < WORTH_SHARING or not self._shares(backbone, options):
            scored: tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
            scored = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, batch_size, **options
            )
            return scored
        with self.accelerator.autocast():
            found = [
                score(model, self._read(backbone, common), *chunk, logits_to_keep)
                for chunk, common in zip(chunks, shared, strict=True)
            ]
        log_probs, entropies = (torch.cat(parts) for parts in zip(*found, strict=True))
        return log_probs, entropies if options.get("compute_entropy") else None, None

    def _read(self, backbone: Any, common: torch.Tensor) -> Pairs:  # noqa: ANN401
        """Keys and values of a beginning; while learning, one that the update knows."""
        if not (self._learning and torch.is_grad_enabled()):
            return read(backbone, common)
        if self._apart is None:
            window = self.args.gradient_accumulation_steps
            first = self._step % self.args.steps_per_generation // window * window
            beginnings = beginnings_of(self._buffered_inputs[first : first + window])
            self._apart = [
                Apart(ids, read(backbone, ids)) for ids in beginnings if len(ids) >= WORTH_SHARING
            ]
        fits = (one for one in self._apart if one.begins(common))
        known = max(fits, key=lambda one: len(one.ids), default=None)
        return known.pairs() if known else read(backbone, common)

    def training_step(self, *arguments: Any) -> Any:  # noqa: ANN401 - transformers'
        """TRL's micro-batch; after the last of an update, what their beginning has to learn."""
        self._learning = True
        loss = super().training_step(*arguments)
        self._learning = False
        if self._apart is not None and self.accelerator.sync_gradients:
            for one in self._apart:
                one.learn()
            self._apart = None
        return loss

    def _shares(self, backbone: Any, options: dict[str, Any]) -> bool:  # noqa: ANN401
        """Whether a beginning can be computed apart: plain text, full attention, a cache."""
        plain = all(options[key] is None for key in options if not key.startswith("compute_"))
        sliding = getattr(backbone, "has_sliding_layers", False)
        checkpointing = getattr(backbone, "gradient_checkpointing", False)
        return plain and not (sliding or checkpointing or options.get("compute_aux_loss"))

    def _is_free(self) -> bool:
        """Whether rollouts without advantage add nothing: to loss, divisor or gradient."""
        return (
            self.loss_type in ("dapo", "cispo")
            and self.beta == 0.0
            and not self._entropy_bonus_enabled
            and not self.aux_loss_enabled
            and self.top_entropy_quantile == 1.0
        )

    def _save_checkpoint(self, model: Any, trial: Any) -> None:  # noqa: ANN401 - transformers'
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        with saving(folder):
            super()._save_checkpoint(model, trial)
        seal_checkpoint(folder, self.rho, self.settings)

    def create_model_card(self, *_: object, **__: object) -> None:
        """Write no card: it would speak of a model that nobody publishes."""

    def _send_telemetry(self) -> None:
        """Send nothing: a run tells nobody that it ran."""


def _hash(weights: Iterable[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for weight in weights:
        # As bytes, since not every type of number of torch is one of numpy.
        digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
    return digest.hexdigest()


class _Boundary(TrainerCallback):
    """Lets the conductor work between generations, which is when checkpoints are saved."""

    def __init__(self, trainer: SealTrainer) -> None:
        self._trainer = trainer

    def on_save(self, _args: Any, _state: Any, control: Any, **_: object) -> Any:  # noqa: ANN401
        """The weights are saved: now the next generation can begin, or begin again."""
        with self._trainer.sampling():
            if not self._trainer.conductor.boundary(self._trainer.generation):
                control.should_training_stop = True
        return control
