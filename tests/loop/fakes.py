"""Stands in for what needs torch: a trainer whose policy gets better from boundary to boundary.

It keeps the promises of the real one: an adapter is on disk before a boundary is announced, and a
run that was stopped goes on from the last boundary.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import seal
from seal.config import GateConfig, LoopConfig, LoopSearchConfig, TrainConfig
from seal.envs.template import EnvironmentTemplate
from seal.loop import generations, run
from seal.models import weights
from seal.models.protocol import PolicyInput, Reply
from seal.models.simulated import SimulatedPolicy
from seal.rollout.agent import Arena, roll_out
from seal.soundness.facts import Facts, collect_facts
from seal.train.trainer import adapter_folder
from seal.types import Rollout, Sampling, Task
from tests.evolve.parcels import write_parcels

BASE = "local:/a/base"
CONFIG = LoopConfig(
    train=TrainConfig(generations=2, steps=2, groups=2, group_size=2, max_tokens=64),
    evolve=LoopSearchConfig(
        budget=900,
        profile_tasks=30,
        screen_scenarios=4,
        gate=GateConfig(scenarios=40, removal_scenarios=6),
    ),
    validation_tasks=20,
    test_tasks=30,
)


@cache
def parcels() -> EnvironmentTemplate:
    return seal.load_environment(write_parcels(Path(mkdtemp()) / "parcels"))


@cache
def _facts() -> Facts:
    return collect_facts(parcels())


def facts_of(template: EnvironmentTemplate) -> Facts:
    """The facts of the parcel desk, told once for all tests."""
    assert template.name == "parcels"
    return _facts()


class Reader:
    """A simulated reader under the name and version of a policy in training."""

    def __init__(self, name: str, version: str, skill: str) -> None:
        self.name = name
        self.version = version
        self._reader = SimulatedPolicy(skill)

    def act(self, given: PolicyInput) -> Reply:
        return self._reader.act(given)


@dataclass(frozen=True)
class Made:
    """As much of a collected rollout as a loop looks at."""

    rollout: Rollout
    task: Task


@dataclass
class Trainer:
    """What `seal.train.trainer.train` is to the loop."""

    skills: tuple[str, ...] = ("novice", "novice", "expert")
    """The reader at each boundary."""
    stop_at: str = ""
    """Where a process dies, such as `step 3` or `begin 1`."""
    begun: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words in force of each step."""

    def train(
        self,
        _model: object,
        _tokenizer: object,
        loop: Any,
        config: TrainConfig,
        *,
        seed: int,
        folder: Path,
        name: str,
    ) -> None:
        assert seed == 0
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "checkpoint-0" / "boundary"
        first = int(kept.read_text()) if kept.is_file() else 0
        for number in range(first, config.generations + 1):
            adapter = adapter_folder(folder, number)
            adapter.mkdir(exist_ok=True)
            (adapter / "adapter_model.safetensors").write_text(str(number))
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(str(number))
            self.begun.append(number)
            self._die(f"begin {number}")
            arena = loop.begin(number, Reader(name, f"v{number}", self.skills[number]))
            if arena is None:
                return
            for step in range(number * config.steps, (number + 1) * config.steps):
                collected = list(self._collected(arena, loop.tasks(), name, step))
                self._die(f"step {step}")
                loop.seen(
                    step, collected, {"mean_score": min(1.0, 0.1 * step), "sampled_tokens": 7.0}
                )

    def _collected(
        self, arena: Arena, tasks: tuple[Task, ...], name: str, step: int
    ) -> Iterator[Made]:
        self.words.append(arena.candidate.id)
        for task in tasks[step : step + 2]:
            made = roll_out(
                arena,
                task,
                Reader(name, f"s{step}", "novice"),
                sample=step,
                seed=0,
                sampling=Sampling(temperature=1.0),
            )
            yield Made(made.rollout, task)

    def _die(self, here: str) -> None:
        if self.stop_at == here:
            raise KeyboardInterrupt(here)


def install(fake: Trainer, patch: pytest.MonkeyPatch) -> None:
    """Put the stand-in where the loop looks for the trainer, the warm start and models."""

    def opened(name: str) -> Reader:
        number = name.partition("+")[2]
        if not number:
            return Reader(name, "base", fake.skills[0])
        kept = (Path(number) / "adapter_model.safetensors").read_text()
        return Reader(name, f"adapter {kept}", fake.skills[int(kept)])

    patch.setattr(run, "_silence_progress_bars", lambda: None)
    patch.setattr(generations, "collect_facts", facts_of)
    patch.setattr(run, "_warm_start", lambda *_: BASE)
    patch.setattr(run, "check_work", lambda *_: None)
    patch.setattr(weights, "weights_version", lambda *_: "0")
    patch.setattr(weights, "load_weights", lambda *_, **__: (None, None))
    patch.setattr(weights, "open_local_policy", opened)
    # `seal.train` is the function; its folder is reached by import alone.
    patch.setattr(importlib.import_module("seal.train.trainer"), "train", fake.train)
