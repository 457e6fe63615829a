"""`seal run` and `seal compare`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seal.cli import options
from seal.cli.console import note, print_json_line, print_line, print_table, progress

if TYPE_CHECKING:
    from seal.config import ModelConfig
    from seal.models.budget import Budget
    from seal.models.protocol import Policy
    from seal.rollout.run import RunResult
    from seal.types import Rollout, Usage


def run(
    env: options.Env,
    model: options.Model,
    base_url: options.BaseUrl = None,
    split: options.Split = options.SplitName.TRAIN,
    limit: options.Limit = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, metavar="N", help="Rollouts of every task.")
    ] = 1,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="RUN|RUN/ID|FILE", help="The words in force."),
    ] = None,
    strict_abstention: Annotated[
        bool,
        typer.Option("--strict-abstention", help="A call fails a turn where gold makes none."),
    ] = False,
    jobs: options.Jobs = 4,
    seed: options.Seed = 0,
    out: options.Out = None,
    config: options.Config = None,
    settings: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    fresh: options.Fresh = False,
) -> None:
    """Roll a policy out on the tasks of a split; the same command again resumes."""
    from seal.cli.words import chosen_candidate
    from seal.config import RunConfig, load_config
    from seal.envs.registry import load_environment
    from seal.models.budget import Budget
    from seal.records import default_folder
    from seal.rollout.agent import Arena
    from seal.rollout.batch import RolloutSettings
    from seal.rollout.run import RunSettings, describe
    from seal.rollout.run import run as roll_out
    from seal.types import Sampling

    chosen = load_config(RunConfig, config, settings or [])
    template = load_environment(env)
    budget = Budget(chosen.dollars)
    policy = policy_of(model, base_url, chosen.model, budget)
    words = chosen_candidate(template, candidate)
    sampling = Sampling(temperature=chosen.model.temperature, max_tokens=chosen.model.max_tokens)
    wanted = RunSettings(
        split=split.chosen,
        limit=limit,
        samples=samples,
        rollouts=RolloutSettings(seed=seed, sampling=sampling, workers=workers_for(policy, jobs)),
        candidate=words,
        strict_abstention=strict_abstention,
    )
    details = describe(Arena(template, words), policy, wanted)
    folder = out or default_folder("run", template.name, details)
    if not fresh:
        budget.charge(spent_before(folder))
    note_budget(policy, budget, quiet=quiet)
    with progress(f"rolling out {policy.name} on {template.name}", quiet=quiet) as advance:
        result = roll_out(
            template, policy, wanted, out=folder, fresh=fresh, progress=counter(advance)
        )
    print_run(result, policy.name, folder, as_json=json)
    note_spend(result.usage, quiet=quiet)
    if result.summary.score is None:
        raise typer.Exit(3)


def policy_of(
    model: str, base_url: str | None, config: "ModelConfig", budget: "Budget"
) -> "Policy":
    """The policy that `-m` names."""
    from seal.models.registry import open_policy

    return open_policy(model, base_url=base_url, config=config, budget=budget)


def workers_for(policy: "Policy", jobs: int) -> int:
    """Threads help where a policy waits for a server; the others compute."""
    return jobs if spends(policy) else 1


def note_budget(policy: "Policy", budget: "Budget", *, quiet: bool) -> None:
    """Say what may be spent, before anything is."""
    if not spends(policy):
        return
    if budget.dollars is None:
        note(f"{policy.name}: no limit; set one with --set dollars=AMOUNT", quiet=quiet)
    elif not getattr(policy, "price_known", True):
        note(
            f"{policy.name}: at most ${budget.dollars:g}, but what this model costs is not known: "
            "the limit cannot bind",
            quiet=quiet,
        )
    else:
        note(f"{policy.name}: at most ${budget.dollars:g}", quiet=quiet)


def spent_before(path: Path) -> float:
    """Dollars that a run folder's rollouts and proposals have cost so far."""
    from seal.evolve.ledger import Proposals
    from seal.records import RunFolder
    from seal.types import Rollout

    folder = RunFolder(path)
    lines = (folder.lines("rollouts", Rollout), folder.lines("proposals", Proposals))
    return float(sum(one.usage.dollars for each in lines for one in each.read()))


def spends(policy: "Policy") -> bool:
    """Whether a policy is a model on a server."""
    return "/" in policy.name and not policy.name.startswith(("replay:", "local:"))


