"""What a `seal run` folder has to tell: scores, what went wrong most, and failed rollouts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seal.diagnose.profile import Profile, ProfileRow
from seal.diagnose.run import RunDiagnosis, diagnose, environment_of
from seal.envs import EnvironmentTemplate
from seal.errors import ConfigError, SealError
from seal.evolve.lineage import changed_slots, row_name
from seal.records import RunFolder
from seal.report.charts import SCORES, Mark
from seal.report.reading import read_profile, read_run_result
from seal.report.wording import policy_note
from seal.rollout.scores import ScoreSummary, summarize
from seal.types import (
    CheckResult,
    DiagnosedRollout,
    Diagnosis,
    Kind,
    Rollout,
    Step,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
)

ROWS = 12
"""Profile rows that are shown."""
EXAMPLES = 5
"""Failed rollouts that are printed, of different profile rows."""


@dataclass(frozen=True, slots=True)
class Part:
    """A score on the axis from 0 to 1, under a name."""

    name: str
    summary: ScoreSummary
    mark: Mark | None
    """None where nothing was scored."""


@dataclass(frozen=True, slots=True)
class Row:
    """A profile row, with the examples that the page prints."""

    row: ProfileRow
    name: str
    """`tool.argument`, without the kind."""
    examples: tuple[tuple[str, int | None], ...]
    """Ids of rollouts, and the number of the example that prints it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call and what came back; a call beyond a limit has no result."""

    call: ToolCall
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Spoken:
    """One agent message and its calls."""

    content: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A diagnosis beside its turn."""

    diagnosis: Diagnosis
    about: str
    """`tool.argument`, empty if it is about neither."""
    fault: bool


