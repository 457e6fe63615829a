"""What a `seal evolve` folder has to tell: the gain, its cost, every patch and its tests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from seal.diagnose.profile import Profile
from seal.errors import ConfigError
from seal.evolve.lineage import GateResult, Generation, Patch, changed_slots
from seal.evolve.run import Evolution, dropped_seeds
from seal.records import RunFolder
from seal.report.charts import Axis, Mark, difference_axis
from seal.report.diff import Change, change
from seal.report.reading import read_evolution, read_profile
from seal.report.run_story import Part, Row, profile_rows, scored_part
from seal.report.wording import policy_note
from seal.rollout.scores import UNSCORED_SHARE, PairedSummary, ScoreSummary
from seal.types import Candidate, Kind

Outcome = Literal["higher", "lower", "no clear difference", "undecided"]


@dataclass(frozen=True, slots=True)
class GateLine:
    """A paired test, read from the side of the patches: positive and `better` speak for them."""

    gate: GateResult
    mark: Mark | None
    """None where no scenario was scored under both."""
    better: int
    """Scenarios that score higher with the patches."""
    worse: int


@dataclass(frozen=True, slots=True)
class PatchPart:
    """A patch and its change, word by word."""

    patch: Patch
    change: Change
    removal: GateLine | None
    """The test of taking it back alone, if there was one."""


@dataclass(frozen=True, slots=True)
class GenerationPart:
    """A generation with its patches and tests."""

    generation: Generation
    patches: tuple[PatchPart, ...]
    accepted: int
    standing: tuple[GateLine, ...]
    adoptions: tuple[GateLine, ...]
    removals: tuple[GateLine, ...]


@dataclass(frozen=True, slots=True)
class GroupPair:
    """A task group's score on the test split, under both candidates."""

    name: str
    original: float | None
    evolved: float | None


@dataclass(frozen=True, slots=True)
class Headline:
    """Original against evolved words on the test split."""

    test: PairedSummary
    outcome: Outcome | Literal["unchanged"]
    mark: Mark
    original: Part
    evolved: Part
    groups: tuple[GroupPair, ...]
    rollouts: int
    """Rollouts of the test split; they stand beside the budget."""


@dataclass(frozen=True, slots=True)
class FinalSlot:
    """A slot that says something else in the end, and the generation that made it so."""

    slot: str
    change: Change
    generation: int | None
    """None if no accepted patch accounts for it."""
    support: str


@dataclass(frozen=True, slots=True)
class EvolveStory:
    """All that the page about an evolve run says."""

    settings: dict[str, Any]
    note: tuple[str, str] | None
    evolution: Evolution | None
    """None while the run is unfinished."""
    headline: Headline | None
    spent: int
    budget: int
    candidate: str
    generations: tuple[GenerationPart, ...]
    axis: Axis
    """Of all differences on the page, so that their marks can be compared."""
    final: tuple[FinalSlot, ...]
    seeds: tuple[tuple[str, str], ...]
    """Slot and original text of the author's seeds that did not survive."""
    profile: Profile | None
    rows: tuple[Row, ...]
    kinds: tuple[Kind, ...]


def evolve_story(folder: RunFolder) -> EvolveStory:
    """Read an evolve run; an unfinished one has generations, and no headline.

    Raises:
        ConfigError: There is nothing to report, or a record cannot be read.
    """
    settings, evolution = folder.settings(), read_evolution(folder)
    generations = _generations(folder, evolution)
    if not generations and evolution is None:
        raise ConfigError(
            f"{folder.path}: no generation is over yet, so there is nothing to report.\n"
            "Run the same `seal evolve` command again: it resumes."
        )
    original = folder.candidate(settings["candidate"])
    last = generations[-1].candidate if generations else settings["candidate"]
    words = folder.candidate(last)
    axis = tests_axis(generations, [evolution.test] if evolution else [])
    profile = read_profile(folder)
    rows = profile_rows(profile, {}) if profile else ()
    return EvolveStory(
        settings=settings,
        note=policy_note(settings["policy"]),
        evolution=evolution,
        headline=_headline(evolution, axis) if evolution else None,
        spent=sum(generation.rollouts for generation in generations),
        budget=settings["config"]["budget"],
        candidate=last,
        generations=tuple(generation_part(one, axis) for one in generations),
        axis=axis,
        final=final_slots(original, words, generations),
        seeds=tuple((slot, original.texts[slot]) for slot in dropped_seeds(original, words)),
        profile=profile,
        rows=rows,
        kinds=tuple(kind for kind in Kind if any(kind == row.row.kind for row in rows)),
    )


