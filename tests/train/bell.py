"""A made-up environment of a bell, a random model, and replies that a test hands out to it."""

import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from seal.envs import EnvironmentTemplate, load_environment
from seal.models.chat import END, call_text
from seal.rollout.agent import Arena
from seal.train.collect import Collected
from seal.types import Task
from tests.factories import write_environment

TRAINER = [
    pytest.mark.train,
    pytest.mark.skipif(
        importlib.util.find_spec("trl") is None and not os.environ.get("CI"),
        reason="needs the train extra (torch, transformers, trl, peft)",
    ),
    pytest.mark.filterwarnings("default"),
]
"""The marks of a test that runs the trainer."""
TOML = 'name = "bell"\ndescription = "A bell."\nlicence = "CC0-1.0"\n[limits]\nsteps = 4\n'

WORLD = '''\
"""A bell that tires, and jams when it is rung too often at once."""

from seal.envs import Environment, tool
from seal.errors import ToolError
from seal.types import Task


class Bell(Environment):
    """Counts how often it was rung."""

    def reset(self, task: Task) -> None:
        self.rung = 0

    @tool
    def ring(self, times: int) -> str:
        """Ring the bell."""
        if times > 9:
            raise RuntimeError("jammed")
        if times > 3:
            raise ToolError("tired", "That is too often.", argument="times")
        self.rung += times
        return f"rang {times}"

    @tool(mutates=False)
    def listen(self) -> str:
        """Hear how often it rang."""
        return f"heard {self.rung}"
'''

TOOL = '{% extends "_tool.jinja" %}\n'


def task(number: int) -> dict[str, Any]:
    """A task of one to three turns; every fourth has a turn that asks for nothing."""
    times = 1 + number % 2
    ring = {"user": f"Ring {times}.", "gold": [{"tool": "ring", "arguments": {"times": times}}]}
    turns = [ring] * (1 + number % 2)
    if number % 4 == 3:
        turns = [*turns, {"user": "Paint it.", "gold": []}]
    return {"id": f"bell-{number}", "scenario": f"bell-{number}", "turns": turns}


def bell(folder: Path, tasks: int = 8) -> EnvironmentTemplate:
    """The environment, all of its tasks in train."""
    rows = [{**task(number), "split": "train"} for number in range(tasks)]
    where = write_environment(
        folder, toml=TOML, world=WORLD, tools={"ring": TOOL}, slots="", tasks=rows
    )
    return load_environment(where)


def ring(times: object) -> str:
    """A call of `ring` as a policy writes it."""
    return call_text("ring", json.dumps({"times": times}))


REPLIES = (
    ring(1),
    ring(1),
    ring(1),
    ring(2),
    ring(2),
    ring(5),
    ring("two"),
    call_text("listen", "{}"),
    call_text("hum", "{}"),
    "<tool_call>ring",
    *["Done."] * 8,
)
"""Right and wrong calls, and answers; half of what there is ends a turn."""


def small_model(tokenizer: Any, seed: int = 0):
    """A model of a few thousand random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.2,
    )
    return Qwen3ForCausalLM(config)


def words_of(template: EnvironmentTemplate) -> list[str]:
    """Texts to make a tokenizer from."""
    arena = Arena(template)
    tools = [tool.words() for tool in arena.tools.values()]
    said = [turn.user for one in template.tasks("train") for turn in one.turns]
    return [arena.prompt, *tools, *said, *REPLIES] * 3


def hand_out(monkeypatch: Any, tokenizer: Any, replies: Sequence[str] = REPLIES) -> None:
    """Let every row say one of these texts, drawn from its stream, with the model's log-probs."""
    from seal.models.sampler import Sampler

    ids = [tokenizer(text + END, add_special_tokens=False)["input_ids"] for text in replies]
    plans: dict[int, list[int]] = {}

    def draw(_self: object, rows: Sequence[Any], logits: Any) -> None:
        for row, line in zip(rows, logits, strict=True):
            if not row.sampled:
                plans[row.index] = row.chance.choice(ids)
            token = plans[row.index][len(row.sampled)]
            row.ids.append(token)
            row.log_probs.append((line / row.temperature).log_softmax(-1)[token].item())
            row.sampled.append(token)

    monkeypatch.setattr(Sampler, "_draw", draw)


class Loop:
    """What a loop gives a trainer: one arena throughout; it remembers what it saw."""

    def __init__(self, template: EnvironmentTemplate, stop_at: int | None = None) -> None:
        self.arena = Arena(template)
        self.stop_at = stop_at
        self.began: list[tuple[int, str]] = []
        self.steps: list[int] = []
        self.collected: list[Collected] = []
        self.figures: list[Mapping[str, float]] = []
        self.at_boundary: Callable[[int], None] = lambda _: None

    def begin(self, number: int, policy: Any) -> Arena | None:
        self.began.append((number, policy.version))
        self.at_boundary(number)
        return None if number == self.stop_at else self.arena

    def tasks(self) -> Sequence[Task]:
        return self.arena.template.tasks("train")

    def seen(self, step: int, collected: Sequence[Collected], figures: Mapping[str, float]) -> None:
        self.steps.append(step)
        self.collected += collected
        self.figures.append(figures)
