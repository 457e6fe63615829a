"""A training run that nobody disturbed, for all tests of the loop."""

import pytest

import seal
from seal.loop.outcome import Training
from seal.loop.run import TrainOptions
from seal.records import RunFolder
from tests.loop.fakes import CONFIG, Trainer, install, parcels


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trainer, Training, RunFolder]:
    """Its trainer, what it found, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        fake = Trainer()
        install(fake, patch)
        out = tmp_path_factory.mktemp("runs") / "whole"
        found = seal.train(parcels(), "local:x", config=CONFIG, options=TrainOptions(out=out))
    return fake, found, RunFolder(out)
