"""After its policy was trained, the search lets the words in force earn their place again."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import seal
from seal.config import EvolveConfig, GateConfig
from seal.envs.template import EnvironmentTemplate
from seal.evolve.ledger import Ledger
from seal.evolve.lineage import Generation
from seal.evolve.search import SPENT, Search
from seal.models.gold import GoldPolicy
from seal.models.protocol import Policy, PolicyInput, Reply
from seal.models.simulated import SimulatedPolicy
from seal.records import RunFolder
from seal.rollout.agent import Arena
from seal.rollout.batch import RolloutSettings
from seal.soundness.facts import collect_facts
from seal.types import Rollout
from tests.evolve.parcels import write_parcels
from tests.evolve.rewriters import Fixed

GOOD = {
    "dispatch_parcel.recovery.refused": (
        "Use one of {allowed}. Write it like {format}. Call {requires} first."
    ),
    "dispatch_parcel.constraint.mass": "Give it in {unit}.",
}
CONFIG = EvolveConfig(
    profile_tasks=30, screen_scenarios=4, gate=GateConfig(scenarios=60, removal_scenarios=10)
)


class Trained:
    """A policy that is another one after its training."""

    name = "trained"

    def __init__(self) -> None:
        self.version = "0"
        self.acting: Policy = SimulatedPolicy("novice")

    def act(self, given: PolicyInput) -> Reply:
        return self.acting.act(given)


class Quiet:
    def stage(self, text: str) -> None: ...

    def generation(self, generation: Generation) -> None: ...


@cache
def parcels() -> EnvironmentTemplate:
    return seal.load_environment(write_parcels(Path(mkdtemp()) / "parcels"))


def search(policy: Policy, config: EvolveConfig = CONFIG, out: Path | None = None) -> Search:
    ledger = Ledger(policy, RolloutSettings(), config.budget, RunFolder(out) if out else None)
    facts = collect_facts(parcels())
    return Search(Arena(parcels()), facts, Fixed(GOOD), ledger, config, Quiet())


def test_words_that_still_help_stand_and_are_tested_on_rollouts_of_the_new_policy(tmp_path: Path):
    policy = Trained()
    subject = search(policy, out=tmp_path)
    assert subject.generation(0).accepted
    words = subject.candidate
    policy.version = "1"
    second = subject.generation(1)
    first_test = second.gates[0]
    assert (first_test.test, first_test.verdict, first_test.threshold) == (
        "standing",
        "accepted",
        20,
    )
    assert first_test.slots == tuple(sorted(GOOD))
    assert subject.candidate == words
    made = list(RunFolder(tmp_path).lines("rollouts", Rollout).read())
    assert {r.policy_version for r in made} == {"0", "1"}
    anew = [r for r in made if r.policy_version == "1"]
    assert len(anew) == second.rollouts
    assert {r.candidate for r in anew} >= {words.id, subject.generation(1).candidate}


def test_words_that_a_trained_policy_needs_no_more_are_retired():
    policy = Trained()
    subject = search(policy)
    subject.generation(0)
    policy.version, policy.acting = "1", GoldPolicy()
    generation = subject.generation(1)
    assert generation.gates[0].verdict == "refused"
    assert generation.gates[0].pairs == 40, "scenarios that all end alike are no evidence"
    retired = {patch.slot: patch for patch in generation.patches}
    assert {patch.verdict for patch in retired.values()} == {"retired"}
    assert {slot: patch.before for slot, patch in retired.items()} == GOOD
    assert generation.accepted, "the words have changed"
    assert subject.candidate.id == subject.arena.template.original.id


def test_a_retired_text_is_not_proposed_again():
    policy = Trained()
    subject = search(policy)
    subject.generation(0)
    policy.version, policy.acting = "1", GoldPolicy()
    subject.generation(1)
    policy.version, policy.acting = "2", SimulatedPolicy("novice")
    assert subject.generation(2).patches == ()


def test_words_are_not_tested_twice_for_one_version():
    subject = search(Trained())
    subject.generation(0)
    assert {gate.test for gate in subject.generation(1).gates} <= {"bundle", "half", "removal"}


def test_words_stay_when_the_budget_does_not_reach_for_their_test():
    policy = Trained()
    spent = search(policy).generation(0).rollouts
    subject = search(Trained(), CONFIG.model_copy(update={"budget": spent + 4}))
    first = subject.generation(0)
    subject._ledger.policy.version = "1"
    second = subject.generation(1)
    assert second.reason == SPENT
    assert second.gates[0].verdict == "undecided"
    assert second.candidate == first.candidate != first.parent
