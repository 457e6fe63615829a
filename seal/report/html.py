"""`report`: a run folder as one HTML file that needs nothing else and runs nothing.

All text in it (words, what tools and models said, evolved text) is untrusted. It enters the
template as values and is escaped there, and the page forbids itself scripts and whatever lies
outside of it.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from seal.errors import ConfigError
from seal.records import RunFolder, write_text
from seal.report import wording
from seal.report.evolve_story import EvolveStory, evolve_story
from seal.report.run_story import RunStory, run_story
from seal.report.text import legible
from seal.report.train_story import TrainStory, train_story

_TEMPLATES = Path(__file__).resolve().parent
_PAGES: dict[type, str] = {
    RunStory: "run.html.jinja",
    EvolveStory: "evolve.html.jinja",
    TrainStory: "train.html.jinja",
}


def write_report(run: Path, out: Path | None = None) -> Path:
    """Write the report of a run folder, `report.html` in it by default.

    The page is the same whenever it is made: it holds no date and no path of this machine.

    Raises:
        ConfigError: There is no such run, nothing in it yet, or a record cannot be read.
        StorageFailure: The page could not be written.
    """
    page = render(story_of(RunFolder(run)))
    path = out or run / "report.html"
    write_text(path, page)
    return path


Story = RunStory | EvolveStory | TrainStory


def story_of(folder: RunFolder) -> Story:
    """What a run folder has to tell."""
    command = folder.settings().get("command")
    if command == "run":
        return run_story(folder)
    if command == "evolve":
        return evolve_story(folder)
    if command == "train":
        return train_story(folder)
    raise ConfigError(
        f"{folder.path}: made by `seal {command}`, which has no report.\n"
        "Reports are made of folders that `seal run`, `seal evolve` or `seal train` wrote."
    )


def render(story: Story) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legible,
    )
    environment.filters |= {
        "figure": wording.figure,
        "signed": wording.signed,
        "tick": wording.tick,
        "percent": wording.percent,
        "amount": wording.amount,
        "money": wording.money,
        "clipped": wording.clipped,
        "name_parts": wording.name_parts,
        "meaning": wording.MEANING.__getitem__,
    }
    return environment.get_template(_PAGES[type(story)]).render(story=story)


def _legible(value: object) -> object:
    """What is printed into the page, hidden marks spelt out; markup is the page's own."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
