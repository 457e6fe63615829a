"""A trainer that is about to make one step, with nothing but rollouts around it."""

from itertools import cycle

from seal.config import TrainConfig
from seal.rollout.agent import Arena
from seal.train.collect import Collector
from tests.train.bell import small_model

SMALL = {"groups": 4, "group_size": 6, "max_tokens": 24, "reward": "outcome"}


class Collecting:
    """A conductor with nothing but rollouts; `change` may alter them."""

    def __init__(self, trainer, template, change=lambda row: row):
        self._trainer = trainer
        self.arenas = [Arena(template)]
        """The words of each group in turn."""
        self._tasks = {task.id: task for task in template.tasks("train")}
        self._change = change
        self._collector = Collector(list(self._tasks.values()), trainer.config, seed=0)
        self.rows = []
        self.figures = {}

    def collect(self, names, step):
        policy = self._trainer.policy("local:test", seed=0)
        tasks = [self._tasks[name] for name in names]
        made = self._collector.collect(cycle(self.arenas), policy, tasks, step)
        self.rows = [self._change(row) for row in made]
        return self.rows

    def seen(self, _step, _rows, figures):
        self.figures = figures

    def passed(self, _step):
        return False

    def boundary(self, _number):
        return False


def trainer_of(template, tokenizer, folder, change=lambda row: row, **changes):
    """A trainer that is about to make its first step, with an adapter that says something."""
    import torch

    from seal.train.grpo import SealTrainer

    config = TrainConfig(**{**SMALL, **changes})
    order = template.tasks("train")[: config.groups]
    trainer = SealTrainer(small_model(tokenizer), tokenizer, config, order, seed=0, folder=folder)
    torch.manual_seed(1)
    shake(trainer)
    trainer.conductor = Collecting(trainer, template, change)
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    trainer.model.train()
    return trainer


def shake(trainer) -> None:
    import torch

    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if "lora" in name:
                weight.normal_(std=0.1)


def rows_of(trainer) -> list[dict]:
    """What TRL's loader would bring for one step."""
    prompts = trainer.train_dataset["prompt"]
    size = trainer.config.group_size
    return [{"prompt": name} for name in prompts for _ in range(size)]


def step_of(trainer) -> list[dict]:
    """All micro-batches of one step."""
    trainer._buffered_inputs = None
    trainer._prepare_inputs(rows_of(trainer))
    return trainer._buffered_inputs