def _generations(folder: RunFolder, evolution: Evolution | None) -> Sequence[Generation]:
    if evolution is not None:
        return evolution.generations
    return list(folder.lines("generations", Generation).read())


def tests_axis(generations: Iterable[Generation], results: Iterable[PairedSummary]) -> Axis:
    """An axis that holds the differences of all gate tests and of all results."""
    gates = [gate for generation in generations for gate in generation.gates if gate.pairs]
    ends = [end for gate in gates for end in (gate.low, gate.high)]
    ends += [end for result in results for end in (result.low, result.high)]
    return difference_axis(ends)


def _headline(evolution: Evolution, axis: Axis) -> Headline:
    test, before, after = evolution.test, evolution.original_score, evolution.evolved_score
    same = evolution.original == evolution.candidate
    return Headline(
        test=test,
        outcome="unchanged" if same else outcome_of(test),
        mark=axis.mark(test.low, test.effect, test.high),
        original=scored_part("original words", before),
        evolved=scored_part("evolved words", after),
        groups=_groups(before, after),
        rollouts=before.total if same else before.total + after.total,
    )


def outcome_of(test: PairedSummary) -> Outcome:
    """What a paired difference says."""
    total = test.pairs + test.unscored
    if not test.pairs or test.unscored > UNSCORED_SHARE * total:
        return "undecided"
    if test.low > 0:
        return "higher"
    return "lower" if test.high < 0 else "no clear difference"


def _groups(before: ScoreSummary, after: ScoreSummary) -> tuple[GroupPair, ...]:
    names = sorted(before.groups.keys() | after.groups.keys())
    return tuple(GroupPair(n, before.groups.get(n), after.groups.get(n)) for n in names)


def generation_part(generation: Generation, axis: Axis) -> GenerationPart:
    """A generation, its tests by what they were for, on the page's axis of differences."""
    lines = [_line(gate, axis) for gate in generation.gates]
    removals = {line.gate.slots[0]: line for line in lines if line.gate.test == "removal"}
    return GenerationPart(
        generation=generation,
        patches=tuple(
            PatchPart(patch, change(patch.before, patch.after), removals.get(patch.slot))
            for patch in generation.patches
        ),
        accepted=sum(patch.verdict == "accepted" for patch in generation.patches),
        standing=tuple(line for line in lines if line.gate.test == "standing"),
        adoptions=tuple(line for line in lines if line.gate.test in ("bundle", "half")),
        removals=tuple(removals.values()),
    )


def _line(gate: GateResult, axis: Axis) -> GateLine:
    mark = axis.mark(gate.low, gate.effect, gate.high) if gate.pairs else None
    return GateLine(gate, mark, gate.wins, gate.losses)


def final_slots(
    original: Candidate, words: Candidate, generations: Sequence[Generation]
) -> tuple[FinalSlot, ...]:
    """The slots that say something else in the end, with the patches that made them."""
    made: dict[str, tuple[int, Patch]] = {}
    for generation in generations:
        for patch in generation.patches:
            if patch.verdict == "accepted":
                made[patch.slot] = (generation.index, patch)
    return tuple(
        FinalSlot(
            slot=slot,
            change=change(original.texts.get(slot, ""), words.texts.get(slot, "")),
            generation=made[slot][0] if slot in made else None,
            support=(made[slot][1].support or "") if slot in made else "",
        )
        for slot in changed_slots(original, words)
    )
