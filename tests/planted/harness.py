"""Planted rollouts, and how often a diagnosis is right about them."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from seal.diagnose import diagnose_rollout
from seal.types import DiagnosedRollout, Diagnosis, Kind, Task
from tests.planted.faults import FAULTS, Labels, corrected
from tests.planted.harmless import harmless, harmless_reads
from tests.planted.published import PASSED, published_labels, says_right
from tests.planted.scripts import Script, Seen, Stage, flat

SHARES = ("fault_right", "pass_kept", "harmless_kept", "recovered_right", "cascade_right")


@dataclass(frozen=True)
class Case:
    """One rollout with what was planted in it."""

    sort: str
    seen: Seen
    turn: int | None = None
    """The turn of the fault, None if there is none."""
    labels: Labels = frozenset()
    """The labels of the fault that are right."""
    harmless: frozenset[int] = frozenset()
    """Turns in another form that means the same."""
    erred: tuple[int, str] | None = None
    """Turn and id of a call that was an error and was corrected."""
    touched: frozenset[int] = frozenset()

    @cached_property
    def diagnosed(self) -> DiagnosedRollout:
        stage, rollout = self.seen.stage, self.seen.rollout
        task = self.seen.script.task
        return diagnose_rollout(stage.template, stage.gold, task, stage.arena.candidate, rollout)

    @cached_property
    def published(self) -> list[str]:
        return published_labels(self.seen.stage.template, self.seen.script.task, self.seen.rollout)

    @property
    def spoilt(self) -> frozenset[int]:
        """The turns in which something is wrong."""
        right = {*self.harmless, *([self.erred[0]] if self.erred else [])}
        return self.touched - right

    def before_fault(self, turn: int) -> bool:
        """Whether a turn comes before the fault, or there is none."""
        return self.turn is None or turn < self.turn

    def of_turn(self, turn: int) -> list[Diagnosis]:
        return [one for one in self.diagnosed.diagnoses if one.turn == turn]


def cases(stage: Stage, each: int, seed: int = 0) -> Iterator[Case]:
    """So many cases of every sort, as far as the environment has room for it.

    Every fault comes alone and, by chance, with one more thing in another turn or in the same one:
    a second fault later on, an error that was corrected, a harmless form. Tasks whose gold is
    listed as doubtful are left out: nothing is said of them.
    """
    rng = random.Random(f"{stage.template.name} {seed}")
    doubted = {one.task for one in stage.template.world.quarantined()}
    tasks = [task for task in stage.template.tasks(None) if task.id not in doubted]
    for sort in FAULTS:
        yield from _some(_faulty(stage, sort, _shuffled(tasks, rng), rng), each)
    yield from _some(_corrected(stage, _shuffled(tasks, rng), rng), 3 * each)
    found: Counter[str] = Counter()
    for case in _harmless(stage, _shuffled(tasks, rng), rng):
        found[case.sort] += 1
        if found[case.sort] <= each:
            yield case
        elif sum(found.values()) > 12 * each:
            return


def _shuffled(tasks: Sequence[Task], rng: random.Random) -> list[Task]:
    return rng.sample(tasks, len(tasks))


def _some(found: Iterator[Case], count: int) -> Iterator[Case]:
    for _, case in zip(range(count), found, strict=False):
        yield case


def _faulty(stage: Stage, sort: str, tasks: Sequence[Task], rng: random.Random) -> Iterator[Case]:
    for task in tasks:
        places = stage.places(task)
        for index in rng.sample(range(len(places)), len(places)):
            script = stage.script(task, rng)
            case = _fault(stage, sort, script, index, rng)
            if case is not None:
                yield _with_more(case, rng)
                break


def _fault(stage: Stage, sort: str, script: Script, index: int, rng: random.Random) -> Case | None:
    """A case of one fault, None if it cannot be planted there or does no harm."""
    planted = FAULTS[sort](stage.places(script.task)[index], rng)
    if planted is None:
        return None
    seen = stage.play(script.with_turn(index, planted.steps, planted.answer))
    labels = frozenset() if seen.passed else planted.told(seen)
    if not labels:
        return None
    return Case(sort, seen, index, labels, touched=frozenset({index}))


def _with_more(case: Case, rng: random.Random) -> Case:
    """The case with one thing more, if chance has it and it comes about as meant."""
    return (
        rng.choice([_alone, _and_later, _and_error, _and_harmless, _and_beside])(case, rng) or case
    )


def _alone(case: Case, _rng: random.Random) -> Case | None:
    return case


def _and_later(case: Case, rng: random.Random) -> Case | None:
    """A second fault, later on; the first one stays the fault, unless this one makes up for it."""
    places = case.seen.stage.places(case.seen.script.task)
    later = [place for place in places if place.index > (case.turn or 0)]
    if not later:
        return None
    place = rng.choice(later)
    planted = FAULTS[rng.choice(sorted(FAULTS))](place, rng)
    undone = places[case.turn or 0].calls
    if planted is None or any(call in undone for call in flat(planted.steps)):
        return None
    script = case.seen.script.with_turn(place.index, planted.steps, planted.answer)
    return _again(case, script, place.index)


def _again(case: Case, script: Script, index: int) -> Case | None:
    seen = case.seen.stage.play(script)
    if seen.passed:
        return None
    return replace(case, seen=seen, touched=case.touched | {index})


def _and_error(case: Case, rng: random.Random) -> Case | None:
    """An error that was corrected, in another turn."""
    others = [p for p in case.seen.stage.places(case.seen.script.task) if p.index != case.turn]
    place = rng.choice(others) if others else None
    made = corrected(place, rng) if place else None
    if place is None or made is None:
        return None
    more = _again(case, case.seen.script.with_turn(place.index, made[0]), place.index)
    if more is None or not _came_right(more.seen, place.index, made[1]):
        return None
    return replace(more, erred=(place.index, made[1]))


def _came_right(seen: Seen, turn: int, call_id: str) -> bool:
    """The call went wrong, and nothing else of its turn did."""
    steps = seen.rollout.turns[turn].steps
    failed = [r.call_id for step in steps for r in step.results if r.error]
    return failed == [call_id]


def _and_harmless(case: Case, rng: random.Random) -> Case | None:
    """Another turn in another form that means the same, which is known from its playing alone."""
    stage, script = case.seen.stage, case.seen.script
    others = [place for place in stage.places(script.task) if place.index != case.turn]
    forms = [(place, steps) for place in others for _, steps in harmless(place, rng)]
    if not forms:
        return None
    place, steps = rng.choice(forms)
    alone = stage.play(stage.script(script.task, rng).with_turn(place.index, steps))
    if not alone.passed or alone.errors(place.index):
        return None
    more = _again(case, script.with_turn(place.index, steps), place.index)
    return more and replace(more, harmless=frozenset({place.index}))


ALONE = frozenset({"no_call", "wrong_tool", "limit_reached", "spurious_call"})
"""Kinds that another call in the turn would turn into something else."""


def _and_beside(case: Case, rng: random.Random) -> Case | None:
    """Something harmless in the turn of the fault: a read, or an error that was corrected."""
    stage, script, index = case.seen.stage, case.seen.script, case.turn or 0
    place = stage.places(script.task)[index]
    steps = [[call] for call in flat(script.turns[index])]
    if ALONE & {kind for kind, _, _ in case.labels} or len(steps) > stage.template.limits.steps - 2:
        return None
    own = [step for step in steps if any(step[0] is call for call in place.calls)]
    made = corrected(replace(place, calls=(own[0][0],)), rng) if own else None
    reads = [call for call in harmless_reads(place) if call[0] not in dict(place.calls)]
    if made is not None and rng.random() < 0.5:
        at = next(k for k, step in enumerate(steps) if step is own[0])
        extra = made[0][0]
    elif reads:
        at, extra = rng.randint(0, len(steps)), [rng.choice(reads)]
    else:
        return None
    plain = [[call] for call in place.calls]
    alone = stage.play(stage.script(script.task, rng).with_turn(index, [extra, *plain]))
    if not alone.passed:
        return None
    return _again(case, script.with_turn(index, [*steps[:at], extra, *steps[at:]]), index)


def _corrected(stage: Stage, tasks: Sequence[Task], rng: random.Random) -> Iterator[Case]:
    for task in tasks:
        place = rng.choice(stage.places(task))
        made = corrected(place, rng)
        if made is None:
            continue
        seen = stage.play(stage.script(task, rng).with_turn(place.index, made[0]))
        if seen.passed and _came_right(seen, place.index, made[1]):
            at = place.index
            yield Case("corrected", seen, erred=(at, made[1]), touched=frozenset({at}))


def _harmless(stage: Stage, tasks: Sequence[Task], rng: random.Random) -> Iterator[Case]:
    for task in tasks:
        for place in stage.places(task):
            for sort, steps in harmless(place, rng):
                plain = stage.script(task, rng)
                seen = stage.play(plain.with_turn(place.index, steps))
                if seen.passed and not seen.errors(place.index):
                    at = frozenset({place.index})
                    yield Case(sort, seen, harmless=at, touched=at)


@dataclass
class Tally:
    """How often each thing was right."""

    rollouts: int = 0
    right: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    sorts: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[tuple[str, Case]] = field(default_factory=list)

    def add(self, share: str, case: Case, *, right: bool) -> None:
        self.asked[share] += 1
        self.right[share] += right
        if share in ("fault_right", "harmless_kept", "recovered_right"):
            self.sorts[f"{share} {case.sort}"].append(right)
        if not right:
            self.wrong.append((share, case))

    def shares(self) -> dict[str, float]:
        """The share of each, rounded down: 1.0 means all."""
        return {
            name: int(10_000 * self.right[name] / max(1, self.asked[name])) / 10_000
            for name in SHARES
        }


def judge(case: Case, ours: Tally, published: Tally) -> None:
    """Add a case to both tallies."""
    for tally in (ours, published):
        tally.rollouts += 1
    if case.turn is not None:
        kinds = frozenset(kind for kind, _, _ in case.labels)
        ours.add("fault_right", case, right=_fault_right(case))
        published.add("fault_right", case, right=says_right(case.published, case.turn, kinds))
        _judge_others(case, case.turn, ours, published)
    for turn in filter(case.before_fault, case.harmless):
        unharmed = case.turn is not None or case.diagnosed.fault is None
        kept = unharmed and not _failures(case, turn)
        ours.add("harmless_kept", case, right=kept)
        published.add("harmless_kept", case, right=case.published[turn] in PASSED)
    if case.erred is not None and case.before_fault(case.erred[0]):
        turn, call_id = case.erred
        told = [one for one in case.of_turn(turn) if one.call_id == call_id and one.recovered]
        fault = case.diagnosed.fault
        blamed = fault is not None and (fault.turn, fault.call_id) == case.erred
        ours.add("recovered_right", case, right=bool(told) and not blamed)
        published.add("recovered_right", case, right=case.published[turn] in PASSED)


def _fault_right(case: Case) -> bool:
    fault = case.diagnosed.fault
    return (
        fault is not None
        and fault.turn == case.turn
        and (str(fault.kind), fault.tool, fault.argument) in case.labels
    )


def _judge_others(case: Case, at: int, ours: Tally, published: Tally) -> None:
    """The turns that are as good as gold's."""
    for turn in range(len(case.seen.rollout.turns)):
        if turn in case.spoilt or (turn < at and turn in case.touched):
            continue
        share = "pass_kept" if turn < at else "cascade_right"
        if turn > at and not case.seen.at_risk(turn):
            continue
        ours.add(share, case, right=not _failures(case, turn))
        published.add(share, case, right=case.published[turn] in PASSED)


def _failures(case: Case, turn: int) -> list[Diagnosis]:
    """What a turn is said to have done wrong."""
    return [
        one
        for one in case.of_turn(turn)
        if (one.kind.blames or one.kind is Kind.UNSCORABLE) and not one.recovered
    ]
