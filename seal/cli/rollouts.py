"""What `seal show RUN` prints: a run's rollouts, and one of them turn by turn with its labels."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from seal.cli.console import note, print_json_line, print_line, print_table, print_wrapped
from seal.cli.runs import label, rollout_line

if TYPE_CHECKING:
    from seal.envs import EnvironmentTemplate
    from seal.errors import ConfigError
    from seal.records import RunFolder
    from seal.types import DiagnosedRollout, Diagnosis, Rollout, Turn


def show_run(path: Path, *, task: str | None, rollout: str | None, as_json: bool) -> None:
    """The rollouts of a run; with a task or an id, those rollouts with their labels.

    Where the environment is gone or another one now, rollouts have no labels, and it is said why.

    Raises:
        ConfigError: The run has no such rollout.
    """
    from seal.diagnose.run import made_with
    from seal.records import RunFolder

    folder = RunFolder(path)
    settings = made_with(folder)
    rollouts = folder.rollouts()
    if task is None and rollout is None:
        _print_rollouts(rollouts, path, as_json=as_json, command=settings["command"])
        return
    chosen = [one for one in rollouts if rollout in (None, one.id) and task in (None, one.task)]
    if not chosen:
        raise _none_such(path, rollouts, task, rollout)
    template = _environment(folder)
    for place, one in enumerate(chosen):
        diagnosed = _diagnosed(template, folder, one) if template else None
        if as_json:
            print_json_line({**one.model_dump(mode="json"), "diagnosed": _told(diagnosed)})
            continue
        if place:
            print_line()
        _print_rollout(one, diagnosed, version=settings["command"] == "train")


def _environment(folder: "RunFolder") -> "EnvironmentTemplate | None":
    """What a run was made with; None if it cannot be had, which is said."""
    from seal.diagnose.run import environment_of
    from seal.errors import SealError

    try:
        return environment_of(folder)
    except SealError as error:
        note(f"no labels: {error}")
        return None


def _diagnosed(
    template: "EnvironmentTemplate", folder: "RunFolder", rollout: "Rollout"
) -> "DiagnosedRollout | None":
    """The labels of a rollout; None if it cannot have any, which is said."""
    from seal.diagnose.run import diagnose_rollouts
    from seal.errors import SealError

    try:
        # One by one: versions of a policy have rollouts of the same id.
        found = diagnose_rollouts(template, folder, [rollout])
    except SealError as error:
        note(f"no labels: {error}")
        return None
    if not found:
        note(f"no labels: {rollout.id} fits no task of {template.name}.")
    return found[0] if found else None


def _none_such(
    path: Path, rollouts: "list[Rollout]", task: str | None, rollout: str | None
) -> "ConfigError":
    """What is said where a run has no such rollout: what is near, and how to see them all."""
    from seal.errors import ConfigError, did_you_mean

    names = {one.task for one in rollouts} if rollout is None else {one.id for one in rollouts}
    what = f"of task '{task}'" if rollout is None else f"'{rollout}'"
    if rollout is not None and task is not None:
        what += f" of task '{task}'"
    same_task = sorted(name for name in names if name.partition("#")[0] == rollout)
    near = f"\nRollouts of this task: {', '.join(same_task[:5])}." if same_task else ""
    return ConfigError(
        f"{path}: no rollout {what}; {len(rollouts)} are here.{near}\n"
        f"List them with: seal show {shlex.quote(str(path))}"
        f"{'' if near else did_you_mean(rollout or task or '', names)}"
    )


def _told(diagnosed: "DiagnosedRollout | None") -> "dict[str, object] | None":
    """The diagnoses as JSON, each with its sentence."""
    from seal.diagnose.sentences import sentence

    if diagnosed is None:
        return None
    each = [{**d.model_dump(mode="json"), "sentence": sentence(d)} for d in diagnosed.diagnoses]
    return {**diagnosed.model_dump(mode="json"), "diagnoses": each}


def _print_rollouts(rollouts: "list[Rollout]", path: Path, *, as_json: bool, command: str) -> None:
    """Every rollout in a line; of a run with many candidates, every candidate."""
    if as_json:
        for rollout in rollouts:
            shown = {"candidate": rollout.candidate, "policy_version": rollout.policy_version}
            print_json_line({**rollout_line(rollout), **shown})
        return
    if command == "run":
        rows = [
            [r.id, r.group, "unscored" if r.reward is None else f"{r.reward:g}"] for r in rollouts
        ]
        print_table(["rollout", "group", "reward"], rows, right=["reward"])
    else:
        # A policy in training has many versions, and each has rollouts of its own.
        kinds = ["policy version", "candidate"] if command == "train" else ["candidate"]
        made: dict[tuple[str, ...], list[float | None]] = {}
        for rollout in rollouts:
            key = (rollout.policy_version, rollout.candidate)[-len(kinds) :]
            made.setdefault(key, []).append(rollout.reward)
        columns = ["rollouts", "scored", "mean reward"]
        table = [[*key, *_mean_reward(rewards)] for key, rewards in made.items()]
        print_table([*kinds, *columns], table, right=columns)
    where = f"seal show {shlex.quote(str(path))}"
    if command != "run":
        print_line(f"List the rollouts with: {where} --json")
    print_line(f"Look at one with: {where} --rollout ID")


def _mean_reward(rewards: "list[float | None]") -> tuple[int, int, str]:
    """How many rollouts, how many of them are scored, and their mean: no other counts as 0."""
    scored = [reward for reward in rewards if reward is not None]
    return len(rewards), len(scored), f"{sum(scored) / len(scored):.3f}" if scored else "-"


def _print_rollout(
    rollout: "Rollout", diagnosed: "DiagnosedRollout | None", *, version: bool
) -> None:
    """A rollout turn by turn, each label under the turn it belongs to; `>>` marks the fault."""
    reward = "unscored" if rollout.reward is None else f"reward {rollout.reward:g}"
    policy = label(rollout.policy)
    policy += f" version {rollout.policy_version}" if version else ""
    print_line(f"{rollout.id}  {policy}  candidate {rollout.candidate}  {reward}")
    if rollout.failure:
        print_wrapped(f"broke: {rollout.failure}", "  ")
    for index, turn in enumerate(rollout.turns):
        print_wrapped(f"turn {index}  user: {turn.user}", "  ")
        _print_turn(turn)
        _print_labels(diagnosed, index)
    if not rollout.turns:
        _print_labels(diagnosed, 0)
    for check in rollout.score.checks:
        if not check.passed:
            print_wrapped(f"check failed: {check.name}", "  ")
            print_wrapped(f"expected {check.expected or 'it to hold'}", "    ")
            print_wrapped(f"found    {check.found or 'that it does not'}", "    ")


def _print_turn(turn: "Turn") -> None:
    for number, step in enumerate(turn.steps):
        if step.content:
            print_wrapped(f"agent: {step.content}", "    ")
        for call, result in zip(step.calls, step.results, strict=False):
            print_wrapped(f"step {number}  {call.tool}{call.arguments}", "    ")
            print_wrapped(f"{'failed: ' if result.error else ''}{result.content}", "      ")
    if turn.stop != "answered":
        print_wrapped(f"stopped: {turn.stop}", "    ")


def _print_labels(diagnosed: "DiagnosedRollout | None", turn: int) -> None:
    from seal.diagnose.sentences import sentence

    shown = [d for d in diagnosed.diagnoses if d.turn == turn] if diagnosed else []
    for diagnosis in dict.fromkeys(shown):
        fault = diagnosed is not None and diagnosis == diagnosed.fault
        print_wrapped(f"{'>>' if fault else '--'} {_headline(diagnosis)}", "    ")
        if diagnosis.kind not in _SAID_ALL:
            print_wrapped(sentence(diagnosis), "       ")
        if diagnosis.slot and diagnosis.kind.blames:
            print_wrapped(f"slot {diagnosis.slot}", "       ")


_SAID_ALL = ("pass", "correct_abstention")
"""Kinds to whose names a sentence would add nothing."""


def _headline(diagnosis: "Diagnosis") -> str:
    """Kind, tool and argument, and step of a diagnosis."""
    where = ".".join(part for part in (diagnosis.tool, diagnosis.argument) if part)
    suspect = diagnosis.kind == "unscorable" and diagnosis.code
    parts = [str(suspect or diagnosis.kind.value)]
    parts += [where] if where else []
    parts += [] if diagnosis.step is None else [f"step {diagnosis.step}"]
    return "  ".join(parts)
