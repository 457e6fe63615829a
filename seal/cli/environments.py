"""`seal new`, `seal check`, `seal show` and `seal fetch`: what authors of environments use."""

import shlex
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seal.cli import options
from seal.cli.console import answer, note, print_json_line, print_line

if TYPE_CHECKING:
    from seal.envs.environment import Quarantined
    from seal.envs.template import EnvironmentTemplate
    from seal.errors import SealError
    from seal.soundness import Facts, Finding

_SHOWN = 5
"""Problems of one claim that are printed; `--json` has all."""


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The new environment's name, or a folder's path.")
    ],
    json: options.Json = False,
) -> None:
    """Write an environment that is whole and sound, to be changed piece by piece."""
    from seal.envs.scaffold import author_lines, write_environment

    folder = Path(name)
    files = write_environment(folder)
    lines = {file.name: author_lines(file.read_text(encoding="utf-8")) for file in files}
    if json:
        print_json_line(
            {"folder": str(folder), "files": lines, "author_lines": sum(lines.values())}
        )
        return
    for file, count in zip(files, lines.values(), strict=True):
        print_line(f"{file}  length {count}, comments left out")
    print_line(f"next: seal check {shlex.quote(name)}")


def check(
    env: Annotated[
        list[str],
        typer.Argument(metavar="ENV", help="Folders, names, or name@CONVENTION_SEED."),
    ],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove environments sound, without a model."""
    codes = []
    # All names are looked up before any is checked: a misspelt one costs no wait.
    for place, (name, loaded) in enumerate([(name, _load(name)) for name in env]):
        if place and not json:
            print_line()
        # On a terminal the findings themselves show that work is going on.
        note(f"checking {name}", quiet=quiet or answer().isatty())
        codes.append(_check_one(name, loaded, as_json=json))
    raise typer.Exit(max(codes))


def _load(name: str) -> "EnvironmentTemplate | SealError":
    """The template with its tasks, or why the author's files do not make one."""
    from seal.envs.registry import load_environment
    from seal.envs.suspects import trusted_tasks
    from seal.errors import EnvironmentFailure, TemplateError

    try:
        template = load_environment(name)
        template.tasks(None)
        trusted_tasks(template)
    except (TemplateError, EnvironmentFailure) as error:
        return error
    return template


def _check_one(name: str, loaded: "EnvironmentTemplate | SealError", *, as_json: bool) -> int:
    """Print an environment's findings; the exit code."""
    from seal.errors import SealError
    from seal.soundness import check_environment, collect_facts, unloadable

    if isinstance(loaded, SealError):
        if not as_json:
            print_line(name)
        _print_all(name, [unloadable(loaded)], None, as_json=as_json)
        return loaded.exit_code
    quarantined = _quarantined(loaded)
    if not as_json:
        _print_header(loaded, quarantined)
    facts = collect_facts(loaded)
    findings = check_environment(loaded, facts)
    passed = _print_all(loaded.name, findings, facts, quarantined, _power(loaded), as_json=as_json)
    return 0 if passed else 1


def _power(template: "EnvironmentTemplate") -> tuple[int, float]:
    """The scenarios of an adoption test by the usual settings, and the gain that it would find."""
    from seal.config import SearchConfig
    from seal.evolve.run import gate_power

    return gate_power(template, SearchConfig())


def _print_header(template: "EnvironmentTemplate", quarantined: "tuple[Quarantined, ...]") -> None:
    """What there is, and what is known to be wrong with it."""
    tasks = template.tasks(None)
    print_line(
        f"{template.name}    {len(template.contract.tools)} tools    "
        f"{len(template.renderer.slots)} slots    {len(tasks)} tasks in "
        f"{len({task.scenario for task in tasks})} scenarios"
    )
    if quarantined:
        counts = Counter(one.status for one in quarantined)
        print_line(
            f"  quarantined: {counts['broken']} broken tasks, in no split; "
            f"{counts['suspect']} suspect ones, of which nothing is learned"
        )
    for (status, reason), group in groupby(quarantined, key=lambda one: (one.status, one.reason)):
        names = [one.task for one in group]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print_line(f"    {status:<8}{names[0]}{more}: {reason}")


def _quarantined(template: "EnvironmentTemplate") -> "tuple[Quarantined, ...]":
    """The tasks known to be broken, and all that are suspect."""
    import inspect

    from seal.envs.suspects import known_defects, suspects_among
    from seal.envs.time_limit import patience
    from seal.envs.verify import GoldReplays

    known = tuple(known_defects(template).values())
    listed = {one.task for one in known}
    others = (task for task in template.tasks(None) if task.id not in listed)
    found: list[Quarantined] = []
    # Where gold loops there is nothing to learn of it; the checks will name the loop.
    with patience(inspect.getsourcefile(template.world)):
        found += suspects_among(template, GoldReplays(template, keep=0), others)
    return (*known, *found)


def _print_all(
    name: str,
    findings: "Iterable[Finding]",
    facts: "Facts | None",
    quarantined: "tuple[Quarantined, ...]" = (),
    power: tuple[int, float] | None = None,
    *,
    as_json: bool,
) -> bool:
    """Print findings as they come, then what they come to; whether all have passed."""
    claims = failed = problems = 0
    for claim, group in groupby(findings, key=lambda finding: finding.check):
        found = list(group)
        wrong = [finding for finding in found if not finding.passed]
        claims, failed, problems = claims + 1, failed + bool(wrong), problems + len(wrong)
        if as_json:
            for finding in found:
                print_json_line({"environment": name, **finding.model_dump()})
        elif wrong:
            _print_problems(claim, wrong)
        else:
            print_line(f"  ok    {claim:<45}{found[0].message}".rstrip())
    written = facts.written_out() if facts else {}
    live = [str(value) for value in facts.live] if facts else []
    if as_json:
        print_json_line(
            {
                "environment": name,
                "passed": not failed,
                "checks": claims,
                "failed": failed,
                "findings": problems,
                "facts": written,
                "live": live,
                "gate": {"scenarios": power[0], "detectable": power[1]} if power else None,
                "quarantined": [one.model_dump(mode="json") for one in quarantined],
            }
        )
        return not failed
    if facts:
        print_line(f"  {len(written)} facts may be written out; live: {', '.join(live) or 'none'}")
    if power:
        scenarios, gain = power
        print_line(
            f"  gate: up to {scenarios} scenarios a test of new words; the first finds a gain of "
            f"{gain:+.2f} with 80% power"
        )
    print_line(f"{failed} of {claims} checks failed" if failed else f"all {claims} checks passed")
    return not failed


def _print_problems(claim: str, problems: "list[Finding]") -> None:
    print_line(f"  FAIL  {claim}")
    for problem in problems[:_SHOWN]:
        place = f"{problem.where}: " if problem.where else ""
        lines = [f"{place}{problem.message}", *problem.remedy.splitlines(), problem.command]
        for line in lines:
            if line:
                print_line(f"          {line}")
    if len(problems) > _SHOWN:
        print_line(f"          ... and {len(problems) - _SHOWN} more; see them all with --json")


def show(
    path: Annotated[
        str, typer.Argument(metavar="ENV|RUN", help="An environment, or the folder of a run.")
    ],
    task: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="A task: its turns and gold.")
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            "--candidate",
            metavar="RUN|FILE",
            help="The words of a run (or RUN/ID) or a file, + marks them.",
        ),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option("--error", metavar="KIND", help="What is said about errors of a kind."),
    ] = None,
    rollout: Annotated[
        str | None,
        typer.Option("--rollout", metavar="ID", help="A rollout of a run, with its labels."),
    ] = None,
    json: options.Json = False,
) -> None:
    """What the policy reads; a rollout of a run with its labels."""
    if rollout is not None or (Path(path) / "run.toml").is_file():
        from seal.cli.rollouts import show_run

        show_run(Path(path), task=task, rollout=rollout, as_json=json)
        return
    from seal.cli.words import show_environment
    from seal.envs.registry import load_environment

    show_environment(load_environment(path), task, candidate, error, as_json=json)


def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to fetch, such as bfcl.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Bring data that SEAL does not ship into the cache."""
    from seal.models.fetch import fetch as bring
    from seal.models.fetch import fetched

    if fetched(name) is None:
        note(f"fetching {name}", quiet=quiet)
    found = bring(name)
    if json:
        print_json_line(
            {
                "name": name,
                "path": str(found.path),
                "bytes": found.bytes,
                "version": found.version,
                "licence": found.licence,
            }
        )
        return
    print_line(f"{name} {found.version} ({found.bytes / 1e6:.1f} MB, {found.licence})")
    print_line(str(found.path))
