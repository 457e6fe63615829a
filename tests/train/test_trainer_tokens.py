"""The tokens that are trained on are the tokens that were sampled."""

from collections import Counter

import pytest

from tests.train.bell import TRAINER
from tests.train.steps import shake, step_of, trainer_of

pytestmark = TRAINER


@pytest.mark.parametrize(("temperature", "batches"), [(1.0, 3), (0.7, 1)])
def test_what_was_sampled_is_what_is_trained(
    template, tokenizer, tmp_path, monkeypatch, temperature, batches
):
    """2,000 rollouts of random models in all."""
    import torch

    from seal.models.sampler import Sampler

    fed, draw, close = Counter(), Sampler._draw, Sampler.close
    drawn: dict[int, list[int]] = {}

    def drawing(self, rows, logits):
        for row in rows:
            drawn.setdefault(id(row), []).append(len(row.ids))
        draw(self, rows, logits)

    def closing(self, row):
        fed[tuple(row.ids), tuple(drawn.pop(id(row)))] += 1
        close(self, row)

    monkeypatch.setattr(Sampler, "_draw", drawing)
    monkeypatch.setattr(Sampler, "close", closing)
    trainer = trainer_of(
        template,
        tokenizer,
        tmp_path,
        groups=8,
        group_size=63,
        max_tokens=5,
        temperature=temperature,
        trl={"loss_type": "grpo", "per_device_train_batch_size": 84},
    )
    heard_a_tool = 0
    for number in range(batches):
        trainer.state.global_step = number
        shake(trainer)
        fed.clear()
        trained: Counter = Counter()
        for batch in step_of(trainer):
            ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
            mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
            sampled = batch["completion_mask"] * batch["tool_mask"]
            learned = torch.cat([torch.zeros_like(batch["prompt_ids"]), sampled], 1)
            for row, there, marks in zip(ids, mask.bool(), learned, strict=True):
                places = tuple(marks[there].nonzero().flatten().tolist())
                trained[tuple(row[there].tolist()), places] += 1
            with torch.no_grad():
                log_probs, _, _ = trainer._get_per_token_logps_and_entropies(
                    trainer.model, ids, mask, sampled.shape[1]
                )
            off = (log_probs - batch["sampling_per_token_logps"])[sampled.bool()]
            assert off.abs().max() < 1e-4
        assert trained.total() == 504
        assert trained == fed
        steps = (len(turn.steps) for row in trainer.conductor.rows for turn in row.rollout.turns)
        heard_a_tool += sum(count > 1 for count in steps)
    assert heard_a_tool
