"""How much `seal check` finds: `python -m tests.soundness [--json] [--only TEXT]`.

Writes every environment of the corpus into a folder of its own and runs all checks on it. A defect
is caught if a check that is right about it speaks; whatever is said of a sound environment is a
false alarm.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.soundness import planted_tasks, planted_unseen, planted_words, planted_worlds, sound
from tests.soundness.planted import Case, problems

DEFECTIVE = (
    *planted_words.CASES,
    *planted_tasks.CASES,
    *planted_worlds.CASES,
    *planted_unseen.CASES,
)
SOUND = sound.CASES


def judged(case: Case, folder: Path) -> tuple[bool, str]:
    """Whether a case was judged rightly, and a line about it."""
    # Worlds may print; the answer of this command stands alone.
    with contextlib.redirect_stdout(sys.stderr):
        found = list(problems(case, folder))
    if not case.claims:
        first = f"FALSE ALARM: {found[0].check}: {found[0].message}" if found else "sound"
        return not found, first
    right = [finding.check for finding in found if finding.check in case.claims]
    if right:
        return True, right[0]
    others = f", though {found[0].check}: {found[0].message}" if found else ""
    return False, f"MISSED{others}"


def measured(cases: Iterable[Case], folder: Path, *, quiet: bool) -> list[bool]:
    """Whether each case was judged rightly."""
    verdicts = []
    for number, case in enumerate(cases):
        right, line = judged(case, folder / f"case-{number:03d}")
        verdicts.append(right)
        if not quiet:
            print(f"{case.name:<64}{line}", flush=True)
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="Nothing but the figures.")
    parser.add_argument("--only", default="", help="Environments with this text in their name.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        defective, clean = (
            measured(
                [case for case in cases if options.only in case.name],
                Path(folder) / kind,
                quiet=options.json,
            )
            for kind, cases in (("defective", DEFECTIVE), ("sound", SOUND))
        )
    figures = {
        "defective": len(defective),
        "caught": round(sum(defective) / len(defective), 4) if defective else 1.0,
        "clean": len(clean),
        "false_alarms": clean.count(False),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
