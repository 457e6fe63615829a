"""The arguments of TRL's trainer: ours, then the user's `[train.trl]`, then what follows from both.

Most keys of `GRPOConfig` pass through. Those that decide what SEAL itself decides are refused, each
with where to say it instead.
"""

import importlib.util
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from seal.config import TrainConfig
from seal.errors import ConfigError, did_you_mean
from seal.models.weights import SMALL
from seal.train.checkpoints import KEPT

_RUN = "the run decides it"
_SCHEDULE = "generations and steps do: set train.generations and train.steps"
_ROLLOUTS = "SEAL rolls out itself, with its own sampler"
_WHOLE = "SEAL saves a checkpoint at every generation, and resumes from it"
_LOOP = "SEAL evaluates between generations"
_QUIET = "SEAL shows progress itself, and keeps the rollouts"
_MODEL = "the model is loaded before training"
_HUB = "SEAL publishes nothing; upload the adapter folder yourself"
_ALONE = "SEAL trains in one process"
OWNED: Mapping[str, str] = {
    "output_dir": "the run folder does: use --out",
    "seed": "use --seed",
    "data_seed": "use --seed",
    "learning_rate": "set train.rate",
    "temperature": "set train.temperature",
    "num_generations": "set train.group_size",
    "num_generations_eval": _LOOP,
    "generation_batch_size": "it is train.groups times train.group_size",
    "steps_per_generation": "it follows from train.groups, train.group_size and "
    "per_device_train_batch_size; gradient_accumulation_steps below it makes for more steps",
    "max_steps": _SCHEDULE,
    "num_train_epochs": _SCHEDULE,
    "shuffle_dataset": "SEAL orders the tasks",
    "train_sampling_strategy": "SEAL orders the tasks",
    "remove_unused_columns": _RUN,
    "auto_find_batch_size": "it would begin the training anew; set per_device_train_batch_size",
    "max_completion_length": "replies are limited by train.max_tokens, turns by the environment",
    "max_tool_calling_iterations": "steps of a turn are limited by the environment",
    "reward_weights": "there is one reward: set train.reward",
    **dict.fromkeys(("disable_tqdm", "log_level", "log_level_replica"), _QUIET),
    **dict.fromkeys(("log_completions", "log_unique_prompts", "num_completions_to_print"), _QUIET),
    "log_completions_hub_repo": _QUIET,
    **dict.fromkeys(("save_strategy", "save_steps", "save_total_limit", "save_only_model"), _WHOLE),
    **dict.fromkeys(("resume_from_checkpoint", "ignore_data_skip"), _WHOLE),
    **dict.fromkeys(("restore_callback_states_from_checkpoint", "enable_jit_checkpoint"), _WHOLE),
    **dict.fromkeys(("eval_strategy", "eval_steps", "eval_delay", "eval_on_start"), _LOOP),
    **dict.fromkeys(("load_best_model_at_end", "metric_for_best_model", "do_eval"), _LOOP),
    **dict.fromkeys(("greater_is_better", "do_train", "do_predict"), _LOOP),
    **dict.fromkeys(("top_p", "top_k", "min_p", "repetition_penalty"), _ROLLOUTS),
    **dict.fromkeys(("generation_kwargs", "chat_template_kwargs", "use_vllm"), _ROLLOUTS),
    **dict.fromkeys(("cache_implementation", "use_transformers_paged"), _ROLLOUTS),
    "use_transformers_continuous_batching": _ROLLOUTS,
    "transformers_continuous_batching_config": _ROLLOUTS,
    **dict.fromkeys(("model_init_kwargs", "trust_remote_code"), _MODEL),
    **dict.fromkeys(("push_to_hub", "hub_token", "hub_private_repo", "hub_model_id"), _HUB),
    **dict.fromkeys(("hub_strategy", "hub_always_push", "hub_revision"), _HUB),
    **dict.fromkeys(("deepspeed", "fsdp", "fsdp_config", "parallelism_config"), _ALONE),
    **dict.fromkeys(("local_rank", "ddp_backend"), _ALONE),
}
"""Keys of GRPOConfig that are refused, and where the matter is settled."""
_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "loss_type": ("dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("group", "batch", "none", True, False),
    "importance_sampling_level": ("token", "sequence"),
}
"""What TRL itself looks at only after the first rollouts."""
_LEAST = {
    **dict.fromkeys(("beta", "epsilon", "max_grad_norm", "warmup_steps", "weight_decay"), 0),
    "num_iterations": 1,
}
"""The least values that make sense; TRL takes others, and breaks or trains to nowhere."""
_DIVISORS = ("per_device_train_batch_size", "gradient_accumulation_steps")
"""What must divide the rollouts of a step; its type is looked at with that."""
_FAST, _SLOW = 2e-3, 1e-4
"""Learning rates of an adapter of a small and of a large model, where the settings name none."""
_FEW, _MANY = 2, 8
"""Rollouts that are trained on at once, for memory's sake: of a large and of a small model."""


