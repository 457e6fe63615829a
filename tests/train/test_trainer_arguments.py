"""What of `[train.trl]` reaches TRL, and what is refused before anything is spent."""

import dataclasses
import importlib.util

import pytest

from seal.config import TrainConfig
from seal.errors import ConfigError
from seal.train.arguments import OWNED, check_arguments, grpo_arguments, updates_per_step
from tests.train.bell import TRAINER

pytestmark = TRAINER


def refused(**trl) -> str:
    with pytest.raises(ConfigError) as caught:
        check_arguments(TrainConfig(groups=3, group_size=4, trl=trl))
    return str(caught.value)


def arguments(tmp_path, **changes):
    import torch

    config = TrainConfig(**{"groups": 3, "group_size": 4, **changes})
    model = torch.nn.Linear(2, 2)
    model.dtype = torch.float32
    return grpo_arguments(config, model, seed=5, folder=tmp_path)


def test_every_key_that_is_refused_exists_and_says_where_it_is_settled():
    from trl import GRPOConfig

    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    assert OWNED.keys() <= known
    for key in OWNED:
        said = refused(**{key: 1})
        assert said == f"train.trl.{key}: not for TRL to decide; {OWNED[key]}."
    assert "set train.rate" in refused(learning_rate=0.1)
    assert "with its own sampler" in refused(vllm_mode="server")


def test_unknown_keys_and_values_are_guessed_at_all_at_once():
    said = refused(betta=0.1, loss_type="dap", temperature=2.0)
    assert "train.trl.betta: TRL's GRPOConfig has no such key.\nDid you mean 'beta'?" in said
    assert "train.trl.loss_type: no 'dap'." in said
    assert "Did you mean 'dapo'?" in said
    assert "train.trl.temperature: not for TRL to decide; set train.temperature." in said


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("beta", "x"),
        ("beta", float("nan")),
        ("beta", -0.1),
        ("num_iterations", 0),
        ("max_grad_norm", True),
        ("run_name", 5),
        ("report_to", "nowhere"),
        ("report_to", ["wandb", 5]),
        ("lr_scheduler_type", "cosinus"),
        ("optim", "foo"),
    ],
)
def test_a_value_that_cannot_be_is_said_before_anything_is_spent(key, value):
    assert refused(**{key: value}).startswith("train.trl")


def test_a_service_that_is_not_installed_is_said_before_anything_is_spent(monkeypatch):
    from transformers import integrations

    def gone():
        raise RuntimeError("WandbCallback requires wandb to be installed.")

    monkeypatch.setattr(integrations, "get_reporting_integration_callbacks", lambda _: [gone])
    assert "train.trl.report_to: WandbCallback requires wandb" in refused(report_to="wandb")


def test_a_kernel_that_is_not_installed_is_said_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "train.trl.use_liger_kernel: liger-kernel is not" in refused(use_liger_kernel=True)


def test_no_token_of_a_hub_comes_into_a_run_folder():
    assert "SEAL publishes nothing" in refused(hub_token="hf_secret")
    assert "secret" not in refused(hub_token="hf_secret")


@pytest.mark.parametrize("value", [5, 0, -1, 2.0, "2", True])
def test_a_micro_batch_must_divide_the_rollouts_of_a_step(value):
    said = refused(per_device_train_batch_size=value)
    assert f"{value!r} is no divisor of 12.\nChoices: 1, 2, 3, 4, 6, 12." in said


def test_what_trl_itself_refuses_is_a_mistake_in_the_settings(tmp_path):
    with pytest.raises(ConfigError, match=r"train\.trl: TRL refuses these values"):
        arguments(tmp_path, trl={"lr_scheduler_type": "cosinus"})


def test_keys_pass_through_and_outweigh_our_defaults(tmp_path, monkeypatch):
    from transformers import integrations

    monkeypatch.setattr(integrations, "get_reporting_integration_callbacks", lambda _: [])
    made = arguments(
        tmp_path, rate=0.5, trl={"beta": 0.25, "logging_steps": 7, "report_to": "tensorboard"}
    )
    assert (made.beta, made.logging_steps, made.report_to) == (0.25, 7, ["tensorboard"])
    assert (made.learning_rate, made.seed, made.num_generations) == (0.5, 5, 4)


def test_the_schedule_counts_updates(tmp_path):
    plain = arguments(tmp_path, generations=3, steps=2)
    assert updates_per_step(plain) == 1
    assert (plain.save_steps, plain.max_steps) == (2, 6)
    assert plain.generation_batch_size == 12
    many = arguments(
        tmp_path,
        generations=3,
        steps=2,
        trl={
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 3,
            "num_iterations": 2,
        },
    )
    # 12 rollouts are 6 micro-batches, 2 windows of 3, gone through twice.
    assert updates_per_step(many) == 4
    assert (many.save_steps, many.max_steps) == (8, 24)
    assert many.generation_batch_size == 12
