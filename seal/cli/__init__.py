"""The command line: reads options, calls one function of the library, prints what came of it.

Exit codes: 0 yes; 1 the answer is no; 2 your input; 3 outside (a model, an environment, the disk);
130 interrupted. Commands load what they need when they run, so that `seal --help` stays quick.
"""

import errno
import io
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import typer

from seal.cli import diagnosis, environments, evolution, options, report, runs, training
from seal.cli.console import answering
from seal.errors import SealError
from seal.report.text import legible

INTERRUPTED = 130
_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
"""What the system says of a path that can name nothing: it is the user's to write another."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def seal(version: options.Version = False, debug: options.Debug = False) -> None:
    """Agents and the words of their learning environments evolve together."""


app.command("new")(answering(environments.new))
app.command("check")(answering(environments.check))
app.command("show")(answering(environments.show))
app.command("run")(answering(runs.run))
app.command("diagnose")(answering(diagnosis.diagnose))
app.command("compare")(answering(runs.compare))
app.command("evolve")(answering(evolution.evolve))
app.command("log")(answering(evolution.log))
app.command("diff")(answering(evolution.diff))
app.command("promote")(answering(evolution.promote))
app.command("train")(answering(training.train))
app.command("report")(answering(report.report))
app.command("fetch")(answering(environments.fetch))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is the answer.

    `--debug` counts wherever it stands before a `--`, so that it can be added to the end of the
    line that failed.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options_end = given.index("--") if "--" in given else len(given)
    debug = "--debug" in given[:options_end]
    given = [word for place, word in enumerate(given) if place > options_end or word != "--debug"]
    # What a shell has closed (`>&-`) is nowhere to write to, and no reason to stop.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter shows its number, and the command goes on.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(given)
        sys.stdout.flush()
    except SealError as error:
        return _tell(error, error.exit_code, debug=debug)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        # The reader has seen enough. Python would try once more to flush, at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Of what a user named, or of the disk: too long a name, a folder that may not be entered.
        place = f"{error.filename}: " if error.filename is not None else ""
        said = f"{place}{error.strerror or error}.\nSee where with: --debug"
        return _tell(error, 2 if error.errno in _NAMES else 3, debug=debug, text=said)
    except Exception as error:  # noqa: BLE001 - the last place to say it in one sentence
        what = f"{type(error).__name__}: {error}\nThis is SEAL's own fault. See where with: --debug"
        return _tell(error, 3, debug=debug, text=what)
    return _interrupted() if code == INTERRUPTED else code


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _tell(error: Exception, code: int, *, debug: bool, text: str = "") -> int:
    """Say an error in its own words; they may hold those of strangers."""
    if debug:
        traceback.print_exception(error)
    sys.stderr.write(f"seal: {legible(text or str(error))}\n")
    return code


def _interrupted() -> int:
    sys.stderr.write("seal: interrupted; what was done is kept. The same command resumes.\n")
    sys.stderr.flush()
    own = threading.main_thread(), threading.current_thread()
    if any(not thread.daemon for thread in threading.enumerate() if thread not in own):
        # Calls under way would be waited for at exit; what they bring is made again on resuming.
        os._exit(INTERRUPTED)
    return INTERRUPTED


def _run(given: list[str]) -> int:
    try:
        app(given, prog_name="seal")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
