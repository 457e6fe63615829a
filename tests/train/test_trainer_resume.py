"""A training run that was killed goes on as if nothing had happened."""

import json

import pytest

from seal.config import TrainConfig
from seal.errors import ConfigError, StorageFailure
from tests.train.bell import TRAINER, Loop, bell, hand_out, small_model

pytestmark = TRAINER

SMALL = {"generations": 2, "steps": 2, "groups": 3, "group_size": 4, "max_tokens": 24, "rate": 0.01}
DYNAMIC = {**SMALL, "reweighting": "paper", "rho": "dynamic"}


class Killed(BaseException):
    """What a test kills a run with."""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return bell(tmp_path_factory.mktemp("bell") / "bell", tasks=5)


def run(loop, tokenizer, folder, seed=0, model=None, **settings):
    from seal.train.trainer import train

    model = model or small_model(tokenizer)
    config = TrainConfig(**{**DYNAMIC, **settings})
    train(model, tokenizer, loop, config, seed=seed, folder=folder)


def weights(folder) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


def story(loop) -> list:
    """What a loop saw, without how long it took."""
    rollouts = [row.rollout.model_dump(exclude={"seconds"}) for row in loop.collected]
    return [loop.steps, loop.figures, rollouts]


@pytest.fixture(scope="module")
def whole(template, tokenizer, tmp_path_factory):
    """A run that nothing stops, in which the loop draws: nothing that is trained may hang on it."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        hand_out(patch, tokenizer)
        folder, loop = tmp_path_factory.mktemp("whole"), Loop(template)
        loop.at_boundary = lambda _: torch.rand(3)
        run(loop, tokenizer, folder)
    assert len({version for _, version in loop.began}) == 3, "every generation must learn"
    return folder, loop


@pytest.mark.parametrize("where", ["at the boundary", "at a step", "after the end"])
def test_a_run_that_was_killed_comes_to_the_same_weights(
    template, tokenizer, tmp_path, monkeypatch, whole, where
):
    import torch

    hand_out(monkeypatch, tokenizer)
    folder, first, second = tmp_path / "run", Loop(template), Loop(template)

    def dies(number: int) -> None:
        if (where, number) in {("at the boundary", 1), ("after the end", 2)}:
            raise Killed

    def dies_at(step, *rest):
        Loop.seen(first, step, *rest)
        if (where, step) == ("at a step", 3):
            raise Killed

    first.at_boundary, first.seen = dies, dies_at
    with pytest.raises(Killed):
        run(first, tokenizer, folder)
    # What a process leaves behind that dies while it saves, or after a later checkpoint was begun.
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "adapter_model.safetensors").write_bytes(b"half of it")
    run(second, tokenizer, folder)

    begun = {"at the boundary": [1, 2], "at a step": [1, 2], "after the end": [2]}[where]
    assert [number for number, _ in second.began] == begun
    assert second.began == whole[1].began[-len(begun) :]
    assert not (folder / "checkpoint-3").exists()
    for name in ("generation-2", "checkpoint-4"):
        found, wanted = weights(folder / name), weights(whole[0] / name)
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[key], wanted[key]) for key in found)
    kept = [json.loads((f / "checkpoint-4" / "seal.json").read_text()) for f in (folder, whole[0])]
    for key in ("rho", "settings"):
        assert kept[0][key] == kept[1][key]
    assert kept[0]["rho"]["total"]
    steps, figures, rollouts = story(second)
    all_steps, all_figures, all_rollouts = story(whole[1])
    assert steps == all_steps[len(all_steps) - len(steps) :]
    assert figures == all_figures[len(all_figures) - len(figures) :]
    assert rollouts == all_rollouts[len(all_rollouts) - len(rollouts) :]


def test_a_warm_started_adapter_and_its_reference_resume(
    template, tokenizer, tmp_path, monkeypatch
):
    import torch
    from peft import LoraConfig, get_peft_model

    def warm():
        torch.manual_seed(3)
        # With dropout, training draws too.
        lora = LoraConfig(r=2, target_modules="all-linear", lora_dropout=0.2, task_type="CAUSAL_LM")
        model = get_peft_model(small_model(tokenizer), lora)
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.1)
        return model

    def dies(number: int) -> None:
        if number == 1:
            raise Killed

    hand_out(monkeypatch, tokenizer)
    settings = {"steps": 1, "trl": {"beta": 0.3}}
    loop = Loop(template)
    loop.at_boundary = lambda _: torch.rand(3)
    run(loop, tokenizer, tmp_path / "whole", model=warm(), **settings)
    loop = Loop(template)
    loop.at_boundary = dies
    with pytest.raises(Killed):
        run(loop, tokenizer, tmp_path / "run", model=warm(), **settings)
    run(Loop(template), tokenizer, tmp_path / "run", model=warm(), **settings)
    ours, theirs = (weights(tmp_path / name / "generation-2") for name in ("run", "whole"))
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert not any("ref" in key for key in ours)


def test_a_full_disk_is_said_and_costs_no_more_than_a_generation(
    template, tokenizer, tmp_path, monkeypatch, whole
):
    import torch
    from transformers import Trainer

    hand_out(monkeypatch, tokenizer)
    save = Trainer._save_optimizer_and_scheduler

    def fails(self, output_dir):
        if output_dir.endswith("checkpoint-4"):
            raise OSError(28, "No space left on device")
        save(self, output_dir)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_save_optimizer_and_scheduler", fails)
        with pytest.raises(StorageFailure, match=r"checkpoint-4: No space left on device\."):
            run(Loop(template), tokenizer, tmp_path)
    loop = Loop(template)
    run(loop, tokenizer, tmp_path)
    assert loop.steps == [2, 3]
    found, wanted = weights(tmp_path / "generation-2"), weights(whole[0] / "generation-2")
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)


def test_other_settings_do_not_go_on_from_a_checkpoint(template, tokenizer, whole):
    with pytest.raises(ConfigError, match=r"rate: 0\.01 there, 0\.02 now"):
        run(Loop(template), tokenizer, whole[0], rate=0.02)
    with pytest.raises(ConfigError, match="seed: 0 there, 1 now"):
        run(Loop(template), tokenizer, whole[0], seed=1)


def test_only_the_checkpoints_that_resuming_needs_stay(template, tokenizer, tmp_path, monkeypatch):
    hand_out(monkeypatch, tokenizer)
    run(Loop(template), tokenizer, tmp_path / "run", generations=4, steps=1, groups=1)
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["checkpoint-3", "checkpoint-4", *(f"generation-{n}" for n in range(5))]


def test_what_the_trainer_cannot_take_is_a_mistake_in_the_settings(
    template, tokenizer, tmp_path, monkeypatch
):
    from seal.train import grpo

    def breaks(*_, **__):
        raise ImportError("no Liger here")

    monkeypatch.setattr(grpo, "SealTrainer", breaks)
    with pytest.raises(ConfigError, match=r"TRL cannot train with these values \(no Liger here\)"):
        run(Loop(template), tokenizer, tmp_path, trl={"beta": 0.1})
    with pytest.raises(ImportError, match="no Liger"):
        run(Loop(template), tokenizer, tmp_path)
