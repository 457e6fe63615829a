"""The ledger never passes its budget, and tells a resumed run what the first one was told."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.envs.registry import load_environment
from seal.errors import ModelFailure
from seal.evolve.evidence import SlotEvidence
from seal.evolve.ledger import BudgetSpent, Ledger, RecordedRewriter
from seal.models.protocol import PolicyInput, Reply
from seal.records import RunFolder
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings
from seal.types import Slot, Usage
from tests.evolve.rewriters import Fixed
from tests.factories import write_environment


@cache
def arena() -> Arena:
    return Arena(load_environment(write_environment(Path(mkdtemp()) / "lamp")))


def jobs(*places: int) -> list[Job]:
    tasks = arena().template.tasks(None)
    return [Job(tasks[place]) for place in places]


class Counted:
    """A policy that does nothing, counts its rollouts, and fails at some of them."""

    name = "counted"
    version = "1"

    def __init__(self, fails: int = 0) -> None:
        self.rollouts = 0
        self.fails = fails

    def act(self, given: PolicyInput) -> Reply:
        if given.turn == 0:
            self.rollouts += 1
            if self.rollouts <= self.fails:
                raise ModelFailure("the server is away")
        return Reply("Done.", usage=Usage(calls=1, dollars=0.5))


def ledger(policy: Counted, budget: int = 100, folder: Path | None = None) -> Ledger:
    run = RunFolder(folder) if folder else None
    return Ledger(policy, RolloutSettings(), budget, run)


def test_what_would_pass_the_budget_is_not_begun():
    policy = Counted()
    subject = ledger(policy, budget=5)
    subject.roll_out(arena(), jobs(0, 1, 2))
    with pytest.raises(BudgetSpent):
        subject.roll_out(arena(), jobs(3, 4, 5))
    assert (subject.spent, policy.rollouts) == (3, 3)
    subject.roll_out(arena(), jobs(3, 4))
    assert (subject.spent, policy.rollouts) == (5, 5)


def test_a_rollout_is_paid_for_once():
    policy = Counted()
    subject = ledger(policy, budget=3)
    first = subject.roll_out(arena(), jobs(0, 1, 2))
    assert subject.roll_out(arena(), jobs(2, 0)) == [first[2], first[0]]
    assert (subject.spent, policy.rollouts) == (3, 3)


def test_other_words_and_other_samples_are_other_rollouts():
    subject = ledger(Counted())
    subject.roll_out(arena(), jobs(0))
    other = arena().under(arena().candidate.with_texts({"dim.affordance": "Else."}))
    subject.roll_out(other, jobs(0))
    subject.roll_out(arena(), [Job(jobs(0)[0].task, sample=1)])
    assert subject.spent == 3


def test_the_reading_of_the_test_split_is_outside_the_budget():
    subject = ledger(Counted(), budget=1)
    assert len(subject.roll_out(arena(), jobs(0, 1, 2), free=True)) == 3
    assert subject.spent == 0
    assert subject.usage.dollars > 0


@settings(max_examples=30, deadline=None)
@given(
    budget=st.integers(1, 12),
    requests=st.lists(st.lists(st.integers(0, 14), max_size=6), max_size=8),
)
def test_the_budget_is_never_passed(budget: int, requests: list[list[int]]):
    policy = Counted()
    subject = ledger(policy, budget)
    for places in requests:
        before = subject.spent
        try:
            subject.roll_out(arena(), jobs(*dict.fromkeys(places)))
        except BudgetSpent:
            assert subject.spent == before
    assert subject.spent == policy.rollouts <= budget


def test_a_resumed_ledger_makes_nothing_anew_and_counts_the_same(tmp_path: Path):
    first = ledger(Counted(), folder=tmp_path)
    made = first.roll_out(arena(), jobs(0, 1, 2))
    policy = Counted()
    second = ledger(policy, budget=3, folder=tmp_path)
    assert second.spent == 0
    assert second.roll_out(arena(), jobs(0, 1, 2)) == made
    assert policy.rollouts == 0
    assert (second.spent, second.usage) == (first.spent, first.usage)


def test_a_failure_on_which_decisions_rest_stays_when_a_run_is_resumed(tmp_path: Path):
    made = ledger(Counted(fails=1), folder=tmp_path).roll_out(arena(), jobs(0, 1))
    assert [r.failure is None for r in made] == [False, True]
    policy = Counted()
    assert ledger(policy, folder=tmp_path).roll_out(arena(), jobs(0, 1)) == made
    assert policy.rollouts == 0


def test_a_failure_that_stopped_a_run_is_tried_again_when_it_is_resumed(tmp_path: Path):
    with pytest.raises(ModelFailure):
        ledger(Counted(fails=9), folder=tmp_path).roll_out(arena(), jobs(0, 1, 2, 3))
    policy = Counted()
    subject = ledger(policy, folder=tmp_path)
    assert all(r.failure is None for r in subject.roll_out(arena(), jobs(0, 1, 2, 3)))
    assert policy.rollouts == subject.spent == 4
    again = Counted()
    made = ledger(again, folder=tmp_path).roll_out(arena(), jobs(0, 1, 2, 3))
    assert all(r.failure is None for r in made)
    assert again.rollouts == 0


def asked(slot: str) -> list[SlotEvidence]:
    return [
        SlotEvidence(
            slot=Slot(id=slot, kind="guidance", max_chars=99),
            current="",
            placeholders=(),
            contract=None,
            facts={},
            tools=(),
            rows=(),
        )
    ]


def test_a_resumed_rewriter_is_not_asked_again_and_its_cost_is_kept(tmp_path: Path):
    first = RecordedRewriter(Fixed({"a": ["one", "two"]}), RunFolder(tmp_path))
    said = [first.propose(asked("a")) for _ in range(2)]
    assert [p.text for answer in said for p in answer] == ["one", "two"]

    fresh = Fixed({"a": "three"})
    second = RecordedRewriter(fresh, RunFolder(tmp_path))
    assert [second.propose(asked("a")) for _ in range(2)] == said
    assert fresh.asked == []
    assert second.spent() == first.spent() == Usage(calls=2)
    assert [p.text for p in second.propose(asked("a"))] == ["three"]
    assert second.spent() == Usage(calls=3)


def test_without_a_folder_nothing_is_kept():
    subject = RecordedRewriter(Fixed({"a": "one"}), None)
    assert len(subject.propose(asked("a"))) == 1
    assert subject.name == "fixed"
