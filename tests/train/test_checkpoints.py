"""Which checkpoints count as whole."""

import json

import pytest

from seal.errors import ConfigError
from seal.train.advantage import DynamicRho, observe
from seal.train.checkpoints import newest_checkpoint, seal_checkpoint

SETTINGS = {"seed": 0, "rate": 0.1}


def made(folder, updates, rho=None, sealed=True):
    path = folder / f"checkpoint-{updates}"
    path.mkdir()
    (path / "adapter_model.safetensors").write_bytes(b"weights")
    if sealed:
        seal_checkpoint(path, rho or DynamicRho(), SETTINGS)
    return path


def test_the_newest_whole_checkpoint_is_taken_and_the_others_that_are_not_whole_go(tmp_path):
    rho = observe(DynamicRho(), [(("pass", "state_mismatch"), 0.3)])
    made(tmp_path, 9)
    made(tmp_path, 10, rho)
    half = made(tmp_path, 11, sealed=False)
    (tmp_path / "checkpoint-final").mkdir()
    found = newest_checkpoint(tmp_path, SETTINGS)
    assert found.updates == 10
    assert found.folder == tmp_path / "checkpoint-10"
    assert found.rho == rho
    assert not half.exists()
    assert (tmp_path / "checkpoint-final").exists()


def test_where_nothing_was_saved_there_is_none(tmp_path):
    assert newest_checkpoint(tmp_path / "nowhere", SETTINGS) is None
    made(tmp_path, 1, sealed=False)
    assert newest_checkpoint(tmp_path, SETTINGS) is None


def test_other_settings_are_refused_with_what_differs(tmp_path):
    made(tmp_path, 1)
    with pytest.raises(ConfigError, match=r"rate: 0\.1 there, 0\.2 now"):
        newest_checkpoint(tmp_path, {**SETTINGS, "rate": 0.2})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "it is missing"),
        (lambda path: path.write_bytes(b"weigh"), "it is not as it was written"),
        (lambda path: path.write_bytes(b"Weights"), "it is not as it was written"),
    ],
)
def test_a_damaged_checkpoint_is_not_gone_on_from(tmp_path, damage, said):
    made(tmp_path, 1)
    newest = made(tmp_path, 2)
    damage(newest / "adapter_model.safetensors")
    with pytest.raises(ConfigError, match=rf"checkpoint-2/adapter.*: {said}") as caught:
        newest_checkpoint(tmp_path, SETTINGS)
    assert f"remove {newest}: the same command then goes on from the" in str(caught.value)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"rho": {}}', '{"rho": {"alpha": 1}, "settings": {}}', '"text"']
)
def test_a_damaged_file_of_ours_is_said_to_be_so(tmp_path, content):
    path = made(tmp_path, 1)
    (path / "seal.json").write_text(content)
    with pytest.raises(ConfigError, match=r"seal\.json: this is not what a checkpoint"):
        newest_checkpoint(tmp_path, SETTINGS)


def test_what_is_kept_can_be_read_without_us(tmp_path):
    path = made(tmp_path, 1)
    kept = json.loads((path / "seal.json").read_text())
    assert kept["settings"] == SETTINGS
    assert kept["rho"]["rho"]["pass"] == 1.0
