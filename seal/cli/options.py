"""Options that several commands share, each with one meaning."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seal import __version__

if TYPE_CHECKING:
    from seal import types


class SplitName(StrEnum):
    """What `--split` takes."""

    TRAIN = "train"
    GATE = "gate"
    VALIDATION = "validation"
    TEST = "test"
    ALL = "all"

    @property
    def chosen(self) -> "types.Split | None":
        """The split, None for all of them: what `EnvironmentTemplate.tasks` takes."""
        from seal.types import SPLITS

        return next((split for split in SPLITS if split == self.value), None)


class RewriterName(StrEnum):
    """What `--rewriter` takes."""

    OFFLINE = "offline"
    DSPY = "dspy"


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"seal {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="After any command: show the traceback of an error.")
]
Env = Annotated[
    str, typer.Argument(metavar="ENV", help="A folder, a name, or name@CONVENTION_SEED.")
]
Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="gold, sim:novice|expert|lost, local:NAME, replay:RUN or a litellm name (openai/...).",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="An OpenAI-compatible server for the model."),
]
Split = Annotated[SplitName, typer.Option("--split", help="The tasks to use.")]
Limit = Annotated[
    int | None,
    typer.Option("-n", "--limit", min=1, metavar="N", help="At most this many tasks."),
]
Rewriter = Annotated[
    RewriterName | None,
    typer.Option("--rewriter", help="What proposes: dspy if a rewriter model is given."),
]
RewriterModel = Annotated[
    str | None,
    typer.Option("--rewriter-model", metavar="MODEL", help="A litellm name, for dspy."),
]
Jobs = Annotated[
    int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Rollouts at the same time.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of everything drawn.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="The run folder; found again by default."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in a TOML file.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated."),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object a line; the last one is the summary.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over what is in the run folder.")]
