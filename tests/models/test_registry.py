"""What a user types after -m becomes a policy, or an answer that says what can be typed."""

import pytest

import seal
from seal.errors import ConfigError
from seal.models.gold import GoldPolicy, ReplayPolicy
from seal.models.registry import open_policy
from seal.models.simulated import READERS, SimulatedPolicy


def test_gold_and_readers_have_the_name_that_was_typed():
    assert isinstance(open_policy("gold"), GoldPolicy)
    for reader in READERS:
        policy = open_policy(f"sim:{reader}")
        assert isinstance(policy, SimulatedPolicy)
        assert (policy.name, policy.version) == (f"sim:{reader}", "simulated")


def test_a_replay_reads_the_run_that_was_named():
    made = seal.run("rooms", "gold", seal.RunSettings(limit=2), out="runs/a:b")
    policy = open_policy("replay:runs/a:b")
    assert isinstance(policy, ReplayPolicy)
    assert policy.name == "replay:runs/a:b"
    again = seal.run("rooms", "replay:runs/a:b", seal.RunSettings(limit=2))
    assert [r.turns for r in again.rollouts] == [r.turns for r in made.rollouts]


def test_a_replay_on_another_environment_is_refused():
    seal.run("rooms", "gold", seal.RunSettings(limit=2), out="runs/a")
    with pytest.raises(ConfigError, match="recorded on another environment than rooms@2"):
        seal.run("rooms@2", "replay:runs/a", seal.RunSettings(limit=2))


def test_a_replay_of_no_run_is_the_users_to_fix():
    with pytest.raises(ConfigError, match="no run here"):
        open_policy("replay:runs/nowhere")


@pytest.mark.parametrize(
    "name",
    ["", "golden", "sim", "sim:", "simulated:novice", "replay:", "local:", ":"],
)
def test_another_name_is_answered_with_the_forms_there_are(name):
    with pytest.raises(ConfigError) as caught:
        open_policy(name)
    assert f"{name}: no such" in str(caught.value)
    assert "novice" in str(caught.value)


def test_a_misspelt_reader_gets_a_guess():
    with pytest.raises(ConfigError) as caught:
        open_policy("sim:expret")
    assert str(caught.value) == (
        "sim:expret: no such reader.\nReaders: novice, expert, lost.\nDid you mean 'expert'?"
    )
