"""`seal train`: the whole loop, and what came of it."""

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seal.cli import options
from seal.cli.console import note, print_json_line, print_line, print_table
from seal.cli.evolution import rewriter_of
from seal.cli.generations import Announcer, score_row
from seal.cli.runs import note_spend, spent_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seal.config import LoopConfig
    from seal.envs.template import EnvironmentTemplate
    from seal.evolve.lineage import Generation, Patch
    from seal.loop.outcome import Checkpoint, StepFigures, Training
    from seal.rollout.scores import PairedSummary, ScoreSummary

_TENTHS = 10
"""Lines that a warm start leaves where there is no terminal."""


def train(
    env: options.Env,
    model: Annotated[
        str,
        typer.Option(
            "-m", "--model", metavar="MODEL", help="local:tiny, local:smollm2, local:FOLDER."
        ),
    ],
    rewriter: options.Rewriter = None,
    rewriter_model: options.RewriterModel = None,
    rewriter_base_url: Annotated[
        str | None,
        typer.Option("--rewriter-base-url", metavar="URL", help="The server of that model."),
    ] = None,
    seed: options.Seed = 0,
    out: options.Out = None,
    config: options.Config = None,
    settings: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    fresh: options.Fresh = False,
) -> None:
    """Train a local policy while the words it reads evolve; the same command resumes."""
    from seal.config import LoopConfig, load_config
    from seal.envs.registry import load_environment
    from seal.loop.run import TrainOptions, check_work, describe, work_ahead
    from seal.loop.run import train as co_evolve
    from seal.models.budget import Budget
    from seal.records import RunFolder, default_folder
    from seal.report.html import write_report

    chosen = load_config(LoopConfig, config, settings or [])
    template = load_environment(env)
    budget = Budget(chosen.evolve.dollars)
    proposer = rewriter_of(rewriter, rewriter_model, rewriter_base_url, chosen.evolve, budget)
    folder = out or default_folder(
        "train", template.name, describe(template, model, proposer, chosen, seed)
    )
    finished = not fresh and RunFolder(folder).finished
    if not fresh:
        budget.charge(spent_before(folder))
    work = work_ahead(template, chosen)
    if not finished:
        check_work(template, chosen)
        note(f"run folder: {folder}", quiet=quiet)
        _note_work(template, chosen, work, quiet=quiet)
    with (
        TrainingAnnouncer(work, as_json=json, quiet=quiet) as watch,
        warnings.catch_warnings(),
    ):
        # Notes of the libraries that train to their own developers.
        warnings.simplefilter("ignore", FutureWarning)
        found = co_evolve(
            template,
            model,
            rewriter=proposer,
            config=chosen,
            options=TrainOptions(seed=seed, out=folder, fresh=fresh),
            watch=watch,
        )
    page = write_report(folder)
    _print_training(found, RunFolder(folder).path, page, as_json=json)
    if not finished:
        made = sum(step.rollouts for step in found.steps)
        tokens = sum(step.figures.get("sampled_tokens", 0.0) for step in found.steps)
        note(f"spent: {made} rollouts, {tokens:,.0f} tokens sampled to train on", quiet=quiet)
        note_spend(found.usage + found.rewriter_usage, quiet=quiet)
    if found.test.trained_original.score is None:
        note(f"nothing could be scored; see the failures with: seal show {folder} --json")
        raise typer.Exit(3)


def _note_work(
    template: "EnvironmentTemplate",
    config: "LoopConfig",
    work: "Mapping[str, int]",
    *,
    quiet: bool,
) -> None:
    """Say what the run will do at most, before it does anything."""
    from seal.envs.suspects import without_suspects
    from seal.envs.verify import GoldReplays
    from seal.evolve.run import gate_power
    from seal.train.tasks import trainable

    tasks = template.tasks("train")
    certain = without_suspects(template, GoldReplays(template), tasks)
    if suspect := len(tasks) - len(certain):
        note(f"train: {suspect} suspect tasks left out, whose gold is in doubt", quiet=quiet)
    kept, left_out = trainable(certain)
    if left_out:
        note(
            f"train: {len(kept)} of {len(kept) + len(left_out)} tasks; the tools of the others "
            "change between turns, and no one prompt holds such a dialogue",
            quiet=quiet,
        )
    note(
        f"rollouts: {work['train']} in {work['steps']} GRPO steps, at most {work['evolve']} to "
        f"evolve the words, {work['validation']} on validation, at most {work['test']} on test",
        quiet=quiet,
    )
    if config.evolve.budget:
        scenarios, gain = gate_power(template, config.evolve)
        note(
            f"gate: up to {scenarios} scenarios a test; the first finds a gain of {gain:+.2f} "
            "with 80% power",
            quiet=quiet,
        )


