"""Settings of the commands: pydantic models, filled from defaults, a TOML file, and `--set`."""

import tomllib
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from seal.errors import ConfigError, did_you_mean
from seal.types import Record

C = TypeVar("C", bound=Record)


class ModelConfig(Record):
    """How a model is called."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=1024, ge=1)
    retries: int = Field(default=3, ge=0)
    """Further tries of a call that failed for a passing reason."""
    timeout_s: float = Field(default=120.0, gt=0)
    cassette: str | None = None
    """A JSONL file of answers: requests in it are replayed, others are made and recorded."""


class RunConfig(Record):
    """How `seal run` calls its policy."""

    model: ModelConfig = ModelConfig()
    dollars: float | None = Field(default=None, gt=0)
    """Money the run may spend; None: no limit."""


class GateConfig(Record):
    """The paired test that a rewrite must pass."""

    alpha: float = Field(default=0.05, gt=0, lt=1)
    """Chance of adopting a useless rewrite, for a whole run."""
    futility_share: float = Field(default=0.75, gt=0.5, lt=1)
    """A rewrite worth having wins at least this share of the discordant pairs."""
    futility_e: float = Field(default=20.0, gt=1)
    """Evidence against that at which a test stops early."""
    scenarios: int = Field(default=240, ge=1)
    """Scenarios of the gate split that one test may use."""
    removal_scenarios: int = Field(default=60, ge=1)
    """Scenarios that testing the removal of one patch may use."""


class SearchConfig(Record):
    """How a search for better words spends its rollouts."""

    budget: int = Field(default=6000, ge=1)
    """Rollouts of the policy, readings of validation and test left out."""
    profile_tasks: int = Field(default=120, ge=1)
    """Train tasks rolled out at the start of every generation."""
    proposals: int = Field(default=10, ge=1)
    """Slots that the rewriter may propose for in one generation."""
    screen_scenarios: int = Field(default=24, ge=1)
    """Train scenarios on which each proposal is tried before the gate."""
    gate: GateConfig = GateConfig()
    dollars: float | None = Field(default=None, gt=0)
    """Money for policy and rewriter together; None: no limit."""
    rewriter: ModelConfig = ModelConfig(temperature=0.7, max_tokens=2048)


class EvolveConfig(SearchConfig):
    """How `seal evolve` spends its rollouts."""

    generations: int = Field(default=4, ge=1)
    patience: int = Field(default=2, ge=1)
    """Generations without an accepted patch before the run stops."""
    model: ModelConfig = ModelConfig()


class LoopSearchConfig(SearchConfig):
    """How `seal train` evolves the words, one generation before every round of steps."""

    budget: int = Field(default=400, ge=0)
    """Rollouts of all generations together; 0 leaves the words as they are."""
    profile_tasks: int = Field(default=60, ge=1)
    proposals: int = Field(default=6, ge=1)
    screen_scenarios: int = Field(default=8, ge=1)
    gate: GateConfig = GateConfig(scenarios=80, removal_scenarios=24)


class TrainConfig(Record):
    """How GRPO trains an adapter."""

    generations: int = Field(default=4, ge=1)
    """Rounds of: roll out, diagnose, evolve, train, evaluate."""
    steps: int = Field(default=4, ge=1)
    """GRPO steps of one generation."""
    groups: int = Field(default=8, ge=1)
    """Tasks of one step."""
    group_size: int = Field(default=8, ge=2)
    """Rollouts of one task, whose rewards are compared."""
    reward: Literal["outcome", "progress"] = "progress"
    """The verifier's word, or how far a rollout came before its fault: failures then rank too."""
    reweighting: Literal["none", "paper"] = "none"
    rho: Literal["static", "dynamic"] = "static"
    """Weights of the paper's labels: as printed, or following the failures."""
    exposure: float = Field(default=0.5, ge=0, le=1)
    """Share of groups that read the evolved words at first; it falls evenly to 0. The others read
    the author's own, under which the policy is scored."""
    temperature: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=192, ge=1)
    """Tokens of one reply."""
    rate: float | None = Field(default=None, gt=0)
    """The learning rate; None: as suits the size of the model."""
    lora_rank: int = Field(default=16, ge=1)
    lora_alpha: int = Field(default=32, ge=1)
    trl: dict[str, Any] = Field(default_factory=dict)
    """Keys of TRL's GRPOConfig; they outweigh what SEAL sets."""