def note_spend(usage: "Usage", *, quiet: bool) -> None:
    """Say what was spent, last."""
    if usage.calls:
        note(
            f"spent: ${usage.dollars:.4f}, {usage.calls} calls, "
            f"{usage.prompt_tokens} + {usage.completion_tokens} tokens",
            quiet=quiet,
        )


def counter(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """From rollouts done so far to rollouts newly done; those of an earlier process are none.

    Work on several runs, one after the other, begins anew with each.
    """
    last: list[int] = []

    def count(done: int, _total: int) -> None:
        if last and done > last[0]:
            advance(done - last[0])
        last[:] = [done]

    return count


def label(policy: str) -> str:
    """A policy's name; simulated ones are always labelled so."""
    return f"{policy} (simulated)" if policy.startswith("sim:") else policy


def print_run(result: "RunResult", policy: str, folder: Path, *, as_json: bool) -> None:
    """The score of a run."""
    from seal.rollout.run import summary_json

    if as_json:
        for rollout in result.rollouts:
            print_json_line(rollout_line(rollout))
        print_json_line({**summary_json(result), "policy": policy, "run": str(folder)})
        return
    summary = result.summary
    counts = {r.group: 0 for r in result.rollouts}
    for rollout in result.rollouts:
        counts[rollout.group] += rollout.reward is not None
    rows = [[name, counts[name], f"{score:.3f}"] for name, score in summary.groups.items()]
    print_line(f"{result.rollouts[0].environment}  {label(policy)}")
    print_table(["group", "scored", "score"], rows, right=["scored", "score"])
    print_line(score_line(summary.score, summary.low, summary.high))
    print_line(f"{summary.scored} of {summary.total} scored{_unscored(result)}{_apart(result)}")
    print_line(f"run folder: {folder}")


def score_line(score: float | None, low: float | None, high: float | None) -> str:
    """A score with its interval."""
    if score is None or low is None or high is None:
        return "score: none, nothing was scored"
    return f"score {score:.3f}, 95% interval {low:.3f} to {high:.3f} by scenario"


def _unscored(result: "RunResult") -> str:
    summary = result.summary
    if summary.scored == summary.total:
        return ""
    first = next(r.failure for r in result.rollouts if r.failure)
    why = str(first).splitlines()[0]
    counted = ""
    if summary.bound is not None:
        counted = f" with the unscored counted as failures {summary.bound:.3f};"
    return f";{counted} the first: {why}"


def _apart(result: "RunResult") -> str:
    """Tasks that are left out, and those that are in with a doubt."""
    parts = []
    if result.quarantined:
        parts.append(f"{result.quarantined} quarantined tasks left out")
    if result.suspect:
        parts.append(f"{len(result.suspect)} suspect ones among them")
    return "".join(f"; {part}" for part in parts)


def rollout_line(rollout: "Rollout") -> dict[str, Any]:
    """A rollout without its turns, as `--json` prints it."""
    return {
        "rollout": rollout.id,
        "task": rollout.task,
        "scenario": rollout.scenario,
        "group": rollout.group,
        "reward": rollout.reward,
        "failure": rollout.failure,
    }


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another, of the same tasks.")],
    json: options.Json = False,
) -> None:
    """The paired difference of two runs, second minus first; exit 1 if it is not above zero."""
    from seal.report.compare import compare as difference

    found = difference(first, second)
    if json:
        print_json_line(found)
    else:
        rows = [
            [path, *_made_with(path), f"{score:.3f}"]
            for path, score in ((first, found.first), (second, found.second))
        ]
        print_table(["run", "policy", "candidate", "split", "score"], rows, right=["score"])
        if found.left_out:
            print_line(f"on the {found.shared} rollouts of both; {found.left_out} are in one alone")
        print_line(difference_line(found.effect, found.low, found.high, found.pairs))
        if found.unscored:
            undecided = ": undecided, that is more than 2%" if found.undecided else ""
            print_line(f"{found.unscored} scenarios unscored on one side{undecided}")
    raise typer.Exit(0 if found.low > 0 and not found.undecided else 1)


def _made_with(path: Path) -> list[str]:
    from seal.records import RunFolder

    settings = RunFolder(path).settings()
    return [label(settings["policy"]), settings["candidate"], settings["split"]]


def difference_line(effect: float, low: float, high: float, pairs: int) -> str:
    """A paired difference with its interval."""
    return f"difference {effect:+.3f}, 95% interval {low:+.3f} to {high:+.3f}, {pairs} scenarios"