class TrainingAnnouncer(Announcer):
    """Says on stderr how a training run is going; with `--json`, its records on stdout."""

    def __init__(self, work: "Mapping[str, int]", *, as_json: bool, quiet: bool) -> None:
        super().__init__(as_json=as_json, quiet=quiet)
        self._work = work
        self._text = ""
        self._done = 0
        self._since = time.monotonic()

    def stage(self, text: str) -> None:
        """A new stage began."""
        self._text, self._done, self._since = text, 0, time.monotonic()
        self.show(text, also_plain=True)

    def lesson(self, step: int, total: int, loss: float) -> None:
        """The warm start learned from one step's lessons."""
        text = f"warm start: step {step} of {total}, loss {loss:.2f}"
        tenth = step * _TENTHS // total > (step - 1) * _TENTHS // total
        self.show(text, also_plain=tenth)

    def advance(self, rollouts: int) -> None:
        """So many more rollouts of the stage were made."""
        self._done += rollouts
        self.show(f"{self._text}: {self._done} rollouts", also_plain=False)

    def generation(self, generation: "Generation") -> None:
        """The search of a generation is over."""
        if self._json:
            print_json_line({"record": "generation", **generation.model_dump(mode="json")})
            return
        ended = f"; {generation.reason}" if generation.reason else ""
        self.say(f"generation {generation.index}: {_evolved_text(generation)}{ended}")
        for patch in generation.patches:
            self.say(f"  {patch.verdict}: {patch.slot}")

    def step(self, figures: "StepFigures") -> None:
        """The rollouts of a GRPO step are made and weighed."""
        if self._json:
            print_json_line({"record": "step", **figures.model_dump(mode="json")})
        self.say(f"step {figures.step + 1} of {self._work['steps']}: {step_text(figures.figures)}")

    def checkpoint(self, checkpoint: "Checkpoint") -> None:
        """The policy was evaluated at a boundary."""
        if self._json:
            print_json_line({"record": "checkpoint", **checkpoint.model_dump(mode="json")})
        name = f"checkpoint {checkpoint.number}" if checkpoint.number else "baseline"
        self.say(f"{name}: validation score {_score_text(checkpoint.validation)}")
        if checkpoint.number == 0 and self._done:
            pace = (time.monotonic() - self._since) / self._done
            rollouts = sum(self._work[part] for part in ("evolve", "train", "validation", "test"))
            minutes = pace * (rollouts - self._done) / 60
            self.say(f"at this pace, at most {minutes:.0f} min of rollouts are to come")


def step_text(figures: "Mapping[str, float]") -> str:
    """The figures of a step that a reader wants first."""
    parts = [f"mean score {figures['mean_score']:.3f}"] if "mean_score" in figures else []
    if "mixed_groups" in figures:
        parts.append(f"rewards differ in {figures['mixed_groups']:.0%} of groups")
    if "sampled_tokens" in figures:
        parts.append(f"{figures['sampled_tokens']:,.0f} tokens sampled")
    return ", ".join(parts)


def _score_text(summary: "ScoreSummary") -> str:
    if summary.score is None or summary.low is None or summary.high is None:
        return "none scored"
    return f"{summary.score:.3f} ({summary.low:.3f} to {summary.high:.3f})"


def _print_training(found: "Training", folder: Path, page: Path, *, as_json: bool) -> None:
    """Stages, patches, the four scores, and where everything is."""
    if as_json:
        print_json_line(_summary(found, folder, page))
        return
    print_line(f"{found.environment}  {found.policy}  rewriter {found.rewriter}")
    print_table(["stage", "what came of it", "seconds"], _stage_rows(found), right=["seconds"])
    print_line()
    rows = [
        [generation.index, patch.slot, patch.verdict, _behind(patch)]
        for generation in found.generations
        for patch in generation.patches
    ]
    if rows:
        print_table(["generation", "patch", "verdict", "by"], rows)
    else:
        print_line("no patch was proposed")
    print_line()
    _print_scores(found)
    print_line()
    if not found.changed:
        print_line("no rewrite is in force in the end: the evolved words are the original ones")
    if found.best == 0:
        print_line("no checkpoint scored as high as the base policy on validation: it is kept")
    print_line(f"base policy:    -m {found.base}")
    print_line(f"trained policy: -m {trained_name(found, folder)}")
    if found.changed:
        print_line(f"{len(found.changed)} slots changed; see them with: seal diff {folder}")
    print_line(f"report: {page}")
    print_line(f"run folder: {folder}")


