"""Diagnoses against the slips that a simulated policy logged; the diagnosis never sees them."""

import pytest

from seal.diagnose import diagnose_rollout
from seal.envs import load_environment
from seal.models.simulated import SimulatedPolicy
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings, roll_out_all
from tests.envs.conftest import package  # noqa: F401 - a fixture


@pytest.mark.bfcl
def test_the_fault_of_a_failed_rollout_is_one_of_its_slips(package):  # noqa: F811
    assert package.is_dir()
    template = load_environment("bfcl")
    arena = Arena(template, contract_hash="planted")
    tasks = {task.id: task for task in template.tasks("train")}
    jobs = [Job(task, sample) for task in tasks.values() for sample in range(2)]
    right, failed = 0, 0
    for outcome in roll_out_all(arena, jobs, SimulatedPolicy("novice"), RolloutSettings()):
        rollout = outcome.rollout
        if rollout.reward == 1.0:
            continue
        task = tasks[rollout.task]
        found = diagnose_rollout(template, arena.gold, task, arena.candidate, rollout).fault
        assert found is not None
        slips = [(slip.turn, slip.kind, slip.tool, slip.argument) for slip in rollout.slips]
        failed += 1
        right += (found.turn, found.kind.value, found.tool, found.argument) in slips
    assert failed >= 30
    assert right / failed >= 0.9
