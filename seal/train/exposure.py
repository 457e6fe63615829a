"""Which rollouts of training read the evolved words, and which the author's own.

A policy that always reads the evolved words learns to follow them; what it is to know without them
it has to be asked without them. So exposure fades while training goes on, and in the last
generation nobody is told anything.
"""

import random

from seal.config import TrainConfig


def exposure(config: TrainConfig, generation: int) -> float:
    """The share of groups that read the words in force, in [0, 1].

    It falls evenly to 0 in the last generation; where there is but one, it stays as set.
    """
    last = config.generations - 1
    return config.exposure * (1 - generation / last) if last else config.exposure


def exposed(config: TrainConfig, seed: int, group: int) -> bool:
    """Whether a group, counted over all steps, reads the words in force; all its rollouts do.

    Rollouts of one group are compared with each other, so that they must have read the same.
    """
    generation = group // (config.groups * config.steps)
    return random.Random(f"exposure {seed}/{group}").random() < exposure(config, generation)
