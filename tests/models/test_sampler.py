"""The sampler against one plain forward pass over what it sampled."""

import importlib.util
import os
import random

import pytest

from seal.errors import ConfigError, ModelFailure

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]


def tiny():
    from seal.models.tiny import tiny_model

    return tiny_model(300, seed=3)


def shared_heads():
    """A Llama of which three heads share a key, as in SmolLM2."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=96,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config)


def adapted():
    """The same under a LoRA adapter that says something, and with dropout that must not."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, target_modules="all-linear", lora_dropout=0.5, init_lora_weights=False)
    return get_peft_model(shared_heads(), config)


@pytest.fixture(scope="module", params=[tiny, shared_heads, adapted])
def any_model(request):
    return request.param().eval()


@pytest.fixture(scope="module")
def model():
    return tiny().eval()


def heard_and_said(sampler, rows, rounds: int, rng: random.Random, temperature: float, seed=0):
    """Rows that hear chunks of unequal length and answer at their own pace."""
    left = {row.index: rounds for row in rows}
    said: dict[int, list[tuple[int, int, list[float]]]] = {row.index: [] for row in rows}

    def submit(row) -> None:
        chance = random.Random(f"{seed}/{row.index}/{left[row.index]}")
        most = rng.randint(1, 12)
        sampler.submit(row, heard(rng), most=most, temperature=temperature, chance=chance)

    for row in rows:
        submit(row)
    while any(left.values()):
        for row in sampler.step():
            end = len(row.ids)
            said[row.index].append((end - len(row.sampled), end, list(row.log_probs)))
            left[row.index] -= 1
            if left[row.index]:
                submit(row)
    return said


def heard(rng: random.Random) -> list[int]:
    return [rng.randrange(5, 300) for _ in range(rng.randint(1, 9))]


def agrees(model, row, said, temperature: float) -> None:
    """What a row said has the log-probs of one plain pass over all that it holds."""
    import torch

    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([row.ids])).logits[0].float()
    scores = (logits / (temperature or 1.0)).log_softmax(-1)
    for begin, end, log_probs in said:
        wanted = [scores[at - 1, row.ids[at]].item() for at in range(begin, end)]
        assert log_probs == pytest.approx(wanted, abs=1e-4)
        if temperature == 0.0:
            best = [int(scores[at - 1].argmax()) for at in range(begin, end)]
            assert row.ids[begin:end] == best


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_log_probs_are_those_of_one_pass_over_the_whole_dialogue(any_model, temperature):
    from seal.models.sampler import Sampler

    rng = random.Random(temperature)
    sampler = Sampler(any_model, rows=7, end=2)
    prompt = [rng.randrange(5, 300) for _ in range(40)]
    for _ in range(2):  # The second time, the prompts are there.
        rows = [*sampler.open(prompt, 4), *sampler.open(prompt[:11], 2)]
        said = heard_and_said(sampler, rows, rounds=5, rng=rng, temperature=temperature)
        for row in rows:
            assert len(said[row.index]) == 5
            agrees(any_model, row, said[row.index], temperature)
            sampler.close(row)


def test_rows_that_lie_apart_agree_too(model):
    from seal.models.sampler import Sampler

    rng = random.Random(1)
    sampler = Sampler(model, rows=9, end=2)
    rows = sampler.open([9, 8, 7], 9)
    for row in rows[1:8]:
        sampler.close(row)
    said = heard_and_said(sampler, [rows[8], rows[0]], rounds=3, rng=rng, temperature=1.0)
    agrees(model, rows[8], said[8], 1.0)
    agrees(model, rows[0], said[0], 1.0)


def test_what_is_long_is_heard_in_several_steps(model, monkeypatch):
    from seal.models import sampler as module

    monkeypatch.setattr(module, "CHUNK", 7)
    sampler = module.Sampler(model, rows=2, end=2)
    long, short = sampler.open([5, 6], 2)
    sampler.submit(long, list(range(10, 40)), most=3)
    sampler.submit(short, [9], most=9)
    while long not in sampler.step():
        pass
    agrees(model, long, [(32, len(long.ids), long.log_probs)], 0.0)
    agrees(model, short, [(3, len(short.ids), short.log_probs)], 0.0)


@pytest.fixture
def computed(model):
    """How many tokens each forward pass was given."""
    passes: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda _module, _args, given: passes.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    yield passes
    hook.remove()


def test_a_prompt_is_computed_once_until_it_is_forgotten_or_crowded_out(model, computed):
    from seal.models.sampler import PROMPTS, Sampler

    sampler = Sampler(model, rows=2, end=2)
    prompt = list(range(10, 40))
    for row in [*sampler.open(prompt, 2)]:
        sampler.close(row)
    (row,) = sampler.open(prompt)
    assert computed == [30]
    for other in range(PROMPTS):
        sampler.close(sampler.open([other + 5])[0])
    assert computed == [30, *[1] * PROMPTS]
    sampler.submit(row, [50], most=3)
    while not sampler.step():
        pass
    agrees(model, row, [(31, len(row.ids), row.log_probs)], 0.0)
    computed.clear()
    sampler.open(prompt)
    assert computed == [30]
    sampler.forget()
    sampler.close(row)
    sampler.open(prompt)
    assert computed == [30, 30]


