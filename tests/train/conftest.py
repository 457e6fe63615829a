"""What all tests of the trainer stand on: the bell, and a tokenizer of its words."""

import pytest

from tests.train.bell import bell, words_of


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return bell(tmp_path_factory.mktemp("bell") / "bell")


@pytest.fixture(scope="module")
def tokenizer(template):
    from seal.models.tiny import tiny_tokenizer

    return tiny_tokenizer(words_of(template))
