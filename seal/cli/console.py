"""What commands print: the answer on stdout, progress on stderr.

Piped output is plain: no colour, no boxes, and no wrapping, since there is no width to wrap at.
"""

import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, NoReturn, TextIO, TypeVar

from seal.report.text import legible

if TYPE_CHECKING:
    from seal.types import Record

_WIDE = 10_000
_LONG_SECONDS = 2.0
_ANSWERS: list[TextIO] = []
"""The stdout of each command that runs."""
C = TypeVar("C", bound=Callable[..., None])


def answering(command: C) -> C:
    """Keep stdout and the exit code for a command's answer, whatever an author's code does.

    What that prints goes to stderr, and it cannot end the command, which would say yes by that.
    """

    @wraps(command)
    def run(*given: object, **options: object) -> None:
        _ANSWERS.append(sys.stdout)
        sys.stdout = sys.stderr
        end = os._exit
        os._exit = partial(_end, os.getpid(), end)
        try:
            command(*given, **options)
        finally:
            os._exit = end
            sys.stdout = _ANSWERS.pop()

    return run  # type: ignore[return-value]


def _end(command: int, end: Callable[[int], NoReturn], status: int) -> NoReturn:
    """`os._exit` of other processes than the command's own; there it is as `sys.exit`."""
    if os.getpid() == command:
        raise SystemExit(status)
    end(status)


def answer() -> TextIO:
    """Where the answer goes."""
    return _ANSWERS[-1] if _ANSWERS else sys.stdout


def print_line(text: str = "") -> None:
    """One line of the answer, or several."""
    answer().write(f"{legible(text)}\n")
    answer().flush()


def print_wrapped(text: str, indent: str) -> None:
    """A text under an indent, each of its lines wrapped with the rest further in.

    A word that is longer than the width stays whole, so that a name can be copied.
    """
    for line in legible(text).split("\n"):
        wrapped = textwrap.wrap(
            line,
            _width(),
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        answer().write("".join(f"{part}\n" for part in wrapped or [""]))
    answer().flush()


def print_json_line(value: "Mapping[str, object] | Record") -> None:
    """One JSON object on a line of its own; what is not legible is escaped as JSON does it."""
    plain = dict(value) if isinstance(value, Mapping) else value.model_dump(mode="json")
    text = json.dumps(plain, ensure_ascii=False)
    if legible(text) != text or not _can_write(text):
        text = json.dumps(plain)
    answer().write(f"{text}\n")
    answer().flush()


def _can_write(text: str) -> bool:
    """Whether the answer's encoding has all letters of a text."""
    try:
        text.encode(answer().encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()
) -> None:
    """A table without lines; columns named in `right` are flush right, as figures are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        side = "right" if column in right else "left"
        table.add_column(column, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(legible(str(cell))) for cell in row))
    console = Console(width=_width(), highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    answer().write("".join(f"{line}\n" for line in lines))


def _width() -> int:
    """The width asked for by $COLUMNS, else the terminal's; a pipe has none."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size().columns if answer().isatty() else _WIDE


def note(text: str, *, quiet: bool = False) -> None:
    """One line on stderr, about the work and not the answer."""
    if not quiet:
        sys.stderr.write(f"{legible(text)}\n")
        sys.stderr.flush()


@contextmanager
def progress(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show work on stderr: a bar on a terminal, else one line when long work has ended.

    What it gives is called with the number of pieces that are newly done.
    """
    done = 0
    start = time.monotonic()
    if quiet or not sys.stderr.isatty():

        def count(pieces: int = 1) -> None:
            nonlocal done
            done += pieces

        yield count
        seconds = time.monotonic() - start
        if seconds > _LONG_SECONDS:
            note(f"{what}: {done} in {seconds:.0f} s", quiet=quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        work = bar.add_task(legible(what), total=total)
        yield lambda pieces=1: bar.advance(work, pieces)  # type: ignore[misc]