def test_rows_that_begin_with_the_same_words_hear_them_as_one(model, computed):
    from seal.models.sampler import Sampler

    sampler = Sampler(model, rows=4, end=2)
    rows = sampler.open([10, 11, 12], 4)
    for row in rows:
        chance = random.Random(row.index)
        heard = [50, 51] if row.index < 3 else [50, 52]
        sampler.submit(row, heard, most=4, temperature=1.0, chance=chance)
    left = len(rows)
    while left:
        left -= len(sampler.step())
    assert computed[:3] == [3, 4, 4]
    assert len({tuple(row.ids) for row in rows}) == 4
    for row in rows:
        agrees(model, row, [(5, len(row.ids), row.log_probs)], 1.0)


def test_the_model_attends_as_before_when_it_is_not_sampled(model):
    import torch

    before = model.config._attn_implementation
    wanted = model(input_ids=torch.tensor([[7, 8, 9]])).logits
    drawn(model, 2, seed=1)
    assert model.config._attn_implementation == before
    assert torch.equal(model(input_ids=torch.tensor([[7, 8, 9]])).logits, wanted)


def test_a_model_that_sees_no_more_than_a_window_is_refused():
    from transformers import MistralConfig, MistralForCausalLM

    from seal.models.sampler import Sampler

    config = MistralConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=4,
    )
    with pytest.raises(ConfigError, match="type 'mistral': its attention has a form of its own"):
        Sampler(MistralForCausalLM(config), rows=1, end=2).open([5, 6])


def test_a_closed_row_leaves_nothing_to_the_next(model):
    from seal.models.sampler import Sampler

    def answer(sampler) -> list[int]:
        (row,) = sampler.open(list(range(10, 30)))
        sampler.submit(row, [31, 32], temperature=0.0, most=8)
        while not sampler.step():
            pass
        sampler.close(row)
        return row.sampled

    fresh, used = Sampler(model, rows=1, end=2), Sampler(model, rows=1, end=2)
    (row,) = used.open(list(range(100, 250)))
    used.submit(row, [9], temperature=1.0, most=20)
    while not used.step():
        pass
    used.close(row)
    assert answer(used) == answer(fresh)


def drawn(model, rows: int, seed: int) -> list[int]:
    """What a row says, with so many others beside it that say something else."""
    from seal.models.sampler import Sampler

    sampler = Sampler(model, rows=rows, end=2)
    first, *others = sampler.open(list(range(10, 40)), rows)
    for row in others:
        sampler.submit(row, [9], most=row.index + 1, temperature=1.0, chance=random.Random(7))
    sampler.submit(first, [31], most=12, temperature=1.0, chance=random.Random(seed))
    while first not in sampler.step():
        pass
    return first.sampled


def test_what_a_row_says_depends_on_its_chance_and_on_no_other_row(model):
    assert drawn(model, 1, seed=1) == drawn(model, 4, seed=1)
    assert drawn(model, 4, seed=1) != drawn(model, 4, seed=2)


def test_tokens_are_drawn_as_often_as_they_are_likely(model):
    import torch

    from seal.models.sampler import Sampler

    sampler = Sampler(model, rows=50, end=2)
    rows = sampler.open([10, 11, 12], 50)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[10, 11, 12, 13]])).logits[0, -1]
    likely = (logits / 0.2).softmax(-1)
    times = torch.zeros(300)
    chance = random.Random(0)
    for _ in range(40):
        for row in rows:
            row.ids, row.cached = row.ids[:3], min(row.cached, 3)
            sampler.submit(row, [13], most=1, temperature=0.2, chance=chance)
        for ended in sampler.step():
            times[ended.sampled[0]] += 1
    distance = (times / 2000 - likely).abs().sum()
    expected = (2 / torch.pi * likely * (1 - likely) / 2000).sqrt().sum()
    assert distance < 1.2 * expected < 0.4


def test_a_row_that_is_closed_in_the_midst_of_a_reply_says_nothing_more(model):
    from seal.models.sampler import Sampler

    sampler = Sampler(model, rows=2, end=2)
    kept, closed = sampler.open([10, 11], 2)
    for row in (kept, closed):
        sampler.submit(row, [12], most=2)
    sampler.close(closed)
    assert [*sampler.step(), *sampler.step()] == [kept]
    assert closed.sampled == []


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_computes_no_numbers_is_not_drawn_from(temperature):
    import torch

    from seal.models.sampler import Sampler

    broken = tiny().eval()
    with torch.no_grad():
        broken.model.norm.weight[0] = float("nan")
    sampler = Sampler(broken, 1, end=2)
    (row,) = sampler.open([5, 6])
    sampler.submit(row, [7], most=3, temperature=temperature, chance=random.Random(0))
    with pytest.raises(ModelFailure, match="are NaN"):
        sampler.step()
