"""A local policy in real rollouts: a tiny model with random weights, saved and loaded again."""

import importlib.util
import os

import pytest

import seal
from seal.errors import ConfigError
from seal.models.chat import prompt_text
from seal.models.protocol import Message, PolicyInput
from seal.rollout.batch import RolloutSettings
from seal.types import RenderedTool, Sampling, Task, UserTurn

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


@pytest.fixture(scope="module")
def opened(folder):
    from seal.models.weights import open_local_policy

    return open_local_policy(f"local:{folder}")


def another(opened, **options):
    """A policy of the same weights."""
    return type(opened)("local:x", "1", opened._sampler._model, opened._tokenizer, **options)


def rollouts(policy, *, limit=6, temperature: float = 0.0):
    sampling = Sampling(temperature=temperature, max_tokens=12)
    settings = seal.RunSettings(limit=limit, rollouts=RolloutSettings(sampling=sampling))
    made = seal.run("rooms", policy, settings).rollouts
    return [rollout.model_copy(update={"seconds": 0.0}) for rollout in made]


def test_a_policy_from_a_folder_rolls_out_and_is_scored(opened):
    made = rollouts(opened)
    assert [rollout.reward for rollout in made] == [0.0] * 6
    assert all(rollout.usage.completion_tokens > 0 for rollout in made)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_how_many_dialogues_are_held_at_once_changes_no_record(opened, temperature):
    opened._sampler._model.float()
    alone, together = (
        rollouts(another(opened, rows=rows), temperature=temperature) for rows in (1, 5)
    )
    assert alone == together


def test_draws_depend_on_the_seed_and_on_what_is_asked_but_not_on_what_came_before(opened):
    policy = another(opened, seed=1)
    first = rollouts(policy, temperature=1.0)
    assert rollouts(policy, limit=2, temperature=1.0) == first[:2]
    assert rollouts(another(opened, seed=2), temperature=1.0) != first


def given(*messages, tools=(), sample=0):
    """A step at which a policy must act, in a task of one turn for each user message."""
    turns = [m for m in messages if m.role == "user"]
    return PolicyInput(
        messages=messages,
        tools=tools,
        task=Task(id="half", scenario="half", turns=tuple(UserTurn(user=m.content) for m in turns)),
        turn=len(turns) - 1,
        contracts={},
        sample=sample,
        seed=0,
        sampling=Sampling(temperature=1.0, max_tokens=6),
    )


def dialogue(policy, steps: int, tools=lambda _step: ()):
    """The messages of a rollout: a user speaks, the policy answers, and so on."""
    messages = [Message("system", "Be brief.")]
    for step in range(steps):
        messages.append(Message("user", f"Book room {step}."))
        reply = policy.act(given(*messages, tools=tools(step)))
        messages.append(Message("assistant", reply.content, reply.calls))
    return messages


def test_kept_tokens_are_those_that_went_through_the_model(opened):
    policy = another(opened, keep_tokens=True)
    dialogue(policy, steps=3)
    (seat,) = policy._seats.values()
    key = "half#0"
    assert policy.tokens(key) is None
    policy.release(key)
    kept = policy.tokens(key)
    assert policy.tokens(key) is None
    assert [stretch.turn for stretch in kept.stretches] == [None, 0, None, 1, None, 2]
    assert seat.row.ids == [*kept.prompt_ids, *(i for s in kept.stretches for i in s.ids)]
    assert policy._tokenizer.decode(kept.prompt_ids) == prompt_text("Be brief.", ())
    for stretch in kept.stretches:
        told = stretch.turn is None
        assert len(stretch.log_probs) == (0 if told else len(stretch.ids))
        assert all(log_prob < 0 for log_prob in stretch.log_probs)


def test_no_tokens_of_a_dialogue_whose_tools_change(opened):
    policy = another(opened, keep_tokens=True)
    tool = RenderedTool(name="look", description="Look.", parameters={"properties": {}})
    dialogue(policy, steps=3, tools=lambda step: (tool,) if step else ())
    policy.release("half#0")
    assert policy.tokens("half#0") is None


def test_tokens_are_not_kept_unasked(opened):
    policy = another(opened)
    dialogue(policy, steps=1)
    policy.release("half#0")
    assert policy.tokens("half#0") is None


def test_after_a_refresh_the_new_weights_speak(opened):
    import copy

    import torch

    old, new = (copy.deepcopy(opened._sampler._model).float() for _ in range(2))
    with torch.no_grad():
        for weight in new.parameters():
            weight.add_(torch.full_like(weight, 0.05) * weight.abs().mean())
    policy = type(opened)("local:x", "1", old, opened._tokenizer, keep_tokens=True)
    fresh = type(opened)("local:x", "2", new, opened._tokenizer, keep_tokens=True)

    def spoken(speaker) -> list[float]:
        dialogue(speaker, steps=2)
        speaker.release("half#0")
        return [p for stretch in speaker.tokens("half#0").stretches for p in stretch.log_probs]

    spoken(policy)
    old.load_state_dict(new.state_dict())
    policy.refresh("2")
    assert policy.version == "2"
    assert spoken(policy) == pytest.approx(spoken(fresh), abs=1e-6)


def test_a_folder_that_holds_no_model_is_the_users_to_fix(tmp_path):
    with pytest.raises(ConfigError, match="no model can be loaded"):
        seal.run("rooms", f"local:{tmp_path}", seal.RunSettings(limit=1))
