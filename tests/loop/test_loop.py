"""The loop around training: what it evaluates, when it evolves, what it chooses, what it keeps."""

from pathlib import Path

import pytest

import seal
from seal.config import LoopConfig
from seal.errors import ConfigError
from seal.evolve.lineage import Generation
from seal.loop.outcome import Checkpoint, Stage, StepFigures, added_up, best_of
from seal.loop.run import TrainOptions, check_work, read_training
from seal.records import RunFolder
from seal.rollout.scores import ScoreSummary
from seal.types import Rollout
from tests.loop.fakes import BASE, CONFIG, Trainer, install, parcels


def changed(**more: object) -> LoopConfig:
    return CONFIG.model_copy(update=more)


def records(folder: RunFolder) -> list[Rollout]:
    return list(folder.lines("rollouts", Rollout).read())


def test_every_boundary_is_evaluated_on_validation_under_the_original_words(whole):
    fake, found, folder = whole
    assert fake.begun == [0, 1, 2]
    assert [one.number for one in found.checkpoints] == [0, 1, 2]
    assert [one.steps for one in found.checkpoints] == [0, 2, 4]
    made = [r for r in records(folder) if r.task.startswith("validation")]
    assert {r.candidate for r in made} == {found.original}
    assert {r.policy_version for r in made} == {"v0", "v1", "v2"}
    assert len(made) == 3 * CONFIG.validation_tasks
    assert {r.sampling.temperature for r in made} == {0.0}


def test_the_policy_trains_under_the_words_in_force(whole):
    fake, found, folder = whole
    after = [generation.candidate for generation in found.generations]
    assert fake.words == [after[0], after[0], after[1], after[1]]
    assert after[0] != found.original, "the first search adopts something"
    kept = list(folder.lines("grpo", Rollout).read())
    assert [r.candidate for r in kept] == [word for word in fake.words for _ in range(2)]
    assert [step.candidate for step in found.steps] == fake.words
    assert [step.generation for step in found.steps] == [0, 0, 1, 1]


def test_the_best_checkpoint_is_the_trained_policy_and_its_adapter_is_kept(whole):
    _, found, folder = whole
    scores = [one.validation.score for one in found.checkpoints]
    assert found.best == scores.index(max(scores)) == 2
    assert (folder.path / "adapter" / "adapter_model.safetensors").read_text() == "2"
    assert found.base == BASE
    assert not list((folder.path / "trainer").glob("checkpoint-*"))


def test_the_test_split_is_read_four_times_over_the_same_tasks(whole):
    _, found, folder = whole
    made = [r for r in records(folder) if r.task.startswith("test")]
    cells = {(r.policy_version, r.candidate) for r in made}
    assert cells == {
        (version, words)
        for version in ("base", "adapter 2")
        for words in (found.original, found.candidate)
    }
    assert len(made) == 4 * CONFIG.test_tasks
    test = found.test
    assert test.training.first == test.base_original.score
    assert test.training.second == test.trained_original.score
    assert test.both.effect == pytest.approx(
        (test.trained_evolved.score or 0) - (test.base_original.score or 0)
    )
    assert test.training.low > 0
    assert test.hint_reliance == pytest.approx(
        1 - (test.trained_original.score or 0) / (test.trained_evolved.score or 1), abs=1e-5
    )


def test_what_the_run_says_is_what_its_folder_says(whole):
    _, found, folder = whole
    assert read_training(folder) == found
    assert tuple(folder.lines("checkpoints", Checkpoint).read()) == found.checkpoints
    assert tuple(folder.lines("steps", StepFigures).read()) == found.steps
    assert tuple(folder.lines("generations", Generation).read()) == found.generations
    assert added_up(list(folder.lines("stages", Stage).read())) == found.stages
    names = [(one.name, one.generation) for one in found.stages]
    assert names == [
        ("warm start", None),
        ("baseline", 0),
        ("evolve", 0),
        ("train", 0),
        ("validation", 1),
        ("evolve", 1),
        ("train", 1),
        ("validation", 2),
        ("test", None),
    ]
    assert found.rollouts == sum(one.rollouts for one in found.generations) <= found.budget


def test_a_finished_run_is_shown_and_nothing_is_made(whole, monkeypatch: pytest.MonkeyPatch):
    _, found, folder = whole
    before = (folder.path / "rollouts.jsonl").stat().st_size
    broken = Trainer(stop_at="begin 0")
    install(broken, monkeypatch)
    again = seal.train(parcels(), "local:x", config=CONFIG, options=TrainOptions(out=folder.path))
    assert again == found
    assert (folder.path / "rollouts.jsonl").stat().st_size == before


