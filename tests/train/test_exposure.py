"""Exposure fades: from some groups that read the evolved words to none in the last generation."""

from itertools import pairwise

from seal.config import TrainConfig
from seal.train.exposure import exposed, exposure


def test_exposure_falls_evenly_to_nothing():
    config = TrainConfig(generations=5, exposure=0.8)
    shares = [exposure(config, generation) for generation in range(5)]
    assert shares[0] == 0.8
    assert shares[-1] == 0.0
    falls = {round(a - b, 9) for a, b in pairwise(shares)}
    assert falls == {0.2}


def test_one_generation_keeps_its_exposure():
    assert exposure(TrainConfig(generations=1, exposure=0.3), 0) == 0.3


def test_groups_are_exposed_as_often_as_the_share_says_and_the_same_on_resume():
    config = TrainConfig(generations=2, steps=500, groups=2, exposure=0.5)
    drawn = [exposed(config, 3, group) for group in range(2000)]
    assert 440 < sum(drawn[:1000]) < 560
    assert not any(drawn[1000:])
    assert drawn == [exposed(config, 3, group) for group in range(2000)]
    assert drawn != [exposed(config, 4, group) for group in range(2000)]
