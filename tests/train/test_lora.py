"""The warm start of a pretrained model: an adapter that learns, and a training that goes on."""

import importlib.util
import os
import random
from dataclasses import replace

import pytest

from seal.errors import StorageFailure
from seal.resources import resource_folder
from seal.train.corpus import Corpus
from seal.train.warmstart import WarmStartSettings, collate, encode, loss_of
from tests.models.small import save_small_llama

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, peft)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]
FEW = WarmStartSettings(
    drill_steps=1, lesson_steps=4, recovery_steps=1, tokens=300, tasks=1, rate=2e-2
)


def corpus() -> Corpus:
    return Corpus(resource_folder("env_templates") / "rooms", range(1000, 1002))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    texts = corpus().texts(random.Random(0), 6)
    return save_small_llama(tmp_path_factory.mktemp("base"), texts)


def fresh(base):
    from seal.models.weights import load_weights
    from seal.train.lora import with_fresh_adapter

    model, tokenizer = load_weights(str(base))
    return with_fresh_adapter(model, 0), tokenizer


def test_the_loss_falls_and_only_the_adapter_changes(base):
    import torch

    from seal.train.lora import train_lora

    (model, tokenizer), (untrained, _) = fresh(base), fresh(base)
    lessons = [corpus().lesson(random.Random(seed), 1).pieces for seed in range(4)]
    rows = [encode(tokenizer, pieces) for pieces in lessons]

    def loss(adapted) -> float:
        with torch.no_grad():
            return loss_of(adapted.get_base_model(), *collate(rows)).item()

    train_lora(model, tokenizer, corpus(), replace(FEW, lesson_steps=11))
    assert loss(model) < 0.8 * loss(untrained)
    before = dict(untrained.named_parameters())
    for name, weights in model.named_parameters():
        assert torch.equal(weights, before[name]) == ("lora_" not in name), name


def test_the_adapter_loads_on_its_model_and_says_the_same(base, tmp_path):
    import torch

    from seal.models.weights import load_weights
    from seal.train.lora import train_lora, warm_start_adapter
    from seal.train.resume import ResumePoint

    warm_start_adapter(
        str(base), tmp_path, corpus(), FEW, lambda _step, _loss: None, ResumePoint(None)
    )
    model, tokenizer = fresh(base)
    train_lora(model, tokenizer, corpus(), FEW)
    loaded, _ = load_weights(str(base), str(tmp_path))
    ids = torch.randint(5, 50, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(loaded(ids).logits, model(ids).logits, atol=1e-5)


def test_a_killed_training_goes_on_and_learns_the_same(base, tmp_path):
    import torch

    from seal.train.lora import train_lora
    from seal.train.resume import ResumePoint

    def trained(report, file):
        model, tokenizer = fresh(base)
        train_lora(model, tokenizer, corpus(), FEW, report, ResumePoint(file, every_s=0))
        return model.state_dict()

    def killed(step: int, _loss: float) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(killed, tmp_path / "resume.pt")
    steps = []
    found = trained(lambda step, _loss: steps.append(step), tmp_path / "resume.pt")
    assert steps == [3, 4, 5]
    wanted = trained(lambda _step, _loss: None, None)
    # Which templates are at hand depends on what was drawn before; with these seeds all of them.
    assert all(torch.allclose(found[name], wanted[name], atol=1e-6) for name in wanted)


def test_a_torn_resume_point_is_said_and_not_run(base, tmp_path):
    from seal.train.resume import ResumePoint

    class Bomb:
        def __reduce__(self):
            return os.abort, ()

    import torch

    torch.save({"step": 1, "weights": {}, "optimizers": [Bomb()]}, tmp_path / "resume.pt")
    with pytest.raises(StorageFailure, match=r"resume\.pt"):
        ResumePoint(tmp_path / "resume.pt").load(fresh(base)[0], [])