def _behind(patch: "Patch") -> str:
    """What a patch's verdict rests on."""
    return patch.support or patch.reason.removeprefix(f"{patch.verdict}: ")


def _print_scores(found: "Training") -> None:
    test = found.test
    rows = [
        [policy, *score_row(words, summary)]
        for policy, words, summary in (
            ("base", "original", test.base_original),
            ("base", "evolved", test.base_evolved),
            ("trained", "original", test.trained_original),
            ("trained", "evolved", test.trained_evolved),
        )
    ]
    columns = ["policy", "words", "test score", "95% interval", "scored"]
    print_table(columns, rows, right=["test score", "scored"])
    differences = [
        ("training: trained over base, original words", test.training),
        ("words: evolved over original, base policy", test.words),
        ("words: evolved over original, trained policy", test.trained_words),
        ("both: trained with evolved over base with original", test.both),
    ]
    print_table(
        ["difference", "effect", "95% interval", "scenarios"],
        [[name, *_difference(paired)] for name, paired in differences],
        right=["effect", "scenarios"],
    )


def _difference(paired: "PairedSummary") -> list[object]:
    undecided = " (undecided)" if paired.undecided else ""
    interval = f"{paired.low:+.3f} to {paired.high:+.3f}{undecided}"
    return [f"{paired.effect:+.3f}", interval, paired.pairs]


def _stage_rows(found: "Training") -> list[list[object]]:
    """Every stage with what came of it."""
    generations = {generation.index: generation for generation in found.generations}
    rows: list[list[object]] = []
    for stage in found.stages:
        number = stage.generation
        text = ""
        if stage.name == "warm start":
            text = found.base
        elif stage.name in ("baseline", "validation") and number is not None:
            text = f"validation score {_score_text(found.checkpoints[number].validation)}"
            text += ", the best" if number == found.best else ""
        elif stage.name == "evolve" and number is not None:
            text = _evolved_text(generations.get(number))
        elif stage.name == "train":
            text = _trained_text(found, number)
        elif stage.name == "test":
            text = f"{found.test.base_original.total} tasks, read once"
        rows.append([_stage_name(stage.name, number), text, f"{stage.seconds:.0f}"])
    return rows


def _stage_name(name: str, number: int | None) -> str:
    if name == "validation":
        return f"checkpoint {number}"
    return f"generation {number}: {name}" if name in ("evolve", "train") else name


def _evolved_text(generation: "Generation | None") -> str:
    if generation is None:
        return "no search"
    verdicts = [patch.verdict for patch in generation.patches]
    retired = verdicts.count("retired")
    proposed = len(verdicts) - retired
    text = f"{verdicts.count('accepted')} of {proposed} patches accepted"
    for gate in generation.gates:
        if gate.test == "standing":
            said = "retired" if retired else "stand"
            text = f"{len(gate.slots)} earlier texts tested again: {said}; {text}"
    return f"{text}, {generation.rollouts} rollouts"


def _trained_text(found: "Training", number: int | None) -> str:
    steps = [step for step in found.steps if step.generation == number]
    scores = [step.figures.get("mean_score", 0.0) for step in steps]
    if not scores:
        return ""
    made = sum(step.rollouts for step in steps)
    many = f"{len(steps)} step{'s' * (len(steps) != 1)}"
    return f"{many}, {made} rollouts, mean score {scores[0]:.3f} to {scores[-1]:.3f}"


def trained_name(found: "Training", folder: Path) -> str:
    """The trained policy as `-m` takes it."""
    from seal.loop.run import ADAPTER
    from seal.models.weights import split_name

    return f"local:{split_name(found.base)[0]}+{folder / ADAPTER}"


def _summary(found: "Training", folder: Path, page: Path) -> dict[str, object]:
    test = found.test
    return {
        **test.trained_original.model_dump(),
        "gain": test.training.model_dump(),
        "base": {
            "original": test.base_original.model_dump(),
            "evolved": test.base_evolved.model_dump(),
        },
        "trained": {
            "original": test.trained_original.model_dump(),
            "evolved": test.trained_evolved.model_dump(),
        },
        "words_gain": test.words.model_dump(),
        "trained_words_gain": test.trained_words.model_dump(),
        "both_gain": test.both.model_dump(),
        "hint_reliance": test.hint_reliance,
        "best": found.best,
        "changed": list(found.changed),
        "candidate": found.candidate,
        "rollouts": found.rollouts,
        "base_policy": found.base,
        "trained_policy": trained_name(found, folder),
        "adapter": str(folder / "adapter"),
        "report": str(page),
        "run": str(folder),
    }