class WarmStartConfig(Record):
    """How a policy learns to read words, before any of it is trained by GRPO.

    What is None is as suits the model: `tiny` learns all its weights from nothing, a pretrained
    model a LoRA adapter.
    """

    enabled: bool = True
    """False: training starts from the model as it is."""
    drill_steps: int | None = Field(default=None, ge=0)
    """Steps of copying and looking up, before any dialogue."""
    lesson_steps: int | None = Field(default=None, ge=1)
    """Steps on dialogues."""
    recovery_steps: int | None = Field(default=None, ge=0)
    """Steps, last of all, on errors and the calls that they teach."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of one step, at least."""
    tasks: int | None = Field(default=None, ge=1)
    """Tasks in one dialogue."""
    rate: float | None = Field(default=None, gt=0)
    """The learning rate."""
    conventions: int = Field(default=400, ge=200)
    """Convention seeds that lessons are of; with few, a policy learns them by heart."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the first weights and of the lessons."""


class LoopConfig(Record):
    """How `seal train` starts, evolves the words and trains the policy."""

    warm_start: WarmStartConfig = WarmStartConfig()
    train: TrainConfig = TrainConfig()
    evolve: LoopSearchConfig = LoopSearchConfig()
    validation_tasks: int = Field(default=60, ge=1)
    """Tasks by which the best checkpoint is chosen, after every generation."""
    test_tasks: int = Field(default=200, ge=1)
    """Tasks of the reading at the end: two policies under two wordings."""


def load_config(kind: type[C], file: Path | None, sets: list[str]) -> C:
    """Defaults, then the file, then `--set key=value`; all problems are said at once.

    Raises:
        ConfigError: A key is unknown or a value does not fit.
    """
    values: dict[str, Any] = {}
    if file is not None:
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as cause:
            raise ConfigError(f"{file}: no settings can be read here ({cause}).") from cause
    problems = [problem for item in sets if (problem := _set(values, item))]
    problems += _unknown_keys(kind, values, "")
    try:
        config = kind.model_validate(_filled(kind(), values))
    except ValidationError as cause:
        problems += [
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}, found {e['input']!r}."
            for e in cause.errors()
            if e["type"] != "extra_forbidden"
        ]
        raise ConfigError("\n".join(problems)) from cause
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def _filled(defaults: Record, values: dict[str, Any]) -> dict[str, Any]:
    """The values, and for what a table does not say the defaults that stand in its place.

    A table's own type may have other defaults than the setting that holds it.
    """
    filled: dict[str, Any] = dict(values)
    for key in type(defaults).model_fields:
        default = getattr(defaults, key)
        if key not in values:
            filled[key] = default
        elif isinstance(default, Record) and isinstance(values[key], dict):
            filled[key] = _filled(default, values[key])
    return filled


def _set(values: dict[str, Any], item: str) -> str:
    """Put one `--set` where it belongs; what is wrong with it, empty if nothing is."""
    key, equals, text = item.partition("=")
    if not equals or not key:
        return f"--set {item}: write it as key=value, such as --set gate.alpha=0.1"
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *outer, last = key.split(".")
    table = values
    for part in outer:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            return f"--set {item}: '{part}' is a value here, not a table."
        table = inner
    table[last] = value
    return ""


def _unknown_keys(kind: type[Record], values: dict[str, Any], prefix: str) -> list[str]:
    problems = []
    for key, value in values.items():
        field = kind.model_fields.get(key)
        inner = field.annotation if field else None
        if field is None:
            known = [f"{prefix}{name}" for name in kind.model_fields]
            problems.append(
                f"no setting '{prefix}{key}'.\nSettings: {', '.join(known)}."
                + did_you_mean(f"{prefix}{key}", known)
            )
        elif isinstance(inner, type) and issubclass(inner, Record) and isinstance(value, dict):
            problems += _unknown_keys(inner, value, f"{prefix}{key}.")
    return problems
