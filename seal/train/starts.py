"""Warm starts, kept in the user's cache: the same model, environment and settings train once.

A warm start teaches reading on other convention seeds of the environment. What comes of it is a
folder that `-m local:` opens. It appears by rename when it is complete, under a name that changes
with whatever went into it.
"""

import fcntl
import hashlib
import inspect
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from seal.config import WarmStartConfig
from seal.envs.template import EnvironmentTemplate
from seal.errors import ConfigError, StorageFailure
from seal.models.weights import TINY, split_name, use_one_thread, weights_version
from seal.records import write_json
from seal.resources import cache_folder, resource_folder
from seal.train.corpus import RECOVERY, Corpus
from seal.train.lora import PRETRAINED, warm_start_adapter
from seal.train.resume import ResumePoint
from seal.train.warmstart import WarmStartSettings, train_tiny
from seal.types import content_hash

RECIPE = 14
"""Counts changes of how a warm start trains; what it trains on is noticed without it."""
FIRST_LESSON_SEED = 1000
"""Convention seeds from here on are for lessons."""
_ABOUT = "warm_start.json"
"""The file by which a folder is known to be a warm start."""
_SOURCES = {".jinja", ".jsonl", ".py", ".toml"}
_TEXTS = 300
"""Lessons that the tiny policy's tokenizer is learned from."""
_STALE_S = 7 * 24 * 3600


class Watch(Protocol):
    """What wants to know how a warm start is going."""

    def stage(self, text: str) -> None:
        """Something else began."""
        ...

    def lesson(self, step: int, total: int, loss: float) -> None:
        """The model learned from one step's lessons, steps counted from 1."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """The policy that training begins with."""

    name: str
    """As after `-m`."""
    folder: Path | None
    """What the warm start made; None if there was none."""
    cached: bool
    """Whether nothing had to be trained."""


def warm_start(
    model: str, template: EnvironmentTemplate, config: WarmStartConfig, watch: Watch
) -> Start:
    """The warm-started policy of a model in an environment, trained unless it is in the cache.

    A model that comes with an adapter, or in a folder that a warm start left, is taken as it is.

    Args:
        model: `local:NAME_OR_PATH[+ADAPTER]`.
        template: The environment that will be trained on. Lessons are of other convention seeds.
        config: How long and how fast.
        watch: Is told how it goes.

    Raises:
        ConfigError: There is no such model, or the environment has nothing to teach reading with.
        MissingExtra: torch, transformers or peft are not installed.
        StorageFailure: The cache cannot be written.
    """
    path, adapter = split_name(model)
    if adapter or (Path(path) / _ABOUT).is_file():
        return Start(model, Path(adapter or path), cached=True)
    if not config.enabled:
        if path == TINY:
            raise ConfigError(
                f"-m {model}: the tiny policy has no weights before its warm start.\n"
                "Leave warm_start.enabled as it is (true), or name another model."
            )
        return Start(model, None, cached=True)
    plan = _plan(path, template, config)
    name = f"local:{plan.folder}" if path == TINY else f"local:{path}+{plan.folder}"
    if plan.folder.is_dir():
        return Start(name, plan.folder, cached=True)
    with _only_one(plan.folder, watch):
        if plan.folder.is_dir():
            return Start(name, plan.folder, cached=True)
        _make(path, plan, watch)
    return Start(name, plan.folder, cached=False)


@dataclass(frozen=True, slots=True)
class _Plan:
    folder: Path
    corpus: Corpus
    settings: WarmStartSettings
    about: dict[str, object]
    """All that decides what comes of it."""


def _plan(path: str, template: EnvironmentTemplate, config: WarmStartConfig) -> _Plan:
    _refuse_without_conventions(template)
    settings = settings_of(path, config)
    seeds = lesson_seeds(template.convention_seed, config.conventions)
    about: dict[str, object] = {
        "model": path,
        "weights": TINY if path == TINY else weights_version(path),
        "environment": template.manifest.name,
        "files": _source_hash(template),
        "lessons": _lessons_hash(template.folder, seeds),
        "seeds": content_hash(seeds),
        "recipe": RECIPE,
        "settings": asdict(settings),
    }
    short = "".join(letter if letter.isalnum() else "-" for letter in Path(path).name)
    key = f"{short}-{template.manifest.name}-{content_hash(about)}"
    corpus = Corpus(template.folder, seeds)
    return _Plan(cache_folder() / "starts" / key, corpus, settings, about)


def settings_of(path: str, config: WarmStartConfig) -> WarmStartSettings:
    """What is None in a configuration, as it suits the model."""
    usual = WarmStartSettings() if path == TINY else PRETRAINED
    given = {
        name: value
        for name in usual.__slots__
        if (value := getattr(config, name, None)) is not None
    }
    return replace(usual, **given)


def lesson_seeds(own: int, count: int) -> list[int]:
    """So many convention seeds, the environment's own left out."""
    seeds = range(FIRST_LESSON_SEED, FIRST_LESSON_SEED + count + 1)
    return [seed for seed in seeds if seed != own][:count]


