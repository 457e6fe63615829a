"""The search: profile, propose, screen, gate the best bundle, test each patch by its removal."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from seal.config import SearchConfig
from seal.diagnose import Profile, ProfileBuilder, diagnose_rollout
from seal.envs.suspects import without_suspects
from seal.evolve.evidence import Rewriter
from seal.evolve.gate import PairedTest
from seal.evolve.ledger import BudgetSpent, Ledger
from seal.evolve.lineage import GateResult, Generation, Patch, TestKind, changed_slots
from seal.evolve.propose import Proposer
from seal.rollout.agent import Arena
from seal.rollout.batch import Job
from seal.rollout.scores import scenario_differences
from seal.soundness.facts import Facts
from seal.types import Candidate, DiagnosedRollout, Task

CHUNK = 8
"""Scenarios rolled out between two looks at a test; fixed, so that results do not depend on -j."""
SPENT = "the budget is spent"
"""The reason of a generation that the budget ended."""
_HARM = 5
"""Tasks lost beyond those won at which a screen throws a patch out."""
_FIRST: dict[TestKind, int] = {
    "removal": 0,
    "bundle": 1_000_000,
    "half": 1_000_000,
    "standing": 2_000_000,
}
"""Where in the endless sequence of generated gate scenarios each kind of test begins."""


class Watch(Protocol):
    """What wants to know how a search is going."""

    def stage(self, text: str) -> None:
        """A new stage began."""
        ...

    def generation(self, generation: Generation) -> None:
        """A generation is over."""
        ...


@dataclass(slots=True)
class _Draft:
    """A generation while it is made."""

    patches: list[Patch]
    gates: list[GateResult]
    reason: str = ""


class Search:
    """Generations of rewrites of one environment's words, for one policy.

    The policy may be trained between two generations; it then has another version. Words adopted
    before have to earn their place again: the claim of a test holds for the policy tested.
    """

    def __init__(
        self,
        arena: Arena,
        facts: Facts,
        rewriter: Rewriter,
        ledger: Ledger,
        config: SearchConfig,
        watch: Watch,
        *,
        chunk: int = CHUNK,
    ) -> None:
        self._original = arena
        self._arena = arena
        self._template = arena.template
        self._ledger = ledger
        self._config = config
        self._watch = watch
        self._chunk = chunk
        self._proposer = Proposer(arena.template, facts, rewriter, config.proposals)
        self._profile = ProfileBuilder(arena.candidate.id)
        self._diagnosed: list[list[DiagnosedRollout]] = []
        self._adoption_tests = 0
        self._removal_tests = 0
        self._standing_tests = 0
        self._proved_for = ledger.policy.version
        """The version of the policy for which the words in force have earned their place."""
        self.stopped = ""
        """Why the search is over, once it is."""

    @property
    def profile(self) -> Profile:
        """The profile over all generations so far."""
        return self._profile.profile()

    @property
    def candidate(self) -> Candidate:
        """The words in force."""
        return self._arena.candidate

    @property
    def arena(self) -> Arena:
        """The environment with the words in force."""
        return self._arena

    def generations(self, most: int, patience: int) -> Iterator[Generation]:
        """Generation after generation, until budget, patience or the number asked for run out."""
        idle = 0
        self.stopped = "all generations are done"
        for index in range(most):
            generation = self.generation(index)
            yield generation
            idle = 0 if generation.accepted else idle + 1
            if generation.reason == SPENT:
                self.stopped = generation.reason
                return
            if idle >= patience:
                self.stopped = f"{idle} generations in a row adopted nothing"
                return

    def generation(self, index: int) -> Generation:
        """One generation; they are made in order, from 0."""
        parent, spent = self._arena, self._ledger.spent
        draft = _Draft([], [])
        try:
            self._test_standing(draft)
            self._watch.stage(f"generation {index}: rolling out train tasks")
            self._roll_out_train(index)
            found = self._proposer.patches(self.profile, self.candidate)
            self._watch.stage(f"generation {index}: screening {len(found)} proposals")
            draft.patches += found
            self._screen(draft)
            self._adopt(draft)
        except BudgetSpent:
            draft.reason = SPENT
        for patch in draft.patches:
            if patch.verdict != "retired":
                self._proposer.remember(patch)
        last = self._diagnosed[index] if index < len(self._diagnosed) else []
        accepted = self.candidate.id != parent.candidate.id
        generation = Generation(
            index=index,
            parent=parent.candidate.id,
            candidate=self.candidate.id,
            accepted=accepted,
            reason=draft.reason,
            patches=tuple(draft.patches),
            gates=tuple(draft.gates),
            failed=sum(d.reward is not None and d.reward < 1.0 for d in last),
            profiled=len(last),
            rollouts=self._ledger.spent - spent,
        )
        self._watch.generation(generation)
        return generation

    def _test_standing(self, draft: _Draft) -> None:
        """Let words that were adopted for an earlier version of the policy earn their place again.

        Raises:
            BudgetSpent: The test would pass the budget; the words stay.
        """
        original, words = self._original.candidate, self.candidate
        slots = changed_slots(original, words)
        if not slots or self._proved_for == self._ledger.policy.version:
            return
        self._watch.stage(f"{len(slots)} evolved texts against the original ones")
        self._standing_tests += 1
        sides = self._original, self._arena
        result = self._test("standing", self._standing_tests, sides, tuple(slots))
        draft.gates.append(result)
        if result.reason == SPENT:
            raise BudgetSpent
        self._proved_for = self._ledger.policy.version
        if result.verdict == "refused":
            self._arena = self._original
            draft.patches += [
                Patch(
                    slot=slot,
                    before=words.texts.get(slot, ""),
                    after=original.texts.get(slot, ""),
                    rationale="tested again, since the policy has been trained",
                    evidence=(),
                    verdict="retired",
                    reason=f"retired: {result.reason}",
                )
                for slot in slots
            ]
            for patch in draft.patches:
                self._proposer.remember(patch)

    def _roll_out_train(self, index: int) -> None:
        """Diagnose the next share of the train tasks under the words in force."""
        tasks = self._certain(self._template.tasks("train"))
        random.Random(f"train/{self._template.name}").shuffle(tasks)
        count = min(self._config.profile_tasks, len(tasks))
        chosen = [tasks[(index * count + i) % len(tasks)] for i in range(count)]
        rollouts = self._ledger.roll_out(self._arena, [Job(task) for task in chosen])
        found = [
            diagnose_rollout(self._template, self._arena.gold, task, self._arena.candidate, rollout)
            for task, rollout in zip(chosen, rollouts, strict=True)
        ]
        self._diagnosed.append(found)
        self._profile.add(found)

    def _certain(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks whose gold is not in doubt: the others drive no words."""
        return without_suspects(self._template, self._original.gold, tasks)

    def _screen(self, draft: _Draft) -> None:
        """Try each patch alone on train tasks that call its tool; throw out what does clear harm.

        A screen may not adopt. Its tasks are not chosen by how they went before: among tasks that
        passed, any change of words that draws afresh would look harmful.
        """
        tasks = {task.id: task for task in self._template.tasks("train")}
        base = {d.task: d.reward for d in self._diagnosed[-1] if d.reward is not None}
        for place, patch in enumerate(draft.patches):
            if patch.verdict != "undecided":
                continue
            tool = self._template.renderer.slots[patch.slot].tool
            chosen = [tasks[name] for name in base if tool is None or _calls(tasks[name], tool)]
            chosen = chosen[: self._config.screen_scenarios]
            arena = self._arena.under(self.candidate.with_texts({patch.slot: patch.after}))
            made = self._ledger.roll_out(arena, [Job(task) for task in chosen])
            gains = [r.reward - base[r.task] for r in made if r.reward is not None]
            wins, losses = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
            update: dict[str, object] = {
                "screened": round(sum(gains) / len(gains), 6) if gains else None
            }
            if losses >= wins + _HARM and losses > 2 * wins:
                update |= {"verdict": "refused", "reason": "refused by the screen: it does harm"}
            draft.patches[place] = patch.model_copy(update=update)

    def _adopt(self, draft: _Draft) -> None:
        """Gate the bundle of what is left; if it is refused, its halves, one after the other."""
        bundle = [patch.slot for patch in draft.patches if patch.verdict == "undecided"]
        if not bundle:
            draft.reason = "nothing new to propose for faults of two rollouts or more"
            return
        if self._gate(draft, bundle, "bundle"):
            self._test_removals(draft, bundle)
            return
        if len(bundle) > 1:
            middle = (len(bundle) + 1) // 2
            for half in (bundle[:middle], bundle[middle:]):
                if self._gate(draft, half, "half"):
                    self._test_removals(draft, half)
        if not any(patch.verdict == "accepted" for patch in draft.patches):
            draft.reason = draft.gates[-1].reason

    def _gate(self, draft: _Draft, slots: Sequence[str], kind: TestKind) -> bool:
        """One adoption test; if it accepts, its patches are in force."""
        self._watch.stage(f"gate: {kind} of {len(slots)} patches")
        self._adoption_tests += 1
        places = _places(draft, slots)
        texts = {draft.patches[place].slot: draft.patches[place].after for place in places}
        child = self._arena.under(self.candidate.with_texts(texts))
        result = self._test(kind, self._adoption_tests, (self._arena, child), tuple(slots))
        draft.gates.append(result)
        accepted = result.verdict == "accepted"
        support = "own evidence" if len(slots) == 1 else "bundle evidence"
        for place in places:
            draft.patches[place] = draft.patches[place].model_copy(
                update={
                    "verdict": result.verdict,
                    "reason": result.reason if accepted else f"{result.verdict}: {result.reason}",
                    "support": support if accepted else None,
                }
            )
        if accepted:
            self._arena = child
            self._proved_for = self._ledger.policy.version
        return accepted

    def _test_removals(self, draft: _Draft, slots: Sequence[str]) -> None:
        """Take each patch of an accepted bundle back, and see; no harmful line rides along."""
        if len(slots) == 1:
            return
        bundle = _places(draft, slots)
        # Later tests need more evidence, so the patches that screened worst come first.
        for place in sorted(bundle, key=lambda place: draft.patches[place].screened or 0.0):
            patch = draft.patches[place]
            self._watch.stage(f"removal of {patch.slot}")
            self._removal_tests += 1
            without = self._arena.under(self.candidate.with_texts({patch.slot: patch.before}))
            sides = self._arena, without
            result = self._test("removal", self._removal_tests, sides, (patch.slot,))
            draft.gates.append(result)
            if result.verdict == "accepted":
                self._arena = without
                update = {
                    "verdict": "refused",
                    "reason": "refused: removal is better",
                    "support": None,
                }
                draft.patches[place] = patch.model_copy(update=update)
            elif result.verdict == "refused":
                draft.patches[place] = patch.model_copy(update={"support": "own evidence"})

    def _test(
        self, kind: TestKind, k: int, sides: tuple[Arena, Arena], slots: tuple[str, ...]
    ) -> GateResult:
        """A paired test on gate scenarios in random order; a spent budget leaves it undecided."""
        test = PairedTest(self._config.gate, kind, k)
        scenarios = list(self._scenarios(kind, k))
        for start in range(0, len(scenarios), self._chunk):
            jobs = [[Job(task) for task in one] for one in scenarios[start : start + self._chunk]]
            flat = [job for one in jobs for job in one]
            try:
                before, after = (self._ledger.roll_out(side, flat) for side in sides)
            except BudgetSpent:
                return test.result(slots, SPENT)
            for difference in scenario_differences(before, after).values():
                test.add(difference)
                if test.decided:
                    return test.result(slots)
        return test.result(slots)

    def _scenarios(self, kind: TestKind, k: int) -> Iterator[list[Task]]:
        """Gate scenarios: fresh ones for every test where they can be drawn, else shuffled."""
        gate = self._config.gate
        most = gate.removal_scenarios if kind == "removal" else gate.scenarios
        if self._template.generated:
            first = _FIRST[kind] + (k - 1) * most
            for index in range(first, first + most):
                if tasks := self._certain(self._template.scenario("gate", index)):
                    yield tasks
            return
        tasks = sorted(self._certain(self._template.tasks("gate")), key=lambda task: task.scenario)
        scenarios = [list(group) for _, group in groupby(tasks, key=lambda task: task.scenario)]
        random.Random(f"gate/{self._template.name}/{kind}/{k}").shuffle(scenarios)
        yield from scenarios[:most]


def _places(draft: _Draft, slots: Sequence[str]) -> list[int]:
    """Where in the draft the patches of these slots are that may still be adopted or stand."""
    return [
        place
        for place, patch in enumerate(draft.patches)
        if patch.slot in slots and patch.verdict != "retired"
    ]


def _calls(task: Task, tool: str) -> bool:
    """Whether a perfect agent calls a tool in a task; without gold, it may."""
    return any(
        turn.gold is None or any(call.tool == tool for call in turn.gold) for turn in task.turns
    )