def test_a_run_that_starts_over_keeps_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small = changed(evolve=CONFIG.evolve.model_copy(update={"budget": 0}), test_tasks=3)
    options = TrainOptions(out=tmp_path)
    install(Trainer(), monkeypatch)
    seal.train(parcels(), "local:x", config=small, options=options)
    fake = Trainer()
    install(fake, monkeypatch)
    options = TrainOptions(out=tmp_path, fresh=True)
    found = seal.train(parcels(), "local:x", config=small, options=options)
    assert fake.begun == [0, 1, 2]
    assert len(found.steps) == len(list(RunFolder(tmp_path).lines("steps", StepFigures).read()))
    assert (tmp_path / "previous" / "adapter").is_dir()


def test_without_a_budget_the_words_stay_and_two_cells_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake = Trainer()
    install(fake, monkeypatch)
    small = changed(evolve=CONFIG.evolve.model_copy(update={"budget": 0}))
    found = seal.train(parcels(), "local:x", config=small, options=TrainOptions(out=tmp_path))
    assert found.generations == ()
    assert (found.candidate, found.rollouts) == (found.original, 0)
    assert set(fake.words) == {found.original}
    assert found.test.trained_evolved == found.test.trained_original
    assert (found.test.words.effect, found.test.hint_reliance) == (0.0, 0.0)


def test_a_policy_that_only_got_worse_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(Trainer(skills=("expert", "lost", "novice")), monkeypatch)
    small = changed(evolve=CONFIG.evolve.model_copy(update={"budget": 0}), test_tasks=9)
    found = seal.train(parcels(), "local:x", config=small, options=TrainOptions(out=tmp_path))
    assert found.best == 0
    assert (found.test.training.effect, found.test.training.pairs) == (0.0, 9)
    assert found.test.trained_original == found.test.base_original
    assert (tmp_path / "adapter" / "adapter_model.safetensors").read_text() == "0"


def checkpoint(number: int, score: float | None) -> Checkpoint:
    validation = ScoreSummary(score=score, low=score, high=score, scored=1, total=1, bound=score)
    return Checkpoint(number=number, steps=0, policy_version="", validation=validation)


@pytest.mark.parametrize(
    ("scores", "best"),
    [((0.2, 0.3, 0.1), 1), ((0.2, 0.2), 1), ((0.2, 0.1), 0), ((None, None), 1), ((0.1, None), 0)],
)
def test_of_equal_checkpoints_the_last_is_the_best(scores, best):
    assert best_of([checkpoint(number, score) for number, score in enumerate(scores)]) == best


def test_when_the_budget_is_spent_training_goes_on_under_the_words_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake = Trainer()
    install(fake, monkeypatch)
    small = changed(evolve=CONFIG.evolve.model_copy(update={"budget": 50}), test_tasks=3)
    found = seal.train(parcels(), "local:x", config=small, options=TrainOptions(out=tmp_path))
    [generation] = found.generations
    assert generation.reason == "the budget is spent"
    assert len(fake.words) == 4
    assert found.rollouts <= 50


@pytest.mark.parametrize("model", ["sim:novice", "gold", "openai/gpt-4o-mini", "replay:runs/x"])
def test_only_local_models_can_be_trained(model: str):
    with pytest.raises(ConfigError, match="only local models can be trained") as caught:
        seal.train(parcels(), model)
    assert f"seal evolve ENV -m {model}" in str(caught.value)
    assert not Path("runs").exists()


@pytest.mark.train
def test_what_could_come_to_no_result_is_refused_before_it_begins():
    with pytest.raises(ConfigError, match=r"no such key\.\nDid you mean 'beta'"):
        check_work(parcels(), changed(train=CONFIG.train.model_copy(update={"trl": {"bta": 1}})))
    with pytest.raises(ConfigError, match="one generation begins with 30 rollouts"):
        check_work(parcels(), changed(evolve=CONFIG.evolve.model_copy(update={"budget": 9})))


def test_a_run_of_another_command_is_not_read_as_a_training(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.finish({"score": 1.0})
    with pytest.raises(ConfigError, match="no result of `seal train` can be read here"):
        read_training(folder)


def test_a_setting_that_is_too_small_is_named_as_set_takes_it():
    gate = CONFIG.evolve.gate.model_copy(update={"scenarios": 3})
    config = changed(evolve=CONFIG.evolve.model_copy(update={"gate": gate}))
    with pytest.raises(ConfigError, match=r"(?s)evolve\.gate\.scenarios=3: .*--set evolve\.gate\."):
        check_work(parcels(), config)
    config = changed(evolve=CONFIG.evolve.model_copy(update={"budget": 5}))
    with pytest.raises(ConfigError, match=r"(?s)evolve\.budget=5: .*lower evolve\.profile_tasks"):
        check_work(parcels(), config)
