"""How often the diagnosis is right: `python -m tests.planted [--json] [--seed N] [--wrong N]`.

Plants faults of known kinds at known turns of gold rollouts, plays them for real, and compares the
diagnosis, and the published labelling rule, with the labels that the planting calls for.
"""

import argparse
import contextlib
import json
import sys
from typing import Any

from seal.envs import load_environment
from tests.planted.harness import SHARES, Case, Tally, cases, judge
from tests.planted.scripts import Stage

ENVIRONMENTS = ("rooms", "orders", "home", "bfcl")


def measured(names: list[str], each: int, seed: int) -> tuple[Tally, Tally]:
    """Both tallies, over so many cases of every sort in every environment."""
    ours, published = Tally(), Tally()
    for name in names:
        stage = Stage(load_environment(name))
        for case in cases(stage, each, seed):
            judge(case, ours, published)
    return ours, published


def figures(ours: Tally, published: Tally) -> dict[str, Any]:
    return {
        "rollouts": ours.rollouts,
        **ours.shares(),
        "published": {"rollouts": published.rollouts, **published.shares()},
    }


def table(ours: Tally, published: Tally) -> str:
    """The figures for people, by sort."""
    lines = [f"{ours.rollouts:,} rollouts", ""]
    for name in SHARES:
        found = f"{ours.shares()[name]:.4f} {published.shares()[name]:12.4f}"
        lines.append(f"{name:<40}{ours.asked[name]:7,} {found}")
    lines += [""]
    for sort in sorted(ours.sorts):
        sides = [tally.sorts[sort] for tally in (ours, published)]
        shares = [sum(side) / len(side) for side in sides]
        lines.append(f"{sort:<40}{len(sides[0]):7,} {shares[0]:.4f} {shares[1]:12.4f}")
    return "\n".join(lines)


def described(share: str, case: Case) -> str:
    """What was planted, and what was said instead."""
    task = case.seen.script.task
    lines = [f"--- {share}: {case.sort}, {case.seen.stage.template.name} {task.id}"]
    lines += [f"wanted turn {case.turn} {sorted(map(str, case.labels))} erred {case.erred}"]
    for index, turn in enumerate(case.seen.rollout.turns):
        gold = [f"{c.tool}{json.dumps(c.arguments)}" for c in task.turns[index].gold or ()]
        lines.append(f"turn {index} gold {' '.join(gold)}"[:600])
        for step in turn.steps:
            for call, result in zip(step.calls, step.results, strict=True):
                said = result.error.message if result.error else result.content[:80]
                lines.append(f"     {call.id} {call.tool}{call.arguments[:200]} -> {said}")
    for one in case.diagnosed.diagnoses:
        marks = f"{'recovered ' * one.recovered}{'deviates' * one.deviates}"
        lines.append(f"  said {one.turn}.{one.step} {one.kind} {one.tool} {one.argument} {marks}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="nothing but the figures")
    parser.add_argument("--each", type=int, default=26, help="cases of a sort and environment")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=ENVIRONMENTS, help="one environment")
    parser.add_argument("--wrong", type=int, default=0, help="show so many that were judged wrong")
    options = parser.parse_args()
    names = [options.only] if options.only else list(ENVIRONMENTS)
    with contextlib.redirect_stdout(sys.stderr):
        ours, published = measured(names, options.each, options.seed)
    for share, case in ours.wrong[: options.wrong]:
        print(described(share, case), file=sys.stderr)
    print(json.dumps(figures(ours, published)) if options.json else table(ours, published))


if __name__ == "__main__":
    main()
