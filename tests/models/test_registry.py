"""What a user types after -m becomes a policy, or an answer that says what can be typed."""

import pytest

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
    asked = []
    policy = open_policy("replay:runs/a:b", replayed=lambda name: asked.append(name) or [])
    assert isinstance(policy, ReplayPolicy)
    assert (asked, policy.name) == (["runs/a:b"], "replay:runs/a:b")


@pytest.mark.parametrize(
    "name",
    ["", "golden", "sim", "sim:", "simulated:novice", "replay:", "local:x/y", ":"],
)
def test_another_name_is_answered_with_the_forms_there_are(name):
    with pytest.raises(ConfigError) as caught:
        open_policy(name, replayed=lambda _: [])
    assert f"{name}: no such" in str(caught.value)
    assert "novice" in str(caught.value)


def test_a_misspelt_reader_gets_a_guess():
    with pytest.raises(ConfigError) as caught:
        open_policy("sim:expret")
    assert str(caught.value) == (
        "sim:expret: no such reader.\nReaders: novice, expert, lost.\nDid you mean 'expert'?"
    )
