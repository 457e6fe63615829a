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


def heard_and_said(sampler, rows, rounds: int, rng: random.Random, temperature: float):
    """Rows that hear chunks of unequal length and answer at their own pace."""
    left = {row.index: rounds for row in rows}
    said: dict[int, list[tuple[int, int, list[float]]]] = {row.index: [] for row in rows}
    for row in rows:
        most = rng.randint(1, 12)
        sampler.submit(row, heard(rng), temperature=temperature, most=most)
    while any(left.values()):
        for row in sampler.step():
            end = len(row.ids)
            said[row.index].append((end - len(row.sampled), end, list(row.log_probs)))
            left[row.index] -= 1
            if left[row.index]:
                most = rng.randint(1, 12)
                sampler.submit(row, heard(rng), temperature=temperature, most=most)
    return said


def heard(rng: random.Random) -> list[int]:
    return [rng.randrange(5, 300) for _ in range(rng.randint(1, 9))]


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_log_probs_are_those_of_one_pass_over_the_whole_dialogue(model, temperature):
    import torch

    from seal.models.sampler import Sampler

    rng = random.Random(temperature)
    sampler = Sampler(model, rows=7, end=2, seed=1)
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


def test_the_same_seed_draws_the_same(model):
    from seal.models.sampler import Sampler

    def drawn(seed: int) -> list[list[int]]:
        sampler = Sampler(model, rows=3, end=2, seed=seed)
        rows = sampler.open(list(range(10, 40)), 3)
        heard_and_said(sampler, rows, 3, random.Random(5), temperature=1.0)
        return [row.ids for row in rows]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
