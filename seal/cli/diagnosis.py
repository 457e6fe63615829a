"""`seal diagnose`: what went wrong in a run, and what goes wrong in one and not in another."""

import shlex
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seal.cli import options
from seal.cli.console import (
    note,
    print_json_line,
    print_line,
    print_table,
    print_wrapped,
    progress,
)
from seal.cli.runs import counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seal.diagnose import Profile, ProfileRow
    from seal.diagnose.compare import DiagnosisComparison, Row
    from seal.diagnose.rescore import Rescored
    from seal.diagnose.run import RunDiagnosis
    from seal.types import DiagnosedRollout

_ROWS = 15
"""Profile rows that are printed; `--all` prints the rest."""
_NAMED = 3
"""Suspect tasks that are named for each reason; `--all` names the rest."""


def diagnose(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="Another, to compare it with.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All rows, not the largest only.")] = False,
    rescore: Annotated[
        bool,
        typer.Option("--rescore", help="First judge the rollouts anew: the verdict was mended."),
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """What went wrong in a run, by tool, argument, kind and slot; or in which of two."""
    from seal.errors import ConfigError

    if other is not None:
        if rescore:
            raise ConfigError(
                "--rescore is for one run, and two are given.\nJudge each of them anew first: "
                f"seal diagnose {shlex.quote(str(run))} --rescore"
            )
        _compare(run, other, every=every, as_json=json, quiet=quiet)
        return
    from seal.diagnose.run import diagnose as find

    judged = _judge_anew(run, as_json=json, quiet=quiet) if rescore else None
    with progress("diagnosing", quiet=quiet) as advance:
        found = find(run, counter(advance))
    profile = found.profile
    suspects = _suspects(found.diagnosed)
    if json:
        for row in profile.rows:
            print_json_line(row)
        print_json_line(
            {
                "rollouts": profile.rollouts,
                "failed": profile.failed,
                "unscorable": _unscorable(found),
                "misfits": found.misfits,
                "torn": found.torn,
                "suspect": suspects,
                "run": str(run),
                **(
                    {"rescored": {**judged.model_dump(), "changed": judged.changed}}
                    if judged
                    else {}
                ),
            }
        )
        return
    print_profile(profile, every=every)
    print_line(f"{profile.failed} of {profile.rollouts} rollouts failed{_left_out(found)}")
    _print_suspects(suspects, run, every=every)
    example = next((row.examples[0] for row in profile.rows if row.examples), None)
    if example:
        print_line(f"Look at one with: seal show {shlex.quote(str(run))} --rollout {example}")


def _unscorable(found: "RunDiagnosis") -> int:
    return len(found.diagnosed) - found.profile.rollouts - found.profile.suspect


def _left_out(found: "RunDiagnosis") -> str:
    """What is in the run and in no count, but for suspect tasks."""
    counts = {
        "unscored": _unscorable(found),
        "that fit no task": found.misfits,
        "half written": int(found.torn),
    }
    parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"; left out: {parts}" if parts else ""


def _judge_anew(run: Path, *, as_json: bool, quiet: bool) -> "Rescored":
    from seal.diagnose.rescore import rescore

    with progress("judging anew", quiet=quiet) as advance:
        found = rescore(run, counter(advance))
    if as_json:
        return found
    print_line(f"judged anew: {found.changed} of {found.rollouts} rollouts changed")
    for what, names in (
        ("pass now", found.now_pass),
        ("fail now", found.now_fail),
        ("cannot be scored now", found.now_unscored),
    ):
        if names:
            print_wrapped(f"{len(names)} {what}: {_named(names, 5)}", "  ")
    if found.kept:
        print_line(f"  {found.kept} keep what they had: they broke off, or ran into a time limit")
    before, after = (
        "none" if score is None else f"{score:.3f}" for score in (found.before, found.after)
    )
    print_line(f"  score {before} before, {after} now")
    if found.changed:
        note(f"the rollouts as they were: {run / 'rollouts.before.jsonl'}", quiet=quiet)
    print_line()
    return found


def _named(names: "Sequence[str]", most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def print_profile(profile: "Profile", *, every: bool) -> None:
    """The profile, largest preventable loss first; every row with two rollouts to look at."""
    rows = [row for row in profile.rows if every or row.faults > 0]
    shown = rows if every else rows[:_ROWS]
    if not shown:
        return
    both = len({row.evolved for row in profile.rows}) > 1
    print_line("  loss  faults  recovered  kind                 what")
    for row in shown:
        recovered = "-" if row.recovery_rate is None else f"{row.recovery_rate:.0%}"
        print_line(
            f"{row.share:>6.1%}  {row.faults:>6.4g}  {recovered:>9}  {row.kind.value:<19}  "
            f"{_what(row, both=both)}"
        )
        slot = f"slot {row.slots[0]}" if row.slots else "no slot could prevent it"
        such = f"; such as {' '.join(row.examples)}" if row.examples else ""
        print_wrapped(f"{slot}{such}", " " * 8)
    if len(rows) > len(shown):
        print_line(f"... and {len(rows) - len(shown)} rows more; see them with --all")


def _what(row: "ProfileRow | Row", *, both: bool = False) -> str:
    """The tool and argument of a row; where both are there, under which words."""
    name = ".".join(part for part in (row.tool, row.argument) if part) or "-"
    evolved = both and getattr(row, "evolved", False)
    return f"{name} (evolved words)" if evolved else name


def _suspects(diagnosed: "Sequence[DiagnosedRollout]") -> list[dict[str, Any]]:
    """The tasks whose gold is in doubt, with their rollouts and the reason."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in diagnosed:
        if one.suspect:
            found[one.task, one.suspect] += 1
    return [
        {"task": task, "rollouts": count, "reason": reason}
        for (task, reason), count in found.items()
    ]


def _print_suspects(suspects: list[dict[str, Any]], run: Path, *, every: bool) -> None:
    if not suspects:
        return
    from seal.diagnose.run import template_of
    from seal.records import RunFolder

    rollouts = sum(one["rollouts"] for one in suspects)
    print_line(f"{rollouts} rollouts of suspect tasks are in no count: gold is in doubt")
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in suspects:
        reasons[one["reason"]].append(one["task"])
    for reason, tasks in reasons.items():
        print_wrapped(f"{_named(tasks, len(tasks) if every else _NAMED)}: {reason}", "  ")
    manifest = template_of(RunFolder(run)).folder / "env.toml"
    first = suspects[0]["task"]
    print_line(f'If gold is right, say so in {manifest}: trusted = ["{first}"]')


def _compare(first: Path, second: Path, *, every: bool, as_json: bool, quiet: bool) -> None:
    from seal.diagnose.compare import compare_diagnoses

    with progress("diagnosing", quiet=quiet) as advance:
        found = compare_diagnoses(first, second, counter(advance))
    if as_json:
        for row in found.rows:
            print_json_line(row)
        summary = found.model_dump(mode="json", exclude={"rows"})
        print_json_line({**summary, "first": str(first), "second": str(second)})
        return
    print_line(f"A  {first}")
    print_line(f"B  {second}")
    print_differences(found, every=every)
    for name, run, sign in (("A", first, -1), ("B", second, 1)):
        lost = (row.examples[0] for row in found.rows if row.difference * sign > 0)
        if example := next(lost, None):
            where = f"seal show {shlex.quote(str(run))} --rollout {example}"
            print_line(f"Look at one of {name} with: {where}")


def print_differences(found: "DiagnosisComparison", *, every: bool) -> None:
    """What two runs lose by each fault, the largest difference first."""
    shown = found.rows if every else found.rows[:_ROWS]
    table = [
        [
            f"{row.first:.1%}",
            f"{row.second:.1%}",
            f"{row.difference:+.1%}",
            f"{row.low:+.1%} to {row.high:+.1%}",
            row.change,
            "any fault" if row.kind is None else f"{row.kind.value} {_what(row)}",
        ]
        for row in (found.total, *shown)
    ]
    columns = ["lost in A", "in B", "difference", "95% interval", "", "fault"]
    print_table(columns, table, right=["lost in A", "in B", "difference", "95% interval"])
    if len(found.rows) > len(shown):
        print_line(f"... and {len(found.rows) - len(shown)} rows more; see them with --all")
    (a, b), (ours, theirs) = found.rollouts, found.scenarios
    if found.paired:
        print_line(f"shares of the {a} rollouts of both, paired by {ours} scenarios")
    else:
        print_line(
            f"no rollout is in both: shares of {a} and {b} rollouts, of {ours} and {theirs} "
            "scenarios, as independent samples"
        )
    if any(found.left_out):
        print_line(
            f"left out: {found.left_out[0]} of A, {found.left_out[1]} of B (unscored, suspect, or "
            "in one alone)"
        )
    print_line("Each interval is for its row alone: in 1 of 20 rows it misses what is so.")
