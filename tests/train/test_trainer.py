"""The trainer as a whole, with TRL's own loop around scripted or random rollouts."""

import json

import pytest

from seal.config import TrainConfig
from seal.errors import ConfigError
from seal.types import UserTurn
from tests.train.bell import TRAINER, Loop, hand_out, small_model

pytestmark = TRAINER

SMALL = {"generations": 2, "steps": 2, "groups": 2, "group_size": 4, "max_tokens": 24, "rate": 0.01}


def trained(loop, tokenizer, folder, model=None, seed=0, **changes):
    from seal.train.trainer import train

    config = TrainConfig(**{**SMALL, **changes})
    model = model or small_model(tokenizer)
    train(model, tokenizer, loop, config, seed=seed, folder=folder)
    return model


def adapter(folder) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


def equal(one, other) -> bool:
    import torch

    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_a_run_goes_through_all_boundaries_and_learns(
    template, tokenizer, tmp_path, monkeypatch, capfd
):
    hand_out(monkeypatch, tokenizer)
    loop = Loop(template)
    model = trained(loop, tokenizer, tmp_path / "run")
    assert [number for number, _ in loop.began] == [0, 1, 2]
    assert loop.steps == [0, 1, 2, 3]
    assert len(loop.collected) == 4 * 8
    assert len({version for _, version in loop.began}) == 3
    assert any(figures["mixed_groups"] > 0 for figures in loop.figures)
    adapters = [adapter(tmp_path / "run" / f"generation-{number}") for number in range(3)]
    assert not equal(adapters[0], adapters[1])
    assert not equal(adapters[1], adapters[2])
    assert equal(adapters[2], adapter(tmp_path / "run" / "checkpoint-4"))
    assert not hasattr(model, "peft_config")
    assert capfd.readouterr() == ("", "")


def test_what_earns_reward_is_said_more_often(template, tokenizer, tmp_path):
    """With draws of the model's own: any answer with an e in it passes."""
    loop = Loop(template)
    task = template.tasks("train")[0]
    turn = UserTurn(user="Say it.", gold=(), answer=("e",))
    loop.tasks = lambda: [task.model_copy(update={"turns": (turn,)})]
    trained(
        loop,
        tokenizer,
        tmp_path / "run",
        generations=1,
        steps=8,
        group_size=16,
        max_tokens=2,
        rate=0.05,
        trl={"lr_scheduler_type": "constant"},
    )
    rewards = [figures["mean_reward"] for figures in loop.figures]
    assert 0.0 < sum(rewards[:2]) / 2 < 0.6
    assert sum(rewards[-2:]) / 2 > sum(rewards[:2]) / 2 + 0.2


def test_the_adapter_of_a_boundary_loads_as_the_policy_it_was(
    template, tokenizer, tmp_path, monkeypatch
):
    import torch
    from peft import PeftModel

    hand_out(monkeypatch, tokenizer)
    loop, logits = Loop(template), []
    ids = torch.tensor([[5, 6, 7, 8]])

    def look(_number: int) -> None:
        with torch.no_grad():
            logits.append(model(input_ids=ids).logits)

    loop.at_boundary = look
    model = small_model(tokenizer)
    trained(loop, tokenizer, tmp_path / "run", model)
    for number in (0, 1, 2):
        loaded = PeftModel.from_pretrained(
            small_model(tokenizer), str(tmp_path / "run" / f"generation-{number}")
        )
        with torch.no_grad():
            assert torch.allclose(loaded(input_ids=ids).logits, logits[number], atol=1e-5)


def test_a_loop_that_says_stop_is_heard(template, tokenizer, tmp_path, monkeypatch):
    hand_out(monkeypatch, tokenizer)
    for stop_at, steps in ((0, []), (1, [0, 1])):
        loop = Loop(template, stop_at)
        trained(loop, tokenizer, tmp_path / f"run{stop_at}")
        assert loop.began[-1][0] == stop_at
        assert loop.steps == steps


def test_a_warm_started_adapter_goes_on_being_trained(template, tokenizer, tmp_path, monkeypatch):
    import torch
    from peft import LoraConfig, get_peft_model

    hand_out(monkeypatch, tokenizer)
    lora = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(small_model(tokenizer), lora)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.1)
    # Twice, since TRL leaves a reference adapter behind where there is a KL term.
    for run in ("one", "two"):
        before = {name: weight.clone() for name, weight in model.named_parameters()}
        trained(Loop(template), tokenizer, tmp_path / run, model, generations=1, trl={"beta": 0.1})
        changed = {n for n, weight in model.named_parameters() if not weight.equal(before[n])}
        assert changed
        assert all("lora" in name for name in changed)
        assert list(model.peft_config) == ["default"]
        assert adapter(tmp_path / run / "generation-0").keys() == {
            name.replace(".default", "") for name in before if "lora" in name
        }


def test_an_adapter_that_is_frozen_is_refused(template, tokenizer, tmp_path):
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(small_model(tokenizer), LoraConfig(target_modules="all-linear"))
    model.requires_grad_(False)
    with pytest.raises(ConfigError, match="nothing that could be trained"):
        trained(Loop(template), tokenizer, tmp_path / "run", model)


def test_what_passes_through_reaches_trl(template, tokenizer, tmp_path, monkeypatch):
    import torch

    from seal.train import grpo

    hand_out(monkeypatch, tokenizer)
    learning, score = [], grpo.score

    def scoring(*arguments, **options):
        learning.append(torch.is_grad_enabled())
        return score(*arguments, **options)

    monkeypatch.setattr(grpo, "score", scoring)
    passed = {
        # What is computed once for all rows cannot be computed anew, so it is left to TRL.
        "gradient_checkpointing": True,
        "loss_type": "grpo",
        "lr_scheduler_type": "constant",
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "logging_steps": 2,
    }
    loop = Loop(template)
    trained(loop, tokenizer, tmp_path / "run", generations=1, trl=passed)
    # Four micro-batches a step, two an update: two steps are four updates.
    assert not any(learning)
    state = json.loads((tmp_path / "run" / "checkpoint-4" / "trainer_state.json").read_text())
    assert loop.steps == [0, 1]
    assert state["global_step"] == state["max_steps"] == 4
    logged = [entry for entry in state["log_history"] if "loss" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    assert {entry["learning_rate"] for entry in logged} == {0.01}
    assert all("step_scale" in entry and "rewards/progress/mean" in entry for entry in logged)


def test_tasks_whose_tools_change_are_left_out(template, tokenizer, tmp_path, monkeypatch):
    hand_out(monkeypatch, tokenizer)
    loop = Loop(template)
    tasks = []
    for number, one in enumerate(template.tasks("train")):
        turns = [one.turns[0], one.turns[0].model_copy(update={"hidden": ("listen",)})]
        tasks.append(one if number % 2 else one.model_copy(update={"turns": tuple(turns)}))
    loop.tasks = lambda: tasks
    trained(loop, tokenizer, tmp_path / "run", generations=1)
    assert {one.task.id for one in loop.collected} <= {one.id for one in tasks[1::2]}
    loop.tasks = lambda: tasks[::2]
    with pytest.raises(ConfigError, match="no task to train on"):
        trained(loop, tokenizer, tmp_path / "none")