@dataclass(frozen=True, slots=True)
class ToldTurn:
    """A turn and what was found in it."""

    turn: Turn
    steps: tuple[Spoken, ...]
    told: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A failed rollout, turn by turn."""

    number: int
    rollout: Rollout
    row: str
    turns: tuple[ToldTurn, ...]
    checks: tuple[CheckResult, ...]
    """The checks that failed."""


@dataclass(frozen=True, slots=True)
class RunStory:
    """All that the page about a run says."""

    settings: dict[str, Any]
    note: tuple[str, str] | None
    finished: bool
    expected: int | None
    """Rollouts that the finished run has; None where the environment cannot tell."""
    changed: tuple[str, ...] | None
    """Slots that differ from the original words; None where that cannot be told."""
    total: Part
    groups: tuple[Part, ...]
    usage: Usage
    quarantined: int
    suspect: int
    failures: tuple[tuple[str, int], ...]
    """Why rollouts are unscored, the most frequent first."""
    problem: str | None
    """Why there are no diagnoses."""
    profile: Profile | None
    rows: tuple[Row, ...]
    kinds: tuple[Kind, ...]
    examples: tuple[Example, ...]


def run_story(folder: RunFolder) -> RunStory:
    """Read a run, and diagnose it unless that has been done.

    A run that cannot be diagnosed, because its environment has changed, say, still has its scores.

    Raises:
        ConfigError: There is nothing to report, or a record cannot be read.
    """
    settings, result = folder.settings(), read_run_result(folder)
    rollouts = folder.rollouts()
    if not rollouts:
        raise ConfigError(
            f"{folder.path}: no rollout yet, so there is nothing to report.\n"
            "Run the same `seal run` command again: it resumes."
        )
    template, found, problem = None, None, None
    try:
        template = environment_of(folder)
        found = _kept(folder, rollouts) or diagnose(folder.path)
    except SealError as error:
        found, problem = _kept(folder, rollouts), str(error)
    examples = _examples(found, rollouts) if found else ()
    rows = _rows(found.profile, examples) if found else ()
    return RunStory(
        settings=settings,
        note=policy_note(settings["policy"]),
        finished=result is not None,
        expected=_expected(template, settings) if template else None,
        changed=_changed(template, folder, settings["candidate"]) if template else None,
        total=part("all", rollouts),
        groups=_groups(rollouts),
        usage=sum((rollout.usage for rollout in rollouts), Usage()),
        quarantined=(result or {}).get("quarantined", 0),
        suspect=(result or {}).get("suspect", 0),
        failures=_failures(rollouts),
        problem=None if found else problem,
        profile=found.profile if found else None,
        rows=rows,
        kinds=_kinds(rows, examples),
        examples=examples,
    )


def part(name: str, rollouts: Sequence[Rollout]) -> Part:
    """The score of some rollouts."""
    return scored_part(name, summarize(rollouts))


def scored_part(name: str, summary: ScoreSummary) -> Part:
    """A score that is known, with its place on the axis."""
    s = summary
    if s.score is None or s.low is None or s.high is None:
        return Part(name, s, None)
    return Part(name, s, SCORES.mark(s.low, s.score, s.high))


def profile_rows(profile: Profile, numbers: dict[str, int]) -> tuple[Row, ...]:
    """The rows with the largest preventable loss; `numbers` says which rollouts are printed."""
    shown = [row for row in profile.rows if row.faults > 0][:ROWS]
    return tuple(
        Row(
            row=row,
            name=_about(row.tool, row.argument) or "the turn as a whole",
            examples=tuple((one, numbers.get(one)) for one in dict.fromkeys(row.examples)),
        )
        for row in shown
    )


def _kept(folder: RunFolder, rollouts: Sequence[Rollout]) -> RunDiagnosis | None:
    """The diagnoses beside the rollouts; None unless they are of these very rollouts."""
    found = list(folder.lines("diagnoses", DiagnosedRollout).read())
    profile = read_profile(folder)
    same = {(d.rollout, d.candidate) for d in found} == {(r.id, r.candidate) for r in rollouts}
    return RunDiagnosis(tuple(found), profile) if found and same and profile else None


def _rows(profile: Profile, examples: Sequence[Example]) -> tuple[Row, ...]:
    return profile_rows(profile, {one.rollout.id: one.number for one in examples})


def _expected(template: EnvironmentTemplate, settings: dict[str, Any]) -> int:
    split = settings["split"]
    tasks = template.tasks(None if split == "all" else split)[: settings.get("limit")]
    return len(tasks) * int(settings["samples"])


def _changed(template: EnvironmentTemplate, folder: RunFolder, candidate: str) -> tuple[str, ...]:
    if candidate == template.original.id:
        return ()
    return tuple(changed_slots(template.original, folder.candidate(candidate)))


def _groups(rollouts: Sequence[Rollout]) -> tuple[Part, ...]:
    groups: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        groups[rollout.group].append(rollout)
    return tuple(part(name, groups[name]) for name in sorted(groups))


def _failures(rollouts: Sequence[Rollout]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = defaultdict(int)
    for rollout in rollouts:
        if rollout.reward is None:
            counts[rollout.failure or "the verifier gave no score"] += 1
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _examples(found: RunDiagnosis, rollouts: Sequence[Rollout]) -> tuple[Example, ...]:
    """One failed rollout of each of the first profile rows, none twice."""
    by_id = {rollout.id: rollout for rollout in rollouts}
    diagnosed = {one.rollout: one for one in found.diagnosed}
    chosen: dict[str, str] = {}
    for row in found.profile.rows:
        new = next((one for one in row.examples if one not in chosen and one in by_id), None)
        if new is not None and len(chosen) < EXAMPLES:
            chosen[new] = row_name(row.tool, row.argument, row.kind)
    return tuple(
        _example(number, by_id[name], diagnosed[name], row)
        for number, (name, row) in enumerate(chosen.items(), start=1)
    )


def _example(number: int, rollout: Rollout, found: DiagnosedRollout, row: str) -> Example:
    told: dict[int, list[Told]] = defaultdict(list)
    for diagnosis in dict.fromkeys(found.diagnoses):
        about = _about(diagnosis.tool, diagnosis.argument)
        told[diagnosis.turn].append(Told(diagnosis, about, diagnosis == found.fault))
    return Example(
        number=number,
        rollout=rollout,
        row=row,
        turns=tuple(
            ToldTurn(turn, tuple(_spoken(step) for step in turn.steps), tuple(told[place]))
            for place, turn in enumerate(rollout.turns)
        ),
        checks=tuple(check for check in rollout.score.checks if not check.passed),
    )


def _spoken(step: Step) -> Spoken:
    results = {result.call_id: result for result in step.results}
    return Spoken(step.content, tuple(Call(call, results.get(call.id)) for call in step.calls))


def _about(tool: str | None, argument: str | None) -> str:
    return ".".join(name for name in (tool, argument) if name)


def _kinds(rows: Sequence[Row], examples: Sequence[Example]) -> tuple[Kind, ...]:
    """The kinds that the page names, in the order of their table."""
    named = {row.row.kind for row in rows}
    named |= {t.diagnosis.kind for e in examples for turn in e.turns for t in turn.told}
    return tuple(kind for kind in Kind if kind in named)