def _refuse_without_conventions(template: EnvironmentTemplate) -> None:
    if template.conventions and template.generated:
        return
    what = (
        "its tasks stand in a file, the same under all conventions"
        if template.conventions
        else "it draws no conventions"
    )
    raise ConfigError(
        f"{template.name}: {what}, so a warm start would teach its rules and not to read them.\n"
        "Train from a model as it is with: --set warm_start.enabled=false\n"
        "Or let the environment draw its conventions from a seed, and generate its tasks."
    )


def _source_hash(template: EnvironmentTemplate) -> str:
    """A hash of the files that make the environment and the words around it."""
    files = [path for path in template.folder.rglob("*") if path.suffix in _SOURCES]
    files += resource_folder("env_templates").glob("_*.jinja")
    world = inspect.getsourcefile(template.world)
    files += [Path(world)] if world else []
    digest = hashlib.sha256()
    for name, content in sorted((path.name, path.read_bytes()) for path in set(files)):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def _lessons_hash(folder: Path, seeds: Sequence[int]) -> str:
    """A hash of some lessons: it changes with whatever lessons are composed by."""
    corpus, rng = Corpus(folder, seeds[:4]), random.Random("some lessons")
    pieces = [corpus.lesson(rng, 2).pieces for _ in range(6)]
    pieces += [corpus.lesson(rng, 2, mode=RECOVERY).pieces, corpus.correction_drill(rng, 4)]
    for _ in range(12):
        pieces.append(corpus.drills(rng, 4, messages=0.5)())
    return content_hash([[asdict(piece) for piece in lesson] for lesson in pieces])


def _make(path: str, plan: _Plan, watch: Watch) -> None:
    """Train, and put the whole folder in its place."""
    partial = plan.folder.with_name(f".{plan.folder.name}.partial")
    partial.mkdir(exist_ok=True)
    made = partial / "made"
    settings = plan.settings
    resume = ResumePoint(partial / "resume.pt")

    def report(step: int, loss: float) -> None:
        watch.lesson(step + 1, settings.steps, loss)

    if path == TINY:
        from seal.models.tiny import tiny_model, tiny_tokenizer

        use_one_thread()
        watch.stage("composing lessons")
        tokenizer = tiny_tokenizer(plan.corpus.texts(random.Random(1), _TEXTS))
        model = tiny_model(len(tokenizer), seed=settings.seed)
        train_tiny(model, tokenizer, plan.corpus, settings, report, resume)
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
    else:
        warm_start_adapter(path, made, plan.corpus, settings, report, resume)
    write_json(made / _ABOUT, plan.about)
    made.rename(plan.folder)
    shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _only_one(folder: Path, watch: Watch) -> Iterator[None]:
    """Hold the lock on a warm start; wait if another process is making it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        with folder.with_name(f".{folder.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                watch.stage("another process is making this warm start: waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as cause:
        raise StorageFailure(
            f"{folder.parent}: {cause.strerror or cause}.\n"
            "SEAL keeps warm starts there; free some space, make it writable, or choose another "
            "with $SEAL_CACHE.\nThe same command goes on where it stopped."
        ) from cause


def _remove_stale(folder: Path) -> None:
    """Remove what other warm starts left half done and nobody went on with."""
    for path in folder.parent.glob(".*.partial"):
        if time.time() - path.stat().st_mtime > _STALE_S and path.name != f".{folder.name}.partial":
            shutil.rmtree(path, ignore_errors=True)
