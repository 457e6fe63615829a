"""Every rollout and every proposal of a search, kept as it is made.

A run that was killed starts its search anew and finds all of this in the ledger, so it takes the
same decisions at no cost until it reaches the place where it was stopped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from seal.evolve.evidence import Proposal, Rewriter, SlotEvidence
from seal.models.protocol import Policy
from seal.records import RunFolder
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings, roll_out_all
from seal.types import Record, Rollout, Usage

Key = tuple[str, str, str, int]
"""Policy version, candidate, task, sample."""


class BudgetSpent(Exception):  # noqa: N818 - not an error: a search ends so
    """The next rollouts would pass the budget."""


class Proposals(Record):
    """One answer of the rewriter."""

    proposals: tuple[Proposal, ...]
    usage: Usage = Usage()


class Ledger:
    """Rollouts by (policy version, candidate, task, sample), counted against a budget.

    What one version of a policy did is no evidence about another, so a policy that was trained in
    between makes all of its rollouts anew.
    """

    def __init__(
        self,
        policy: Policy,
        settings: RolloutSettings,
        budget: int,
        run: RunFolder | None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.spent = 0
        self.usage = Usage()
        self.policy = policy
        """What acts; whoever trains it gives it a new version."""
        self._settings = settings
        self._budget = budget
        self._progress = progress
        self._run = run
        self._lines = run.lines("rollouts", Rollout) if run else None
        self._known: dict[Key, Rollout] = {}
        self._counted: set[Key] = set()
        for rollout in self._lines.read() if self._lines else ():
            self._known[_key(rollout)] = rollout

    def roll_out(self, arena: Arena, jobs: Sequence[Job], *, free: bool = False) -> list[Rollout]:
        """The rollouts of the jobs, in their order; made only if the ledger has none.

        Args:
            arena: The environment with the words in force.
            jobs: What to roll out.
            free: Whether they are outside the budget, as the reading of the test split is.

        Raises:
            BudgetSpent: They would pass the budget; none of them was made.
            ModelFailure: The policy's model fails from the start.
        """
        version, words = self.policy.version, arena.candidate.id
        keys = [(version, words, job.task.id, job.sample) for job in jobs]
        fresh = set(keys) - self._counted
        if not free and self.spent + len(fresh) > self._budget:
            raise BudgetSpent
        missing = self._missing(dict(zip(keys, jobs, strict=True)))
        if self._run:
            self._run.save_candidate(arena.candidate)
        for outcome in roll_out_all(arena, list(missing.values()), self.policy, self._settings):
            rollout = outcome.rollout
            self._known[_key(rollout)] = rollout
            if self._lines:
                self._lines.append(rollout)
            self._progress(1)
        self._counted |= fresh
        if not free:
            self.spent += len(fresh)
        for key in fresh:
            self.usage += self._known[key].usage
        return [self._known[key] for key in keys]

    def _missing(self, jobs: Mapping[Key, Job]) -> dict[Key, Job]:
        """The jobs to make: those never made, and failures of a batch that never got to its end.

        On the failures of a whole batch decisions rest already, and a resumed run must take the
        same ones; those of a broken one are what stopped the run.
        """
        if all(key in self._known for key in jobs):
            return {}
        return {
            key: job
            for key, job in jobs.items()
            if key not in self._known
            or (self._known[key].failure is not None and key not in self._counted)
        }


def _key(rollout: Rollout) -> Key:
    return rollout.policy_version, rollout.candidate, rollout.task, rollout.sample


class RecordedRewriter:
    """A rewriter whose answers are kept, so that a resumed run is told the same."""

    def __init__(self, rewriter: Rewriter, run: RunFolder | None) -> None:
        self.name = rewriter.name
        self._rewriter = rewriter
        self._lines = run.lines("proposals", Proposals) if run else None
        kept: Iterable[Proposals] = self._lines.read() if self._lines else ()
        self._kept = list(kept)
        self._earlier = Usage()

    def propose(self, evidence: Sequence[SlotEvidence]) -> list[Proposal]:
        """The kept answer if there is one left, else a new one."""
        if self._kept:
            answer = self._kept.pop(0)
            self._earlier += answer.usage
            return list(answer.proposals)
        before = self._rewriter.spent()
        proposals = self._rewriter.propose(evidence)
        after = self._rewriter.spent()
        if self._lines:
            self._lines.append(Proposals(proposals=tuple(proposals), usage=_less(after, before)))
        return proposals

    def spent(self) -> Usage:
        """What all answers cost, those of earlier processes included."""
        return self._earlier + self._rewriter.spent()


def _less(after: Usage, before: Usage) -> Usage:
    return Usage(
        calls=after.calls - before.calls,
        prompt_tokens=after.prompt_tokens - before.prompt_tokens,
        completion_tokens=after.completion_tokens - before.completion_tokens,
        dollars=max(0.0, after.dollars - before.dollars),
    )
