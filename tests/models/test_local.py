"""A local policy in real rollouts: a tiny model with random weights, saved and loaded again."""

import importlib.util
import os

import pytest

import seal
from seal.errors import ConfigError
from seal.rollout.batch import RolloutSettings
from seal.types import Sampling

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from seal.models.tiny import tiny_model, tiny_tokenizer

    path = tmp_path_factory.mktemp("tiny")
    tokenizer = tiny_tokenizer(["Book the blue room on Monday.\n"] * 3)
    tiny_model(len(tokenizer), seed=0).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def rollouts(name: str, *, rows: int, temperature: float = 0.0):
    from seal.models.weights import open_local_policy

    policy = open_local_policy(name)
    policy = type(policy)(
        policy.name,
        policy.version,
        policy._sampler._model,
        policy._tokenizer,
        rows=rows,
    )
    sampling = Sampling(temperature=temperature, max_tokens=12)
    settings = seal.RunSettings(limit=6, rollouts=RolloutSettings(sampling=sampling))
    return seal.run("rooms", policy, settings).rollouts


def test_a_policy_from_a_folder_rolls_out_and_is_scored(folder):
    made = rollouts(f"local:{folder}", rows=4)
    assert [rollout.reward for rollout in made] == [0.0] * 6
    assert all(rollout.usage.completion_tokens > 0 for rollout in made)


def test_how_many_dialogues_are_held_at_once_changes_no_record(folder):
    alone, together = (rollouts(f"local:{folder}", rows=rows) for rows in (1, 5))
    assert [r.model_copy(update={"seconds": 0.0}) for r in alone] == [
        r.model_copy(update={"seconds": 0.0}) for r in together
    ]


def test_a_folder_that_holds_no_model_is_the_users_to_fix(tmp_path):
    with pytest.raises(ConfigError, match="no model can be loaded"):
        seal.run("rooms", f"local:{tmp_path}", seal.RunSettings(limit=1))
