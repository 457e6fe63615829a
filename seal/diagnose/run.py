"""`diagnose`: the diagnoses of a run folder, kept beside its rollouts."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.diagnose.profile import Profile, build_profile
from seal.diagnose.rules import diagnose_rollout
from seal.envs import EnvironmentTemplate, load_environment
from seal.envs.verify import GoldReplays, environment_hash
from seal.errors import ConfigError
from seal.records import RunFolder, write_json
from seal.types import SPLITS, Candidate, DiagnosedRollout, Rollout, Task


@dataclass(frozen=True, slots=True)
class RunDiagnosis:
    """What went wrong in a run."""

    diagnosed: tuple[DiagnosedRollout, ...]
    profile: Profile
    misfits: int = 0
    """Rollouts that are left out: no task of the environment can have come to them."""
    torn: bool = False
    """Whether the last rollout is half written, and left out."""


def environment_of(folder: RunFolder) -> EnvironmentTemplate:
    """The environment that a run was made with.

    Raises:
        ConfigError: It is another one now: its contract has changed since.
    """
    template, settings = template_of(folder), made_with(folder)
    found = environment_hash(template)
    if found != settings["contract"]:
        run = shlex.quote(str(folder.path))
        raise ConfigError(
            f"{folder.path}: made with {settings['environment']} of contract "
            f"{settings['contract']}; its contract is {found} now.\n"
            "Tools, rules, tasks or world have changed since. Run it again with --fresh.\n"
            f"If only the verdict was mended: seal diagnose {run} --rescore"
        )
    return template


def template_of(folder: RunFolder) -> EnvironmentTemplate:
    """The environment of a run as it is today, changed or not."""
    return load_environment(_reference(made_with(folder)))


def made_with(folder: RunFolder) -> dict[str, Any]:
    """The settings of a run, those that every command writes being texts.

    Raises:
        ConfigError: There is no run here, or one of these is missing.
    """
    settings = folder.settings()
    for name in ("command", "environment", "folder", "contract", "candidate"):
        if not isinstance(settings.get(name), str):
            found = f"{settings[name]!r} is no text" if name in settings else "is missing"
            raise ConfigError(
                f"{folder.settings_path}: {name} {found}.\n"
                "Restore the file, or make the run again with --fresh."
            )
    return settings


def _reference(settings: dict[str, str]) -> str:
    """The environment as the user named it: a shipped name, or its folder; with its seed."""
    _, at, seed = settings["environment"].partition("@")
    return f"{settings['folder']}{at}{seed}"


def diagnose(
    run: str | Path, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> RunDiagnosis:
    """Diagnose every rollout of a run folder, and write `diagnoses.jsonl` and `profile.json`.

    Of a run in which words evolved, the rollouts of train tasks: a profile is never of the others,
    and the one that the search has built stays.

    Raises:
        ConfigError: There is no run or no rollout here, or its environment has changed since.
    """
    folder = RunFolder(Path(run))
    template, command = environment_of(folder), made_with(folder)["command"]
    rollouts = folder.rollouts()
    if not rollouts:
        raise ConfigError(
            f"{folder.path}: no rollout yet, so there is nothing to diagnose.\n"
            f"Run the same `seal {command}` command again: it resumes."
        )
    torn = _torn(folder.lines("rollouts", Rollout).path)
    evolved = command in ("evolve", "train")
    if evolved:
        train = {task.id for task in template.tasks("train")}
        rollouts = [rollout for rollout in rollouts if rollout.task in train]
    found = diagnose_rollouts(template, folder, rollouts, progress)
    folder.lines("diagnoses", DiagnosedRollout).rewrite(found)
    profile = build_profile([found], template.original.id)
    if not evolved:
        write_json(folder.path / "profile.json", {"seal": 1, **profile.model_dump(mode="json")})
    return RunDiagnosis(tuple(found), profile, misfits=len(rollouts) - len(found), torn=torn)


def _torn(path: Path) -> bool:
    """Whether the last line of a file has no end: its writer was killed, or writes it now."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def diagnose_rollouts(
    template: EnvironmentTemplate,
    folder: RunFolder,
    rollouts: Sequence[Rollout],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[DiagnosedRollout]:
    """The diagnoses of a folder's rollouts, in their order; misfits have none."""
    gold, finder = GoldReplays(template), TaskFinder(template)
    candidates: dict[str, Candidate] = {}
    found = []
    progress(0, len(rollouts))
    for number, rollout in enumerate(rollouts, start=1):
        if rollout.candidate not in candidates:
            candidates[rollout.candidate] = folder.candidate(rollout.candidate)
        words = candidates[rollout.candidate]
        task = finder.find(rollout.task)
        if task and not misfit(task, rollout):
            found.append(diagnose_rollout(template, gold, task, words, rollout))
        progress(number, len(rollouts))
    return found


def misfit(task: Task, rollout: Rollout) -> str:
    """Why a record cannot be a rollout of a task, empty if it can."""
    made, wanted = len(rollout.turns), len(task.turns)
    if made > wanted or (made < wanted and rollout.failure is None):
        return f"it has {made} turns, and its task {wanted} now"
    steps = (step for turn in rollout.turns for step in turn.steps)
    return (
        ""
        if all(len(step.calls) == len(step.results) for step in steps)
        else "a call has no result"
    )


class TaskFinder:
    """Tasks of an environment by their ids, generated ones beyond its splits included."""

    def __init__(self, template: EnvironmentTemplate) -> None:
        self._template = template
        self._known = {task.id: task for task in template.tasks(None)}

    def find(self, task_id: str) -> Task | None:
        """The task of this id; None if there is none."""
        return self._known.get(task_id) or self._fresh(task_id)

    def _fresh(self, task_id: str) -> Task | None:
        """A generated task beyond the splits' own scenarios, as the gate draws them."""
        split, _, rest = task_id.partition("-")
        index = rest.partition("-")[0]
        if not self._template.generated or split not in SPLITS or not index.isdecimal():
            return None
        drawn = self._template.scenario(split, int(index))
        return next((task for task in drawn if task.id == task_id), None)
