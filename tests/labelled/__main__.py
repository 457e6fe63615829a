"""Does diagnosis agree with a reader? `python -m tests.labelled [--json]`.

The labels were written from rollouts and tasks alone, and committed before this comparison. A fault
is right if turn, kind, tool and argument are the label's, or another answer that the reader called
equally right.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from seal.diagnose import diagnose_rollout
from seal.envs import load_environment
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays
from seal.rollout.scores import wilson
from seal.types import Diagnosis, Rollout, Task

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Compared:
    """What a reader and the diagnosis said of one rollout."""

    run: str
    rollout: str
    label: dict
    found: Diagnosis | None

    @property
    def same_turn(self) -> bool:
        return self.found is not None and self.found.turn == self.label["turn"]

    @property
    def same_kind(self) -> bool:
        kinds = [self.label["kind"], *(other["kind"] for other in self.label.get("also", ()))]
        return self.same_turn and self.found.kind in kinds

    @property
    def same(self) -> bool:
        """Turn, kind, tool and argument."""
        if not self.same_turn:
            return False
        found = (self.found.kind, self.found.tool, self.found.argument)
        answers = [self.label, *self.label.get("also", ())]
        return found in [(a["kind"], a.get("tool"), a.get("argument")) for a in answers]


@cache
def environment(name: str) -> tuple[EnvironmentTemplate, GoldReplays, dict[str, Task]]:
    template = load_environment(name)
    return template, GoldReplays(template), {task.id: task for task in template.tasks(None)}


def compare() -> Iterator[Compared]:
    """Every labelled rollout beside its diagnosis."""
    for path in sorted(HERE.glob("*.labels.jsonl")):
        lines = (HERE / path.name.replace(".labels", "")).read_text("utf-8").splitlines()
        for line, labelled in zip(lines, path.read_text("utf-8").splitlines(), strict=True):
            record, label = json.loads(line), json.loads(labelled)
            run = record.pop("run")
            rollout = Rollout.model_validate(record)
            if (run, rollout.id) != (label["run"], label["rollout"]):
                raise SystemExit(f"{path.name}: {label['run']} {label['rollout']} out of order")
            template, gold, tasks = environment(rollout.environment)
            task = tasks[rollout.task]
            found = diagnose_rollout(template, gold, task, template.original, rollout)
            yield Compared(run, rollout.id, label, found.fault)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    all_of_them = list(compare())
    low, high = wilson([float(one.same) for one in all_of_them])
    shares = {
        name: round(sum(getattr(one, name) for one in all_of_them) / len(all_of_them), 4)
        for name in ("same", "same_kind", "same_turn")
    }
    figures = {"rollouts": len(all_of_them), **shares, "low": round(low, 4), "high": round(high, 4)}
    if options.json:
        print(json.dumps(figures))
        return
    for one in all_of_them:
        if not one.same:
            label = {k: v for k, v in one.label.items() if k not in ("run", "rollout")}
            print(f"{one.run} {one.rollout}\n  reader: {json.dumps(label)}")
            found = one.found
            fields = ("turn", "kind", "tool", "argument", "expected", "found")
            print("  diagnosis:", found and {name: getattr(found, name) for name in fields})
    print(figures)


if __name__ == "__main__":
    main()
