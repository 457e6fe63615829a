"""What the trainer learns from: TRL's own loss, on the tokens that were sampled, turn by turn."""

import dataclasses

import pytest

from tests.train.bell import TRAINER, hand_out
from tests.train.steps import rows_of, step_of, trainer_of

pytestmark = TRAINER


def loss_and_gradient(trainer, batches):
    import torch

    trainer.model.zero_grad()
    losses = [trainer.compute_loss(trainer.model, batch) for batch in batches]
    torch.stack(losses).sum().backward()
    loss = sum(loss.item() for loss in losses)
    return loss, {n: w.grad.clone() for n, w in trainer.model.named_parameters() if w.requires_grad}


def watched(monkeypatch) -> list[int]:
    """How many tokens were computed once for all rows of a batch, batch by batch."""
    from seal.train import grpo

    shared: list[int] = []
    score = grpo.score

    def scoring(model, pairs, *rest):
        shared.append(pairs[0][0].shape[-2])
        return score(model, pairs, *rest)

    monkeypatch.setattr(grpo, "score", scoring)
    return shared


def trl_of(trainer):
    """TRL's own trainer on the same model, in one batch, with the rollouts that ours has made."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = trainer.conductor.rows
    keys = "output_dir", "loss_type", "temperature", "num_generations", "use_cpu", "bf16"
    settings = {key: getattr(trainer.args, key) for key in keys}
    records = [row.record for row in rows]
    theirs = GRPOTrainer(
        model=trainer.model,
        reward_funcs=lambda **_: [row.reward for row in rows],
        args=GRPOConfig(
            **settings,
            max_completion_length=trainer.args.max_completion_length,
            per_device_train_batch_size=len(rows),
            gradient_checkpointing=False,
            report_to="none",
        ),
        train_dataset=Dataset.from_list(rows_of(trainer)),
        processing_class=trainer.processing_class,
        rollout_func=lambda *_: {
            "prompt_ids": [record.prompt_ids for record in records],
            "completion_ids": [record.completion_ids for record in records],
            "logprobs": [record.log_probs for record in records],
            "env_mask": [[int(sampled) for sampled in record.sampled] for record in records],
        },
    )
    # Set late: TRL would take the adapter as it is now for the reference.
    theirs.beta = trainer.args.beta
    theirs.current_gradient_accumulation_steps = 1
    theirs.model.train()
    return theirs


@pytest.mark.parametrize(
    ("trl", "reweighting"),
    [
        ({}, "none"),
        ({}, "paper"),
        ({"loss_type": "grpo", "per_device_train_batch_size": 3}, "none"),
        ({"loss_type": "dr_grpo"}, "none"),
        ({"loss_type": "cispo", "epsilon_high": 0.2}, "none"),
        ({"beta": 0.2, "per_device_train_batch_size": 4}, "none"),
    ],
)
def test_without_diagnoses_the_loss_is_trls_own(
    template, tokenizer, tmp_path, monkeypatch, trl, reweighting
):
    import torch

    hand_out(monkeypatch, tokenizer)
    trainer = trainer_of(
        template,
        tokenizer,
        tmp_path,
        lambda row: dataclasses.replace(row, labels=()),
        trl=trl,
        reweighting=reweighting,
    )
    batches = step_of(trainer)
    shared = watched(monkeypatch)
    ours, gradient = loss_and_gradient(trainer, batches)
    # The way that is not TRL's own is what is compared with it.
    assert len(shared) == len(batches)
    assert min(shared) > 50
    theirs = trl_of(trainer)
    whole = theirs._generate_and_score_completions(rows_of(trainer))
    assert whole["advantages"].abs().max() > 0.5
    loss, wanted = loss_and_gradient(theirs, [whole])
    assert ours == pytest.approx(loss, abs=1e-6)
    assert max(value.abs().max() for value in wanted.values()) > 1e-3
    for name, value in wanted.items():
        assert torch.allclose(gradient[name], value, atol=1e-6, rtol=1e-4), name


@pytest.mark.parametrize(
    ("trl", "updates", "words"),
    [
        ({}, 1, 1),
        ({"per_device_train_batch_size": 2, "beta": 0.2}, 1, 1),
        ({"per_device_train_batch_size": 3, "gradient_accumulation_steps": 4}, 2, 1),
        ({"per_device_train_batch_size": 4}, 1, 2),
        ({"per_device_train_batch_size": 8, "loss_type": "grpo"}, 1, 2),
    ],
)
def test_an_update_goes_by_trls_own_gradient(
    template, tokenizer, tmp_path, monkeypatch, trl, updates, words
):
    """Through the whole of TRL's loop, in which the beginning of all rollouts is read once.

    With two sorts of words, each has a beginning of its own; where a micro-batch must mix them,
    what they have in common is read for it alone.
    """
    import torch
    from transformers import TrainerCallback

    from seal.train import grpo

    gradients, readings, read = [], [], grpo.read

    class Keeping(TrainerCallback):
        def on_pre_optimizer_step(self, *_, model, **__):
            named = model.named_parameters()
            gradients.append({n: w.grad.clone() for n, w in named if w.requires_grad})

    def reading(backbone, ids):
        readings.append(torch.is_grad_enabled())
        return read(backbone, ids)

    hand_out(monkeypatch, tokenizer)
    monkeypatch.setattr(grpo, "read", reading)
    # At this rate no weight of single precision moves.
    options = {"rate": 1e-12, "generations": 1, "steps": 1, "reward": "progress"}
    trl = {"max_grad_norm": 0.0, **trl}
    trainer = trainer_of(template, tokenizer, tmp_path, trl=trl, **options)
    trainer.add_callback(Keeping())
    arena = trainer.conductor.arenas[0]
    told = arena.under(arena.candidate.with_texts({"ring.affordance": "It tires after three."}))
    trainer.conductor.arenas = [arena, arena, told, told] if words == 2 else [arena]
    trainer.train()
    mixed = words == 2 and trainer.loss_type == "grpo"
    assert len(gradients) == updates
    assert sum(readings) == updates * words + mixed
    theirs = trl_of(trainer)
    whole = theirs._generate_and_score_completions(rows_of(trainer))
    _, wanted = loss_and_gradient(theirs, [whole])
    for name, value in wanted.items():
        # Each update is scaled as if it were all; together they are.
        found = torch.stack([gradient[name] for gradient in gradients]).mean(0)
        assert torch.allclose(found, value, atol=1e-6, rtol=1e-4), name
    assert max(value.abs().max() for value in wanted.values()) > 1e-3


def test_the_advantages_of_trl_are_left_alone_without_reweighting(
    template, tokenizer, tmp_path, monkeypatch
):
    import torch
    from trl import GRPOTrainer

    hand_out(monkeypatch, tokenizer)
    trainer = trainer_of(template, tokenizer, tmp_path)
    kept = []
    original = GRPOTrainer._generate_and_score_completions

    def keeping(self, inputs):
        kept.append(original(self, inputs))
        return dict(kept[-1])

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", keeping)
    ours = trainer._generate_and_score_completions(rows_of(trainer))
    assert ours["advantages"].shape == (24,)
    assert ours.pop("words").unique().tolist() == [0]
    assert ours.keys() == kept[0].keys()
    assert all(torch.equal(ours[key], kept[0][key]) for key in ours)


def test_the_paper_weighs_every_turn_by_its_rollouts_labels(
    template, tokenizer, tmp_path, monkeypatch
):
    import torch

    from seal.train.advantage import rollout_weight
    from seal.train.spans import token_turns

    hand_out(monkeypatch, tokenizer)
    trainer = trainer_of(template, tokenizer, tmp_path, reweighting="paper")
    batch = trainer._generate_and_score_completions(rows_of(trainer))
    rewards = torch.tensor([row.reward for row in trainer.conductor.rows]).view(4, 6)
    plain = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    weights = [rollout_weight(row.labels) for row in trainer.conductor.rows]
    assert len(set(weights)) > 2
    before = after = 0.0
    for place, row in enumerate(trainer.conductor.rows):
        wanted = weights[place] * plain.flatten()[place].item()
        found = batch["advantages"][place].tolist()
        for turn, value in zip(token_turns(row.record), found, strict=False):
            assert value == pytest.approx(0.0 if turn is None else wanted, abs=1e-5)
        assert not any(found[len(row.record.completion_ids) :])
        before += sum(row.record.sampled) * abs(wanted) / weights[place]
        after += sum(row.record.sampled) * abs(wanted)
    assert trainer.conductor.figures["step_scale"] == pytest.approx(after / before, abs=1e-5)
    trainer.model.eval()
    assert trainer._generate_and_score_completions(rows_of(trainer))["advantages"].ndim == 1


def test_dynamic_rho_has_seen_the_step_that_it_weighs(template, tokenizer, tmp_path, monkeypatch):
    from seal.train.advantage import DynamicRho, observe, rollout_weight

    hand_out(monkeypatch, tokenizer)
    trainer = trainer_of(template, tokenizer, tmp_path, reweighting="paper", rho="dynamic")
    batch = trainer._generate_and_score_completions(rows_of(trainer))
    rows = trainer.conductor.rows
    wanted = observe(DynamicRho(), [(row.labels, row.reward) for row in rows])
    assert trainer.rho == wanted != DynamicRho()
    place = next(i for i, row in enumerate(rows) if batch["advantages"][i].abs().max() > 0)
    group = [row.reward for row in rows[place // 6 * 6 :][:6]]
    sign = rows[place].reward - sum(group) / 6
    largest = batch["advantages"][place].abs().max().item()
    static = largest / rollout_weight(rows[place].labels, wanted.rho)
    spread = (sum((one - sum(group) / 6) ** 2 for one in group) / 5) ** 0.5
    assert static == pytest.approx(abs(sign) / (spread + 1e-4), abs=1e-4)


def test_what_was_told_gets_no_gradient(template, tokenizer, tmp_path, monkeypatch):
    import torch

    hand_out(monkeypatch, tokenizer)
    trainer = trainer_of(template, tokenizer, tmp_path, reweighting="paper")
    told_somewhere = False
    for batch in step_of(trainer):
        with torch.no_grad():
            ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
            mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
            keep = batch["completion_ids"].shape[1]
            log_probs, entropies, _ = trainer._get_per_token_logps_and_entropies(
                trainer.model, ids, mask, keep, compute_entropy=True
            )
        leaf = log_probs.clone().requires_grad_()
        with monkeypatch.context() as patch:
            patch.setattr(
                trainer,
                "_get_per_token_logps_and_entropies",
                lambda *_, leaf=leaf, entropies=entropies, **__: (leaf, entropies, None),
            )
            loss = trainer.compute_loss(trainer.model, batch)
            loss.backward()
            sampled = (batch["completion_mask"] * batch["tool_mask"]).bool()
            changed = {**batch, "advantages": batch["advantages"].where(sampled, 7.0)}
            assert trainer.compute_loss(trainer.model, changed).item() == loss.item()
        told = batch["completion_mask"].bool() & ~sampled
        told_somewhere |= bool(told.any())
        assert not leaf.grad[~sampled].any()
        assert leaf.grad[sampled & (batch["advantages"] != 0)].all()
    assert told_somewhere
