"""What a `seal train` folder has to tell: four scores, the curve of training, every patch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.diagnose.profile import Profile
from seal.errors import ConfigError
from seal.evolve.lineage import Generation
from seal.evolve.run import dropped_seeds
from seal.loop.outcome import Checkpoint, FinalScores, Stage, StepFigures, Training, best_of
from seal.loop.run import read_training
from seal.records import RunFolder
from seal.report.charts import Axis, Curve, Mark, curve
from seal.report.evolve_story import (
    FinalSlot,
    GenerationPart,
    Outcome,
    final_slots,
    generation_part,
    outcome_of,
    tests_axis,
)
from seal.report.reading import read_profile
from seal.report.run_story import Part, Row, profile_rows, scored_part
from seal.rollout.scores import PairedSummary, ScoreSummary
from seal.types import Kind


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference on the test split, and the question that it answers."""

    name: str
    meaning: str
    paired: PairedSummary
    mark: Mark


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """The policy at a boundary."""

    checkpoint: Checkpoint
    part: Part
    best: bool


@dataclass(frozen=True, slots=True)
class Course:
    """Scores over the steps of training."""

    train: Curve
    """Of each step's own rollouts: train tasks, the words in force, drawn at a temperature."""
    validation: Curve
    """Of each checkpoint: validation tasks, the original words, greedy."""
    boundaries: tuple[float, ...]
    """Where generations begin, in percent of the width."""
    steps: int
    """At the right end."""


@dataclass(frozen=True, slots=True)
class TrainStory:
    """All that the page about a training run says."""

    settings: dict[str, Any]
    training: Training | None
    """None while the run is unfinished."""
    base: str
    """The base policy, without the folders of this machine."""
    outcome: Outcome | None
    cells: tuple[tuple[str, Part], ...]
    """Base and trained policy, each under both words; empty while unfinished."""
    differences: tuple[Difference, ...]
    axis: Axis
    """Of all differences on the page, so that their marks can be compared."""
    checkpoints: tuple[CheckpointRow, ...]
    steps: tuple[StepFigures, ...]
    course: Course
    stages: tuple[tuple[str, Stage], ...]
    candidate: str
    generations: tuple[GenerationPart, ...]
    spent: int
    final: tuple[FinalSlot, ...]
    seeds: tuple[tuple[str, str], ...]
    profile: Profile | None
    rows: tuple[Row, ...]
    kinds: tuple[Kind, ...]


def train_story(folder: RunFolder) -> TrainStory:
    """Read a training run; an unfinished one has no test scores.

    Raises:
        ConfigError: There is nothing to report, or a record cannot be read.
    """
    settings, training = folder.settings(), read_training(folder)
    checkpoints = _last(folder.lines("checkpoints", Checkpoint).read(), "number")
    if not checkpoints:
        raise ConfigError(
            f"{folder.path}: nothing is evaluated yet, so there is nothing to report.\n"
            "Run the same `seal train` command again: it resumes."
        )
    steps = _last(folder.lines("steps", StepFigures).read(), "step")
    generations: list[Generation] = _last(folder.lines("generations", Generation).read(), "index")
    original = folder.candidate(settings["candidate"])
    words = folder.candidate(generations[-1].candidate if generations else original.id)
    test = training.test if training else None
    axis = tests_axis(generations, [pair for _, _, pair in _pairs(test)])
    profile = read_profile(folder)
    rows = profile_rows(profile, {}) if profile else ()
    best = best_of(checkpoints)
    return TrainStory(
        settings=settings,
        training=training,
        base=shown_policy(training.base) if training else shown_policy(settings["policy"]),
        outcome=outcome_of(test.training) if test else None,
        cells=tuple(_cells(test)),
        differences=tuple(
            Difference(name, meaning, pair, axis.mark(pair.low, pair.effect, pair.high))
            for name, meaning, pair in _pairs(test)
        ),
        axis=axis,
        checkpoints=tuple(
            CheckpointRow(one, scored_part("", one.validation), one.number == best)
            for one in checkpoints
        ),
        steps=tuple(steps),
        course=_course(settings, checkpoints, steps),
        stages=tuple((stage_name(one), one) for one in training.stages) if training else (),
        candidate=words.id,
        generations=tuple(generation_part(one, axis) for one in generations),
        spent=sum(generation.rollouts for generation in generations),
        final=final_slots(original, words, generations),
        seeds=tuple((slot, original.texts[slot]) for slot in dropped_seeds(original, words)),
        profile=profile,
        rows=rows,
        kinds=tuple(kind for kind in Kind if any(kind == row.row.kind for row in rows)),
    )


def shown_policy(name: str) -> str:
    """A policy's name, folders by their last part alone.

    >>> shown_policy("local:/home/me/cache/tiny-rooms-1f")
    'local:tiny-rooms-1f'
    """
    kind, _, rest = name.partition(":")
    parts = [
        Path(part).name if part.startswith(("/", ".", "~")) else part for part in rest.split("+")
    ]
    return f"{kind}:{'+'.join(parts)}"


def stage_name(stage: Stage) -> str:
    """A stage as readers know it.

    >>> stage_name(Stage(name="evolve", generation=1, seconds=3.0))
    'generation 1: evolve the words'
    """
    names = {
        "evolve": f"generation {stage.generation}: evolve the words",
        "train": f"generation {stage.generation}: train the policy",
        "validation": f"checkpoint {stage.generation}: validation",
        "baseline": "baseline: validation",
        "test": "test split",
    }
    return names.get(stage.name, stage.name)


def _last(records: Iterable[Any], key: str) -> list[Any]:
    """The last record of each number, in the order of the numbers."""
    found = {getattr(record, key): record for record in records}
    return [found[number] for number in sorted(found)]


def _cells(test: FinalScores | None) -> Iterator[tuple[str, Part]]:
    if test is None:
        return
    for policy, words, summary in four_scores(test):
        yield policy, scored_part(words, summary)


def four_scores(test: FinalScores) -> Iterator[tuple[str, str, ScoreSummary]]:
    """Policy, words and score, cell by cell."""
    yield "base", "original", test.base_original
    yield "base", "evolved", test.base_evolved
    yield "trained", "original", test.trained_original
    yield "trained", "evolved", test.trained_evolved


def _pairs(test: FinalScores | None) -> Iterator[tuple[str, str, PairedSummary]]:
    if test is None:
        return
    yield "training", "trained over base policy, original words", test.training
    yield "words", "evolved over original words, base policy", test.words
    yield "words, trained", "evolved over original words, trained policy", test.trained_words
    yield "both", "trained policy with evolved words over base with original", test.both


def _course(
    settings: dict[str, Any], checkpoints: Sequence[Checkpoint], steps: Sequence[StepFigures]
) -> Course:
    planned = settings["config"]["train"]
    most = int(planned["generations"]) * int(planned["steps"])
    scored = [(one, one.figures["mean_score"]) for one in steps if "mean_score" in one.figures]
    return Course(
        train=curve(
            (
                (one.step, (score, score, score), f"step {one.step + 1}: {score:.2f}")
                for one, score in scored
            ),
            most,
        ),
        validation=curve(
            (
                (one.steps, (s.low, s.score, s.high), f"checkpoint {one.number}: {s.score:.2f}")
                for one in checkpoints
                if (s := one.validation).score is not None
                and s.low is not None
                and s.high is not None
            ),
            most,
        ),
        boundaries=tuple(
            Axis(0.0, most).at(number * int(planned["steps"]))
            for number in range(int(planned["generations"]))
        ),
        steps=most,
    )
