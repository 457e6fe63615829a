"""`seal report`: a run as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from seal.cli import options
from seal.cli.console import note, print_json_line, print_line


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The page; RUN/report.html by default."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one self-contained HTML file about a run."""
    from seal.records import RunFolder
    from seal.report.html import write_report

    path = write_report(run, out)
    if not RunFolder(run).finished:
        note(f"{run}: this run is unfinished; the report is about what is there.", quiet=quiet)
    if json:
        print_json_line({"report": str(path)})
        return
    print_line(str(path))
