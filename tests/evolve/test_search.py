"""The search adopts what the gate accepts, takes harm back, and spends no more than it may."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

import seal
from seal.config import EvolveConfig, GateConfig
from seal.envs.template import EnvironmentTemplate
from seal.evolve.evidence import Rewriter
from seal.evolve.lineage import Generation
from seal.evolve.run import Evolution, EvolveOptions
from seal.models.protocol import PolicyInput, Reply
from seal.models.simulated import SimulatedPolicy
from seal.records import RunFolder
from seal.types import Rollout
from tests.evolve.parcels import write_parcels
from tests.evolve.rewriters import Fixed

GOOD = {
    "dispatch_parcel.recovery.refused": (
        "Use one of {allowed}. Write it like {format}. Call {requires} first."
    ),
    "dispatch_parcel.constraint.mass": "Give it in {unit}.",
}
AFFORDANCE = "dispatch_parcel.affordance"
HARM = {AFFORDANCE: "Call ring_owner and stamp_parcel before dispatch_parcel."}
"""True of two parcels in five: their owners come and take them away."""
RUIN = {AFFORDANCE: "Call discard_parcel before dispatch_parcel."}


@cache
def parcels() -> EnvironmentTemplate:
    return seal.load_environment(write_parcels(Path(mkdtemp()) / "parcels"))


def settings(**more: object) -> EvolveConfig:
    values = {"generations": 1, "profile_tasks": 40, "screen_scenarios": 8}
    gate = GateConfig(scenarios=60, removal_scenarios=40)
    return EvolveConfig(**{**values, "gate": gate, **more})


def evolved(
    rewriter: Rewriter | None = None,
    policy: str = "sim:novice",
    out: Path | None = None,
    **more: object,
) -> Evolution:
    return seal.evolve(
        parcels(),
        policy,
        rewriter=rewriter,
        config=settings(**more),
        options=EvolveOptions(out=out),
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evolution, RunFolder]:
    """Two generations of the offline rewriter, and their run folder."""
    out = tmp_path_factory.mktemp("runs") / "two"
    return evolved(out=out, generations=2), RunFolder(out)


def verdicts(generation: Generation) -> dict[str, str]:
    return {patch.slot: patch.verdict for patch in generation.patches}


def test_a_harmful_patch_that_rides_in_a_good_bundle_is_taken_out_again():
    gate = GateConfig(scenarios=60, removal_scenarios=100)
    found = evolved(Fixed({**GOOD, **HARM}), gate=gate)
    [generation] = found.generations
    assert generation.gates[0].test == "bundle"
    assert generation.gates[0].verdict == "accepted"
    assert AFFORDANCE in generation.gates[0].slots
    assert verdicts(generation) == {**dict.fromkeys(GOOD, "accepted"), AFFORDANCE: "refused"}
    [harmful] = [patch for patch in generation.patches if patch.slot == AFFORDANCE]
    assert harmful.screened == min(p.screened or 0.0 for p in generation.patches)
    assert generation.gates[1].slots == (AFFORDANCE,), "what screened worst is tested first"
    assert (harmful.reason, harmful.support) == ("refused: removal is better", None)
    assert found.changed == tuple(sorted(GOOD))
    assert generation.candidate == found.candidate


def test_a_patch_that_ruins_its_bundle_does_not_take_the_others_with_it():
    found = evolved(Fixed({**GOOD, **RUIN}))
    [generation] = found.generations
    bundle, *rest = generation.gates
    assert bundle.verdict != "accepted"
    assert {gate.test for gate in rest} == {"half", "removal"}
    assert verdicts(generation)[AFFORDANCE] != "accepted"
    assert found.changed
    assert set(found.changed) <= set(GOOD)


def test_clear_harm_is_thrown_out_before_the_gate():
    found = evolved(Fixed(RUIN), "sim:expert", screen_scenarios=24)
    [generation] = found.generations
    [patch] = generation.patches
    assert (patch.verdict, patch.reason) == ("refused", "refused by the screen: it does harm")
    assert patch.screened is not None
    assert patch.screened < -0.2
    assert generation.gates == ()
    assert generation.reason.startswith("nothing new to propose")


def test_where_nothing_is_accepted_the_words_stay_as_they_were():
    useless = Fixed({AFFORDANCE: "It hands it over, at once."})
    found = evolved(useless, generations=5)
    assert found.candidate == found.original
    assert found.changed == found.dropped_seeds == ()
    assert (found.test.effect, found.test.first) == (0.0, found.test.second)
    assert not any(generation.accepted for generation in found.generations)
    assert {generation.candidate for generation in found.generations} == {found.original}
    assert len(found.generations) == 2, "patience runs out"


def test_an_accepted_line_traces_to_its_gate_result_and_to_diagnosed_rollouts(two):
    found, folder = two
    rollouts = {(r.candidate, r.id) for r in folder.lines("rollouts", Rollout).read()}
    accepted = [(g, p) for g in found.generations for p in g.patches if p.verdict == "accepted"]
    assert {patch.slot for _, patch in accepted} == set(found.changed)
    for generation, patch in accepted:
        gates = [gate for gate in generation.gates if patch.slot in gate.slots]
        assert any(gate.verdict == "accepted" and gate.test != "removal" for gate in gates)
        assert all(gate.e_value >= gate.threshold for gate in gates if gate.verdict == "accepted")
        assert patch.support in ("own evidence", "bundle evidence")
        assert patch.evidence
        for behind in patch.evidence:
            assert behind.faults >= 2
            assert behind.examples
            assert {(generation.parent, example) for example in behind.examples} <= rollouts
    words = folder.candidate(found.candidate).texts
    assert all(words[patch.slot] == patch.after for _, patch in accepted)


@pytest.mark.parametrize("budget", [40, 41, 70, 333])
def test_the_budget_is_never_passed(budget: int, tmp_path: Path):
    found = evolved(out=tmp_path / "run", generations=3, budget=budget)
    lines = list(RunFolder(tmp_path / "run").lines("rollouts", Rollout).read())
    search = [rollout for rollout in lines if not rollout.task.startswith("test-")]
    assert len(search) == found.rollouts <= budget
    assert sum(generation.rollouts for generation in found.generations) == found.rollouts
    if budget < 100:
        assert found.generations[-1].reason == "the budget is spent"
        assert found.candidate == found.original


def test_each_test_uses_scenarios_of_its_own_and_a_level_of_its_own(two):
    found, _ = two
    gates = [gate for generation in found.generations for gate in generation.gates]
    for kinds in (("bundle", "half"), ("removal",)):
        numbers = [gate.k for gate in gates if gate.test in kinds]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(gate.pairs <= (40 if gate.test == "removal" else 60) for gate in gates)


class Broken:
    """A reader whose server is away at some of the gate's scenarios."""

    name = "broken"
    version = "1"

    def __init__(self, every: int) -> None:
        self._reader = SimulatedPolicy("novice")
        self._every = every

    def act(self, given: PolicyInput) -> Reply:
        split, number = given.task.id.split("-")
        if split == "gate" and int(number) % self._every == 0:
            raise seal.errors.ModelFailure("the server is away")
        return self._reader.act(given)


def test_above_two_percent_unscored_nothing_is_adopted():
    found = seal.evolve(parcels(), Broken(every=10), rewriter=Fixed(GOOD), config=settings())
    [generation] = found.generations
    assert {gate.verdict for gate in generation.gates} == {"undecided"}
    assert "could not be scored" in generation.gates[0].reason
    assert found.candidate == found.original
