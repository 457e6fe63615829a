"""The sampler against one plain forward pass over what it sampled."""

import importlib.util
import os
import random

import pytest

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def model():
    from seal.models.tiny import tiny_model

    return tiny_model(300, seed=3).eval()


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


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_log_probs_are_those_of_one_pass_over_the_whole_dialogue(model, temperature):
    import torch

    from seal.models.sampler import Sampler

    rng = random.Random(temperature)
    sampler = Sampler(model, rows=7, end=2)
    prompt = [rng.randrange(5, 300) for _ in range(40)]
    rows = [*sampler.open(prompt, 4), *sampler.open(prompt[:11], 2)]
    said = heard_and_said(sampler, rows, rounds=5, rng=rng, temperature=temperature)
    for row in rows:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([row.ids])).logits[0].float()
        scores = (logits / (temperature or 1.0)).log_softmax(-1)
        assert len(said[row.index]) == 5
        for begin, end, log_probs in said[row.index]:
            wanted = [scores[at - 1, row.ids[at]].item() for at in range(begin, end)]
            assert log_probs == pytest.approx(wanted, abs=1e-4)
            if temperature == 0.0:
                best = [int(scores[at - 1].argmax()) for at in range(begin, end)]
                assert row.ids[begin:end] == best


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
