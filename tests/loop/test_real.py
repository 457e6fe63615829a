"""The loop with the real trainer, a random model in miniature, and replies that are handed out."""

import importlib.util
import os
from pathlib import Path

import pytest

import seal
from seal.config import LoopConfig, LoopSearchConfig, TrainConfig, WarmStartConfig
from seal.envs.template import EnvironmentTemplate
from seal.loop.outcome import StepFigures, Training
from seal.loop.run import Silent, TrainOptions
from tests.factories import write_environment
from tests.models.small import save_adapter, save_small_llama
from tests.train.bell import TOML, TOOL, WORLD, hand_out, task, words_of

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, trl, peft)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]

CONFIG = LoopConfig(
    warm_start=WarmStartConfig(enabled=False),
    train=TrainConfig(generations=2, steps=2, groups=2, group_size=4, max_tokens=24, rate=0.01),
    evolve=LoopSearchConfig(budget=0),
    validation_tasks=4,
    test_tasks=4,
)


class Deadly(Silent):
    """Ends the process at a step."""

    def step(self, figures: StepFigures) -> None:
        if figures.step == 3:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentTemplate:
    splits = ["train"] * 6 + ["validation"] * 4 + ["test"] * 4
    rows = [{**task(number), "split": split} for number, split in enumerate(splits)]
    folder = tmp_path_factory.mktemp("bell") / "bell"
    write_environment(folder, toml=TOML, world=WORLD, tools={"ring": TOOL}, slots="", tasks=rows)
    return seal.load_environment(folder)


@pytest.fixture(scope="module")
def model(template: EnvironmentTemplate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_llama(tmp_path_factory.mktemp("model") / "small", words_of(template))


def run(template, model: Path, out: Path, watch=None) -> Training:
    options = TrainOptions(out=out)
    return seal.train(template, f"local:{model}", config=CONFIG, options=options, watch=watch)


@pytest.fixture
def handed_out(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer

    hand_out(monkeypatch, AutoTokenizer.from_pretrained(model))


@pytest.mark.usefixtures("handed_out")
def test_a_killed_run_ends_as_one_that_was_not_and_its_adapter_loads(template, model, tmp_path):
    from safetensors.torch import load_file

    from seal.models.weights import open_local_policy

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    found = run(template, model, whole)
    with pytest.raises(KeyboardInterrupt):
        run(template, model, killed, Deadly())
    again = run(template, model, killed)
    assert again.model_dump(exclude={"stages"}) == found.model_dump(exclude={"stages"})
    for name in ("checkpoints.jsonl", "steps.jsonl", "grpo.jsonl"):
        lines = [(out / name).read_text(encoding="utf-8").splitlines() for out in (whole, killed)]
        assert len(lines[0]) == len(lines[1]), name

    weights = [load_file(out / "adapter" / "adapter_model.safetensors") for out in (whole, killed)]
    assert all((weights[0][key] == weights[1][key]).all() for key in weights[0])
    assert len({one.policy_version for one in found.checkpoints}) > 1, "training moves weights"
    assert [one.rollouts for one in found.steps] == [8] * 4
    assert any(one.figures["mixed_groups"] for one in found.steps)

    base = open_local_policy(found.base)
    trained = open_local_policy(f"{found.base}+{whole / 'adapter'}")
    assert base.version != trained.version
    of_test = {task.id for task in template.tasks("test")}
    versions = {r.policy_version for r in records(whole) if r.task in of_test}
    assert versions == ({base.version, trained.version} if found.best else {base.version})
    assert found.test.base_original.total == len(of_test)


@pytest.mark.usefixtures("handed_out")
def test_an_adapter_that_a_model_comes_with_is_trained_on(template, model, tmp_path):
    from safetensors.torch import load_file

    start = save_adapter(model, tmp_path / "start")
    config = CONFIG.model_copy(
        update={"train": CONFIG.train.model_copy(update={"generations": 1, "steps": 3})}
    )
    out = tmp_path / "run"
    found = seal.train(
        template, f"local:{model}+{start}", config=config, options=TrainOptions(out=out)
    )
    assert found.base == f"local:{model}+{start}"
    assert {r.policy for r in records(out)} <= {found.base, f"local:{model}+{out / 'adapter'}"}
    given, first, last = (
        load_file(folder / "adapter_model.safetensors")
        for folder in (start, out / "trainer" / "generation-0", out / "trainer" / "generation-1")
    )
    assert given.keys() == first.keys() == last.keys()
    assert all((given[key] == first[key]).all() for key in given)
    assert any((given[key] != last[key]).any() for key in given), "training moves weights"


def records(out: Path):
    from seal.records import RunFolder
    from seal.types import Rollout

    return list(RunFolder(out).lines("rollouts", Rollout).read())
