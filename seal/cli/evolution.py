"""`seal evolve`, and the lineage: `seal log`, `seal diff`, `seal promote`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seal.cli import options
from seal.cli.console import note, print_json_line, print_line, print_table
from seal.cli.generations import Announcer, print_evolution, print_generation
from seal.cli.runs import note_budget, note_spend, policy_of, spent_before, workers_for

if TYPE_CHECKING:
    from seal.config import SearchConfig
    from seal.evolve.evidence import Rewriter
    from seal.evolve.lineage import Generation
    from seal.models.budget import Budget
    from seal.records import RunFolder

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an evolve or a train run.")]


def evolve(
    env: options.Env,
    model: options.Model,
    base_url: options.BaseUrl = None,
    rewriter: options.Rewriter = None,
    rewriter_model: options.RewriterModel = None,
    rewriter_base_url: Annotated[
        str | None,
        typer.Option("--rewriter-base-url", metavar="URL", help="Where it is not --base-url."),
    ] = None,
    jobs: options.Jobs = 4,
    seed: options.Seed = 0,
    out: options.Out = None,
    config: options.Config = None,
    settings: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    fresh: options.Fresh = False,
) -> None:
    """Generations of rewrites within a budget; exit 1 if nothing was accepted."""
    from seal.config import EvolveConfig, load_config
    from seal.envs.registry import load_environment
    from seal.evolve.run import EvolveOptions, describe, gate_power
    from seal.evolve.run import evolve as improve
    from seal.models.budget import Budget
    from seal.records import default_folder
    from seal.rollout.agent import Arena
    from seal.rollout.batch import RolloutSettings
    from seal.types import Sampling

    chosen = load_config(EvolveConfig, config, settings or [])
    template = load_environment(env)
    budget = Budget(chosen.dollars)
    policy = policy_of(model, base_url, chosen.model, budget)
    proposer = rewriter_of(rewriter, rewriter_model, rewriter_base_url or base_url, chosen, budget)
    sampling = Sampling(temperature=chosen.model.temperature, max_tokens=chosen.model.max_tokens)
    rollouts = RolloutSettings(seed=seed, sampling=sampling, workers=workers_for(policy, jobs))
    wanted = EvolveOptions(rollouts=rollouts, out=out, fresh=fresh)
    details = describe(Arena(template), policy, proposer, chosen, wanted)
    folder = wanted.out = out or default_folder("evolve", template.name, details)
    scenarios, gain = gate_power(template, chosen)
    if not fresh:
        budget.charge(spent_before(folder))
    note_budget(policy, budget, quiet=quiet)
    note(f"budget: {chosen.budget} rollouts, and the test split once at the end", quiet=quiet)
    note(
        f"gate: up to {scenarios} scenarios a test; the first finds a gain of {gain:+.2f} "
        "with 80% power",
        quiet=quiet,
    )
    with Announcer(as_json=json, quiet=quiet) as watch:
        found = improve(
            template, policy, rewriter=proposer, config=chosen, options=wanted, watch=watch
        )
    print_evolution(found, template.original.texts, folder, as_json=json)
    note_spend(found.usage + found.rewriter_usage, quiet=quiet)
    if not found.original_score.scored:
        note("nothing could be scored; see the failures with: seal show " + f"{folder} --json")
        raise typer.Exit(3)
    raise typer.Exit(0 if found.changed else 1)


def rewriter_of(
    name: options.RewriterName | None,
    model: str | None,
    base_url: str | None,
    config: "SearchConfig",
    budget: "Budget",
) -> "Rewriter":
    """The rewriter that the options name.

    Raises:
        ConfigError: The options contradict each other.
    """
    from seal.errors import ConfigError
    from seal.evolve.offline import OfflineRewriter

    if name is options.RewriterName.OFFLINE or (name is None and model is None):
        if model is not None:
            raise ConfigError(
                f"--rewriter offline takes no model, and --rewriter-model {model} is given.\n"
                "Leave one of them out."
            )
        return OfflineRewriter()
    if model is None:
        raise ConfigError(
            "--rewriter dspy needs a model to write with.\n"
            "Name one, such as: --rewriter-model openai/gpt-4o-mini"
        )
    from seal.evolve.program import DSPyRewriter
    from seal.models.litellm import open_language_model

    client = open_language_model(model, config.rewriter, base_url=base_url, budget=budget)
    client.check()
    return DSPyRewriter(client)


def _opened(run: Path) -> "tuple[RunFolder, list[Generation]]":
    """A run in which words evolved, and its generations.

    Raises:
        ConfigError: There is no run here, or it is of another command.
    """
    from seal.errors import ConfigError
    from seal.evolve.lineage import Generation
    from seal.records import RunFolder

    folder = RunFolder(run)
    command = folder.settings().get("command")
    if command not in ("evolve", "train"):
        raise ConfigError(
            f"{run}: made by `seal {command}`, which has no lineage.\n"
            "A lineage comes from: seal evolve ENV -m MODEL"
        )
    return folder, list(folder.lines("generations", Generation).read())


def log(run: Run, json: options.Json = False) -> None:
    """The generations of an evolve or train run, with every patch and test."""
    folder, generations = _opened(run)
    for generation in generations:
        if json:
            print_json_line(generation)
        else:
            print_generation(generation)
    if json:
        accepted = sum(generation.accepted for generation in generations)
        finished = folder.finished
        print_json_line(
            {"generations": len(generations), "accepted": accepted, "finished": finished}
        )
        return
    if not generations:
        print_line(f"{run}: no generation is finished yet")
    if not folder.finished:
        print_line("This run is unfinished; the command that began it resumes it.")


def diff(
    run: Run,
    first: Annotated[
        str, typer.Argument(metavar="[A]", help="original, final, a generation, or an id.")
    ] = "original",
    second: Annotated[str, typer.Argument(metavar="[B]", help="The same; final by default.")] = (
        "final"
    ),
    json: options.Json = False,
) -> None:
    """What candidate B says and A does not, slot by slot; exit 1 if they are the same."""
    from seal.cli.words import candidate_of
    from seal.evolve.lineage import changed_slots, diff_lines

    folder, _ = _opened(run)
    a, b = candidate_of(folder, first), candidate_of(folder, second)
    slots = changed_slots(a, b)
    for slot in slots:
        before, after = a.texts.get(slot, ""), b.texts.get(slot, "")
        if json:
            print_json_line({"slot": slot, "before": before, "after": after})
            continue
        print_line(slot)
        for line in diff_lines(before, after):
            print_line(f"  {line}")
    if json:
        print_json_line({"first": a.id, "second": b.id, "changed": len(slots)})
    else:
        print_line(f"{len(slots)} slots differ between {a.id} and {b.id}")
        if not folder.finished:
            print_line("This run is unfinished; the command that began it resumes it.")
    raise typer.Exit(0 if slots else 1)


def promote(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A slots.toml elsewhere."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make the evolved words the author's own: write them into the environment's slots.toml."""
    from seal.cli.words import candidate_of
    from seal.diagnose.run import environment_of
    from seal.envs.template import seed_texts_toml
    from seal.errors import ConfigError
    from seal.evolve.lineage import changed_slots
    from seal.records import write_text

    folder, _ = _opened(run)
    template = environment_of(folder)
    if not folder.finished:
        raise ConfigError(
            f"{run}: this run is unfinished: what is in force now may still be taken back.\n"
            "The command that began it resumes it; promote its words then."
        )
    if out is None and template.original.id != folder.settings()["candidate"]:
        raise ConfigError(
            f"{template.folder / 'slots.toml'}: edited since this run began; its words were tested "
            "against the earlier ones.\nEvolve again, or write elsewhere with --out FILE."
        )
    evolved = candidate_of(folder, "final")
    changed = changed_slots(template.original, evolved)
    if template.conventions and out is None:
        raise ConfigError(
            f"{template.name} draws conventions from a seed: words that earned their place under "
            f"seed {template.convention_seed} need not hold under others.\n"
            "Write them elsewhere with: seal promote " + f"{run} --out slots.toml"
        )
    target = out or template.folder / "slots.toml"
    if changed:
        if target.is_file():
            before = folder.path / "slots.before.toml"
            write_text(before, target.read_text(encoding="utf-8"))
            note(f"what {target} said before is kept in {before}")
        write_text(target, seed_texts_toml(evolved))
    if json:
        print_json_line({"changed": changed, "file": str(target), "candidate": evolved.id})
    elif changed:
        print_line(f"{len(changed)} slots written to {target}")
        print_table(
            ["slot", "text"], [[slot, evolved.texts[slot] or "(empty)"] for slot in changed]
        )
    else:
        print_line("Nothing to promote: the run kept the original words.")
    raise typer.Exit(0 if changed else 1)
