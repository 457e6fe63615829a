"""A training run that is stopped anywhere ends as if it had not been."""

import json
import shutil
from pathlib import Path

import pytest

import seal
from seal.errors import ConfigError
from seal.loop import run as loop_run
from seal.loop.generations import Watch
from seal.loop.outcome import Training
from seal.loop.run import Silent, TrainOptions
from seal.records import RunFolder
from seal.types import Rollout
from tests.loop.fakes import CONFIG, Trainer, install, parcels

FILES = ("generations.jsonl", "checkpoints.jsonl", "steps.jsonl", "proposals.jsonl", "profile.json")


class Deadly(Silent):
    """Ends the process after so many rollouts of a stage."""

    def __init__(self, stage: str, rollouts: int) -> None:
        self._stage, self._left = stage, rollouts
        self._here = False

    def stage(self, text: str) -> None:
        self._here = self._stage in text

    def advance(self, rollouts: int) -> None:
        self._left -= rollouts * self._here
        if self._left < 0:
            raise KeyboardInterrupt


def run(out: Path, watch: Watch | None = None) -> Training:
    options = TrainOptions(out=out)
    return seal.train(parcels(), "local:x", config=CONFIG, options=options, watch=watch)


def same(found: Training) -> dict[str, object]:
    return found.model_dump(exclude={"stages"})


def kept(folder: Path) -> dict[str, bytes]:
    files = {name: (folder / name).read_bytes() for name in FILES}
    return files | {p.name: p.read_bytes() for p in (folder / "candidates").iterdir()}


def rollouts(folder: Path) -> list[tuple[object, ...]]:
    lines = (folder / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    made = [Rollout.model_validate_json(line) for line in lines]
    return sorted((r.policy_version, r.candidate, r.id, r.reward or 0.0) for r in made)


@pytest.mark.parametrize(
    ("stop_at", "watch"),
    [
        ("begin 0", None),
        ("step 1", None),
        ("begin 1", None),
        ("step 3", None),
        ("begin 2", None),
        ("", Deadly("baseline", 3)),
        ("", Deadly("gate: bundle", 9)),
        ("", Deadly("checkpoint 1", 5)),
        ("", Deadly("against the original ones", 6)),
        ("", Deadly("the trained policy", 6)),
    ],
)
def test_a_stopped_run_ends_as_any_other(stop_at, watch, whole, tmp_path, monkeypatch):
    _, found, folder = whole
    install(Trainer(stop_at=stop_at), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, watch)
    assert not (tmp_path / "result.json").exists()
    again = Trainer()
    install(again, monkeypatch)
    assert same(run(tmp_path)) == same(found)
    assert kept(tmp_path) == kept(folder.path)
    assert rollouts(tmp_path) == rollouts(folder.path)
    assert again.begun == list(range(again.begun[0], 3))


def test_earlier_generations_are_not_made_anew(tmp_path, monkeypatch):
    install(Trainer(stop_at="step 3"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    size = (tmp_path / "rollouts.jsonl").stat().st_size
    again = Trainer()
    install(again, monkeypatch)
    run(tmp_path, Deadly("generation", 0))
    assert again.begun == [1, 2]
    assert (tmp_path / "rollouts.jsonl").stat().st_size > size


def test_a_run_whose_records_were_damaged_says_so(tmp_path, monkeypatch):
    install(Trainer(stop_at="step 3"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    path = tmp_path / "checkpoints.jsonl"
    whole_text = path.read_text(encoding="utf-8")
    path.write_text(whole_text.splitlines()[0] + "\n", encoding="utf-8")
    install(Trainer(), monkeypatch)
    with pytest.raises(ConfigError, match="checkpoint 0 is missing"):
        run(tmp_path)
    path.write_text(whole_text, encoding="utf-8")
    lines = (tmp_path / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "rollouts.jsonl").write_text("\n".join(lines[:9]) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"is missing from this run's rollouts\.jsonl"):
        run(tmp_path)


def test_steps_that_were_lost_are_not_left_out_of_the_result(tmp_path, monkeypatch):
    install(Trainer(stop_at="step 3"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    path = tmp_path / "steps.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(lines[0] + lines[2], encoding="utf-8")
    install(Trainer(), monkeypatch)
    with pytest.raises(ConfigError, match=r"steps\.jsonl: step 0 is missing"):
        run(tmp_path)


def test_an_adapter_that_was_lost_is_said_to_be(tmp_path, monkeypatch):
    install(Trainer(stop_at="begin 2"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    install(Trainer(), monkeypatch)
    keep = loop_run._keep_adapter

    def lost(made: Path, folder: RunFolder) -> Path:
        shutil.rmtree(made)
        return keep(made, folder)

    monkeypatch.setattr(loop_run, "_keep_adapter", lost)
    with pytest.raises(ConfigError, match=r"generation-\d: the adapter of the best checkpoint is"):
        run(tmp_path)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_no_training_takes_is_refused_at_once(tmp_path, monkeypatch, seed):
    install(Trainer(), monkeypatch)
    options = TrainOptions(out=tmp_path / "run", seed=seed)
    with pytest.raises(ConfigError, match="takes seeds from 0 to 4294967295"):
        seal.train(parcels(), "local:x", config=CONFIG, options=options)
    assert not (tmp_path / "run").exists()


def test_other_settings_are_another_run(tmp_path, monkeypatch):
    install(Trainer(stop_at="begin 0"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    other = CONFIG.model_copy(update={"test_tasks": 7})
    with pytest.raises(ConfigError, match=r"config\.test_tasks: 30 there, 7 now"):
        seal.train(parcels(), "local:x", config=other, options=TrainOptions(out=tmp_path))
    settings = json.dumps((tmp_path / "run.toml").read_text(encoding="utf-8"))
    assert "local:x" in settings


def test_a_run_does_not_go_on_from_another_warm_start(tmp_path, monkeypatch):
    install(Trainer(stop_at="step 1"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    install(Trainer(), monkeypatch)
    monkeypatch.setattr(loop_run, "_warm_start", lambda *_: "local:/another/base")
    with pytest.raises(ConfigError, match="this run began with local:/a/base, version 0; its warm"):
        run(tmp_path)
    for damaged in ("{", "[]", "7"):
        (tmp_path / "base.json").write_text(damaged, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"base\.json: |this run began with"):
            run(tmp_path)


def test_a_damaged_result_is_said_to_be_one(tmp_path, monkeypatch):
    install(Trainer(stop_at="begin 0"), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    (tmp_path / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="no result of `seal train` can be read here"):
        run(tmp_path)
