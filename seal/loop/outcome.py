"""What a training run writes down, and what it found in the end."""

from collections.abc import Sequence

from pydantic import Field

from seal.evolve.lineage import Generation
from seal.rollout.scores import PairedSummary, ScoreSummary, paired, summarize
from seal.types import Record, Rollout, Usage


class StepFigures(Record):
    """What one GRPO step was made of."""

    step: int
    generation: int
    candidate: str
    """The words in force."""
    policy_version: str
    """Of the policy that made its rollouts."""
    rollouts: int
    figures: dict[str, float]
    """By name, among them `mean_score` (the verifier's word), `mean_reward` (what was trained on),
    `mixed_groups` (the share of groups in which rewards differ) and `sampled_tokens`."""


class Checkpoint(Record):
    """The policy at a boundary between generations."""

    number: int
    """0: before the first step."""
    steps: int
    """GRPO steps that came before."""
    policy_version: str
    validation: ScoreSummary
    """Its score on validation tasks, under the original words."""


class Stage(Record):
    """A part of the run, and the seconds that one process spent on it."""

    name: str
    generation: int | None = None
    seconds: float


class FinalScores(Record):
    """The reading of the test split: two policies under two wordings, on the same tasks.

    The base policy is the warm-started one, before GRPO; the trained one is the best checkpoint.
    """

    base_original: ScoreSummary
    base_evolved: ScoreSummary
    trained_original: ScoreSummary
    trained_evolved: ScoreSummary
    training: PairedSummary
    """Trained over base policy, original words: what the policy learned."""
    words: PairedSummary
    """Evolved over original words, base policy: what the words are worth without training."""
    trained_words: PairedSummary
    """Evolved over original words, trained policy."""
    both: PairedSummary
    """Trained policy with evolved words over base policy with original words."""
    hint_reliance: float | None
    """Of the trained policy's score with evolved words, the share it lacks without them: 1 minus
    one over the other. None if it scores nothing with them."""


def final_scores(
    base: tuple[Sequence[Rollout], Sequence[Rollout]],
    trained: tuple[Sequence[Rollout], Sequence[Rollout]],
) -> FinalScores:
    """The scores of test rollouts and their paired differences.

    Args:
        base: The base policy's rollouts, under the original and under the evolved words.
        trained: The trained policy's.
    """
    without, within = summarize(trained[0]), summarize(trained[1])
    relies = None
    if without.score is not None and within.score:
        relies = round(1 - without.score / within.score, 6)
    return FinalScores(
        base_original=summarize(base[0]),
        base_evolved=summarize(base[1]),
        trained_original=without,
        trained_evolved=within,
        training=paired(base[0], trained[0]),
        words=paired(base[0], base[1]),
        trained_words=paired(trained[0], trained[1]),
        both=paired(base[0], trained[1]),
        hint_reliance=relies,
    )


class Training(Record):
    """What a training run found."""

    environment: str
    policy: str
    """As it was named after `-m`."""
    base: str
    """The policy before GRPO, after the warm start, as `-m` takes it."""
    rewriter: str
    original: str
    candidate: str
    """The words in force at the end."""
    generations: tuple[Generation, ...]
    """Of the search for words; none where its budget is 0."""
    steps: tuple[StepFigures, ...]
    checkpoints: tuple[Checkpoint, ...]
    best: int
    """The checkpoint with the best validation score, of equal ones the last; 0: the base policy."""
    changed: tuple[str, ...]
    """The slots that say something else in the end."""
    dropped_seeds: tuple[str, ...]
    """The author's own slot texts that did not survive."""
    test: FinalScores
    rollouts: int
    """Rollouts spent on the search for words."""
    budget: int
    usage: Usage
    """Of the search, of validation and of the test split."""
    rewriter_usage: Usage
    stages: tuple[Stage, ...] = Field(default=())
    """Seconds of all processes that worked on the run, added up."""


def best_of(checkpoints: Sequence[Checkpoint]) -> int:
    """The number of the checkpoint with the best validation score, of equal ones the last."""
    best = max(checkpoints, key=lambda one: (one.validation.score or 0.0, one.number))
    return best.number


def added_up(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Each stage once, in the order in which they first came, with the seconds of all entries."""
    seconds: dict[tuple[str, int | None], float] = {}
    for stage in stages:
        key = stage.name, stage.generation
        seconds[key] = seconds.get(key, 0.0) + stage.seconds
    return tuple(
        Stage(name=name, generation=generation, seconds=round(spent, 3))
        for (name, generation), spent in seconds.items()
    )
