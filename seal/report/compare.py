"""`compare`: two runs of the same tasks, as a paired difference with its interval."""

from pathlib import Path

from seal.errors import ConfigError
from seal.records import RunFolder
from seal.rollout.scores import PairedSummary, paired
from seal.types import Rollout


def compare(first: str | Path, second: str | Path) -> PairedSummary:
    """The mean reward difference over shared (task, sample) pairs, second minus first.

    Raises:
        ConfigError: One is no finished `seal run`, or they are of other environments or tasks.
    """
    a, b = _run(Path(first)), _run(Path(second))
    contracts = [one.settings()["contract"] for one in (a, b)]
    if contracts[0] != contracts[1]:
        raise ConfigError(
            f"{a.path} and {b.path} are of different contracts ({contracts[0]}, {contracts[1]}): "
            "their tasks are not the same.\n"
            "Compare runs of one environment, with one convention seed."
        )
    sides: list[list[Rollout]] = [one.rollouts() for one in (a, b)]
    shared = {r.id for r in sides[0]} & {r.id for r in sides[1]}
    if not shared:
        raise ConfigError(
            f"{a.path} and {b.path} share no task.\nRun both with the same --split and -n."
        )
    return paired(sides[0], sides[1])


def _run(path: Path) -> RunFolder:
    folder = RunFolder(path)
    command = folder.settings().get("command")
    if command != "run":
        own = "report" if command == "train" else "log"
        raise ConfigError(
            f"{path}: made by `seal {command}`, not by `seal run`.\n"
            f"It holds its own comparison: seal {own} {path}"
        )
    return folder
