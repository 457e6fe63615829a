"""Warm starts in the cache: made once, whole or not at all, and never of what is tested on."""

import fcntl
import importlib.util
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seal.config import WarmStartConfig
from seal.envs.registry import load_environment
from seal.errors import ConfigError
from seal.resources import resource_folder
from seal.train import starts
from seal.train.corpus import Corpus
from seal.train.starts import lesson_seeds, settings_of, warm_start
from tests.factories import write_environment
from tests.models.small import save_small_llama

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, peft)",
)
pytestmark = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]
SHORT = WarmStartConfig(drill_steps=1, lesson_steps=1, recovery_steps=1, tokens=150, tasks=1)


@dataclass
class Watched:
    """What a warm start told, and a place to interrupt it."""

    steps: list[int] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    killed_at: int = -1

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def lesson(self, step: int, total: int, loss: float) -> None:
        assert 1 <= step <= total
        assert loss > 0
        if step == self.killed_at:
            raise KeyboardInterrupt
        self.steps.append(step)


@pytest.fixture(scope="module")
def template():
    return load_environment("rooms")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    corpus = Corpus(resource_folder("env_templates") / "rooms", range(1000, 1002))
    texts = corpus.texts(random.Random(0), 6)
    return save_small_llama(tmp_path_factory.mktemp("base"), texts)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(starts, "_TEXTS", 3)
    return tmp_path / "cache" / "starts"


def seen(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if not path.name.startswith(".")]


def test_tiny_learns_once_and_its_folder_is_a_policy(template, cache):
    from seal.models.weights import open_local_policy

    watch = Watched()
    made = warm_start("local:tiny", template, SHORT, watch)
    assert (made.cached, watch.steps) == (False, [1, 2, 3])
    assert made.name == f"local:{made.folder}"
    assert open_local_policy(made.name).name == made.name
    again = Watched()
    found = warm_start("local:tiny", template, SHORT, again)
    assert (found.name, found.cached, again.steps) == (made.name, True, [])
    assert seen(cache) == [made.folder.name]
    # Such a folder is not warm-started a second time.
    assert warm_start(made.name, template, SHORT, again).name == made.name
    assert again.steps == []


def test_a_pretrained_model_gets_an_adapter_in_a_folder(template, base):
    from seal.models.weights import open_local_policy

    watch = Watched()
    made = warm_start(f"local:{base}", template, SHORT, watch)
    assert watch.steps == [1, 2, 3]
    assert made.name == f"local:{base}+{made.folder}"
    assert open_local_policy(made.name).name == made.name
    assert warm_start(f"local:{base}", template, SHORT, watch).cached
    assert watch.steps == [1, 2, 3]
    # What comes with an adapter is warm-started already.
    assert warm_start(made.name, template, SHORT, watch).name == made.name


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_a_killed_warm_start_leaves_no_entry_and_is_made_up_for(template, base, cache, model):
    name = "local:tiny" if model == "tiny" else f"local:{base}"
    config = SHORT.model_copy(update={"drill_steps": 0})
    with pytest.raises(KeyboardInterrupt):
        warm_start(name, template, config, Watched(killed_at=2))
    assert seen(cache) == []
    made = warm_start(name, template, config, Watched())
    assert seen(cache) == [made.folder.name]
    assert not [path for path in cache.iterdir() if path.name.endswith(".partial")]


def test_a_second_process_waits_and_takes_what_the_first_made(template, cache):
    made = warm_start("local:tiny", template, SHORT, Watched())
    hidden = made.folder.rename(cache / "elsewhere")
    with (cache / f".{made.folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        class Waiting(Watched):
            def stage(self, text: str) -> None:
                """The first process is done."""
                assert "another process" in text
                hidden.rename(made.folder)
                fcntl.flock(lock, fcntl.LOCK_UN)

        watch = Waiting()
        found = warm_start("local:tiny", template, SHORT, watch)
    assert (found.name, found.cached, watch.steps) == (made.name, True, [])


def test_whatever_goes_into_a_warm_start_changes_its_name(template, base, monkeypatch):
    def key(model: str, template, config: WarmStartConfig) -> str:
        return starts._plan(model, template, config).folder.name

    found = [
        key("tiny", template, SHORT),
        key("tiny", template, SHORT.model_copy(update={"seed": 1})),
        key("tiny", template, SHORT.model_copy(update={"conventions": 200})),
        key("tiny", load_environment("rooms@1003"), SHORT),
        key(str(base), template, SHORT),
    ]
    monkeypatch.setattr(starts, "RECIPE", 0)
    found.append(key("tiny", template, SHORT))
    monkeypatch.undo()
    assert len(set(found)) == len(found)
    assert key("tiny", load_environment("rooms@3"), SHORT) == found[0]


def test_lessons_are_of_many_seeds_and_none_that_is_tested_on():
    for own in (0, 7, 1000, 1150, 1199):
        seeds = lesson_seeds(own, 200)
        assert len(set(seeds)) == 200
        assert own not in seeds
        assert max(seeds) < 500_000
    assert len(lesson_seeds(0, WarmStartConfig().conventions)) >= 200


def test_what_a_configuration_leaves_open_is_as_suits_the_model():
    tiny, other = (settings_of(name, WarmStartConfig()) for name in ("tiny", "smollm2"))
    assert other.drill_steps < tiny.drill_steps
    assert other.recovery_steps < tiny.recovery_steps
    assert settings_of("tiny", SHORT).tokens == 150
    assert settings_of("smollm2", SHORT.model_copy(update={"rate": 0.5})).rate == 0.5


def test_an_environment_without_conventions_would_be_learned_by_heart(tmp_path):
    lamp = load_environment(write_environment(tmp_path / "lamp"))
    with pytest.raises(ConfigError, match="no conventions") as caught:
        warm_start("local:tiny", lamp, WarmStartConfig(), Watched())
    assert "warm_start.enabled=false" in str(caught.value)


def test_without_a_warm_start_a_model_is_taken_as_it_is_and_tiny_is_none(template, base):
    config = WarmStartConfig(enabled=False)
    assert warm_start(f"local:{base}", template, config, Watched()).name == f"local:{base}"
    with pytest.raises(ConfigError, match="no weights before its warm start"):
        warm_start("local:tiny", template, config, Watched())