def check_arguments(config: TrainConfig) -> None:
    """Refuse what `[train.trl]` must not or cannot say, before anything is spent.

    Raises:
        ConfigError: A key is SEAL's own, is unknown, or has a value that cannot be; all problems.
    """
    from dataclasses import fields
    from typing import get_type_hints

    from trl import GRPOConfig

    types = get_type_hints(GRPOConfig)
    known = {field.name: types[field.name] for field in fields(GRPOConfig) if field.init}
    problems = [
        problem for key, value in config.trl.items() if (problem := _problem(key, value, known))
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    made = _made(config, 0, bf16=False, seed=0, folder=Path())
    _check_reports(made.report_to)
    if made.use_liger_kernel and importlib.util.find_spec("liger_kernel") is None:
        raise ConfigError(
            "train.trl.use_liger_kernel: liger-kernel is not installed.\n"
            "Install it with: pip install liger-kernel"
        )


def _check_reports(names: list[str]) -> None:
    """Refuse services that are not here, which transformers would notice after the warm start."""
    from transformers.integrations import get_reporting_integration_callbacks

    try:
        for callback in get_reporting_integration_callbacks(names):
            callback()
    except (ImportError, RuntimeError, ValueError) as cause:
        raise ConfigError(
            f"train.trl.report_to: {cause}\nInstall what it needs, or leave report_to out."
        ) from cause


def _problem(key: str, value: object, known: Mapping[str, Any]) -> str:
    if key in OWNED or key.startswith("vllm_"):
        return f"train.trl.{key}: not for TRL to decide; {OWNED.get(key, _ROLLOUTS)}."
    if key not in known:
        return f"train.trl.{key}: TRL's GRPOConfig has no such key." + did_you_mean(key, known)
    choices = _CHOICES.get(key)
    if choices and value not in choices:
        shown = ", ".join(str(choice) for choice in choices)
        return f"train.trl.{key}: no '{value}'.\nChoices: {shown}." + did_you_mean(
            str(value), [str(choice) for choice in choices]
        )
    return "" if choices or key in _DIVISORS else _misfit(key, value, known[key])


def _misfit(key: str, value: object, wanted: Any) -> str:  # noqa: ANN401 - a type
    """Why a value is not of its key's type, which TRL itself does not check."""
    strict = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    try:
        TypeAdapter(wanted, config=strict).validate_python(value)
    except ValidationError as cause:
        return f"train.trl.{key}: {cause.errors()[0]['msg']}, found {value!r}."
    least = _LEAST.get(key)
    if least is not None and isinstance(value, int | float) and value < least:
        return f"train.trl.{key}: {value!r} is less than {least}."
    return ""


def _shape(config: TrainConfig, weights: int) -> dict[str, int]:
    """How the rollouts of a step are cut: micro-batches, and micro-batches of one update."""
    rollouts = config.groups * config.group_size
    most = _MANY if weights <= SMALL else _FEW
    fits = max(size for size in range(1, most + 1) if rollouts % size == 0)
    batch, accumulated = _DIVISORS
    micro = _divisor(config.trl, batch, fits, rollouts)
    parts = rollouts // micro
    return {
        batch: micro,
        accumulated: _divisor(config.trl, accumulated, parts, parts),
        "steps_per_generation": parts,
    }


def _divisor(given: Mapping[str, Any], key: str, default: int, whole: int) -> int:
    value = given.get(key, default)
    if type(value) is not int or value < 1 or whole % value:
        fits = [size for size in range(1, whole + 1) if whole % size == 0]
        raise ConfigError(
            f"train.trl.{key}: {value!r} is no divisor of {whole}.\n"
            f"Choices: {', '.join(map(str, fits))}."
        )
    return value


def updates_per_step(arguments: Any) -> int:  # noqa: ANN401 - a GRPOConfig
    """Optimizer steps that are made on the rollouts of one step."""
    window: int = arguments.gradient_accumulation_steps
    return int(arguments.steps_per_generation * arguments.num_iterations) // window


def grpo_arguments(config: TrainConfig, model: Any, *, seed: int, folder: Path) -> Any:  # noqa: ANN401
    """TRL's `GRPOConfig` for training this model.

    Args:
        config: The settings, `trl` among them.
        model: The model: its size and its type of numbers decide some defaults.
        seed: The run's seed.
        folder: Where checkpoints go.

    Raises:
        ConfigError: As `check_arguments`, or TRL refuses the values.
    """
    import torch

    check_arguments(config)
    weights = sum(weight.numel() for weight in model.parameters())
    return _made(config, weights, bf16=model.dtype == torch.bfloat16, seed=seed, folder=folder)


def _made(config: TrainConfig, weights: int, *, bf16: bool, seed: int, folder: Path) -> Any:  # noqa: ANN401
    """The same, for a model of so many weights."""
    import torch
    from trl import GRPOConfig

    given = dict(config.trl)
    shape = _shape(config, weights)
    cuda = torch.cuda.is_available()
    values: dict[str, Any] = {
        "use_cpu": not cuda,
        "bf16": bf16,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": cuda,
        "logging_steps": 1,
        "report_to": "none",
        "beta": 0.0,
        **given,
        **shape,
        "output_dir": str(folder),
        "seed": seed,
        "learning_rate": config.rate or (_FAST if weights < SMALL else _SLOW),
        "temperature": config.temperature,
        "num_generations": config.group_size,
        # Only the constant of dr_grpo comes from it.
        "max_completion_length": config.max_tokens,
        "shuffle_dataset": False,
        "save_strategy": "steps",
        "save_total_limit": KEPT,
        "disable_tqdm": True,
        "log_level": "error",
        "vllm_importance_sampling_correction": False,
    }
    try:
        with warnings.catch_warnings():
            # Notes of transformers to those who write trainers.
            warnings.simplefilter("ignore", FutureWarning)
            arguments = GRPOConfig(**values)
        every = config.steps * updates_per_step(arguments)
    except (ImportError, RuntimeError, TypeError, ValueError) as cause:
        raise ConfigError(f"train.trl: TRL refuses these values: {cause}.") from cause
    if arguments.world_size > 1:
        raise ConfigError(
            f"training in {arguments.world_size} processes: rollouts are made in one process.\n"
            "Start it without accelerate launch or torchrun."
        )
    arguments.save_steps, arguments.max_steps = every, every * config.generations
    return arguments
