"""What `seal show RUN` prints: a run's rollouts, and one of them turn by turn with its labels."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seal.cli.console import print_json_line, print_line, print_table
from seal.cli.runs import label, rollout_line

if TYPE_CHECKING:
    from seal.types import DiagnosedRollout, Diagnosis, Rollout, Turn


def show_run(path: Path, *, task: str | None, as_json: bool) -> None:
    """The rollouts of a run; with a task, its rollouts turn by turn with their labels.

    Raises:
        ConfigError: The run has no rollout of this task.
    """
    from seal.diagnose.run import diagnose_rollouts, environment_of
    from seal.errors import ConfigError, did_you_mean
    from seal.records import RunFolder

    folder = RunFolder(path)
    settings = folder.settings()
    rollouts = folder.rollouts()
    if task is None:
        _print_rollouts(rollouts, path, as_json=as_json, command=settings["command"])
        return
    chosen = [rollout for rollout in rollouts if task in (rollout.task, rollout.id)]
    if not chosen:
        known = {rollout.task for rollout in rollouts}
        raise ConfigError(
            f"{path}: no rollout of task '{task}'.\n"
            f"List them with: seal show {path}{did_you_mean(task, known)}"
        )
    template = environment_of(folder)
    for rollout in chosen:
        # One by one: versions of a policy have rollouts of the same id.
        diagnosed = next(iter(diagnose_rollouts(template, folder, [rollout])), None)
        if as_json:
            shown = diagnosed.model_dump(mode="json") if diagnosed else None
            print_json_line({**rollout.model_dump(mode="json"), "diagnosed": shown})
            continue
        for line in rollout_lines(rollout, diagnosed, version=settings["command"] == "train"):
            print_line(line)


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
        made: dict[tuple[str, ...], list[float]] = {}
        for rollout in rollouts:
            key = (rollout.policy_version, rollout.candidate)[-len(kinds) :]
            made.setdefault(key, []).append(rollout.reward or 0.0)
        table = [[*key, len(each), f"{sum(each) / len(each):.3f}"] for key, each in made.items()]
        columns = ["rollouts", "mean reward"]
        print_table([*kinds, *columns], table, right=columns)
    print_line(f"Show a task's rollouts with: seal show {path} --task TASK")


def rollout_lines(
    rollout: "Rollout", diagnosed: "DiagnosedRollout | None", *, version: bool = False
) -> Iterator[str]:
    """A rollout turn by turn, each label beside the turn it belongs to."""
    reward = "unscored" if rollout.reward is None else f"reward {rollout.reward:g}"
    policy = label(rollout.policy)
    policy += f" version {rollout.policy_version}" if version else ""
    yield f"{rollout.id}  {policy}  candidate {rollout.candidate}  {reward}"
    if rollout.failure:
        yield f"  broke: {rollout.failure}"
    for index, turn in enumerate(rollout.turns):
        yield f"  turn {index}  user: {turn.user}"
        yield from _turn_lines(turn)
        for diagnosis in diagnosed.diagnoses if diagnosed else ():
            if diagnosis.turn == index:
                fault = diagnosed is not None and diagnosis == diagnosed.fault
                yield f"    {'>>' if fault else '--'} {diagnosis_text(diagnosis)}"
    for check in rollout.score.checks:
        if not check.passed:
            yield f"  check failed: {check.name}"
            yield f"    expected {check.expected or 'it to hold'}"
            yield f"    found    {check.found or 'that it does not'}"


def _turn_lines(turn: "Turn") -> Iterator[str]:
    for step in turn.steps:
        if step.content:
            yield f"    agent: {step.content}"
        for call, result in zip(step.calls, step.results, strict=True):
            yield f"    {call.tool}{call.arguments}"
            yield f"      {'failed: ' if result.error else ''}{result.content}"
    if turn.stop != "answered":
        yield f"    stopped: {turn.stop}"


def diagnosis_text(diagnosis: "Diagnosis") -> str:
    """One diagnosis in a line."""
    where = ".".join(part for part in (diagnosis.tool, diagnosis.argument) if part)
    parts = [f"{diagnosis.kind.value}{f' {where}' if where else ''}"]
    if diagnosis.code:
        parts.append(f"({diagnosis.code})")
    if diagnosis.expected:
        parts.append(f"expected {diagnosis.expected}")
    if diagnosis.found:
        parts.append(f"found {diagnosis.found}")
    if diagnosis.recovered:
        parts.append("recovered")
    if diagnosis.slot and diagnosis.kind.blames:
        parts.append(f"[{diagnosis.slot}]")
    return "  ".join(parts)
