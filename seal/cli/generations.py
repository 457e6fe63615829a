"""How an evolve run is told: generation by generation, then what it was worth."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from seal.cli.console import note, print_json_line, print_line, print_table
from seal.cli.runs import difference_line, label
from seal.report.text import legible

if TYPE_CHECKING:
    from rich.status import Status

    from seal.evolve.lineage import GateResult, Generation, Patch
    from seal.evolve.run import Evolution
    from seal.rollout.scores import ScoreSummary

_WIDTH = 96
_EVIDENCE = 3
"""Profile rows that are printed behind a patch; the records have all."""
_SAID = {
    ("removal", "accepted"): "removed",
    ("removal", "refused"): "missed if removed",
    ("removal", "undecided"): "kept, undecided",
    ("standing", "accepted"): "they stand",
    ("standing", "refused"): "they are retired",
    ("standing", "undecided"): "kept, undecided",
}
"""What a verdict says about texts that are already in force."""


class Announcer:
    """Prints generations as they end; on a terminal, shows the stage at work."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._json = as_json
        self._quiet = quiet
        self._status: Status | None = None

    def __enter__(self) -> Self:
        import sys

        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("starting")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status:
            self._status.stop()

    def stage(self, text: str) -> None:
        """A new stage began."""
        self.show(text, also_plain=text.startswith("generation"))

    def show(self, text: str, *, also_plain: bool) -> None:
        """Show what is at work; where there is no terminal, as a line if it is worth one."""
        if self._status:
            self._status.update(legible(text))
        elif also_plain:
            note(text, quiet=self._quiet)

    def say(self, text: str) -> None:
        """A line on stderr that stays."""
        if self._status:
            self._status.console.print(legible(text), markup=False, highlight=False)
        else:
            note(text, quiet=self._quiet)

    def generation(self, generation: "Generation") -> None:
        """A generation is over."""
        if self._json:
            print_json_line(generation)
        else:
            print_generation(generation)


def print_generation(generation: "Generation") -> None:
    """Every patch of a generation with its evidence and verdict, and every test."""
    outcome = (
        f"words now {generation.candidate}"
        if generation.accepted
        else f"words still {generation.parent}"
    )
    print_line(
        f"generation {generation.index}: {generation.failed} of {generation.profiled} train "
        f"rollouts failed; {generation.rollouts} rollouts spent; {outcome}"
    )
    for patch in generation.patches:
        _print_patch(patch)
    if generation.gates:
        print_line("  tests")
        print_table(*_gate_table(generation.gates))
        print_line(
            "    a test accepts when its e-value, a bet's capital, reaches the second figure"
        )
    if generation.reason:
        print_line(f"  {generation.reason}")
    print_line()


def _print_patch(patch: "Patch") -> None:
    from seal.evolve.lineage import diff_lines

    support = f", {patch.support}" if patch.support else ""
    print_line(f"  {patch.verdict}{support}: {patch.slot}")
    for line in diff_lines(patch.before, patch.after):
        for piece in textwrap.wrap(
            line, _WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False
        ):
            print_line(piece)
    rows = [
        f"{row.row} {row.share:.0%} of failures ({' '.join(row.examples)})"
        for row in patch.evidence[:_EVIDENCE]
    ]
    print_line(f"    why: {patch.rationale}")
    print_line(f"    evidence: {'; '.join(rows) or 'none'}")
    if patch.reason and patch.verdict != "accepted":
        print_line(f"    verdict: {patch.reason}")


def _gate_table(gates: "tuple[GateResult, ...]") -> tuple[list[str], list[list[object]]]:
    columns = ["   ", "test", "about", "verdict", "effect", "95% interval", "scenarios", "e-value"]
    rows: list[list[object]] = [
        [
            "   ",
            gate.test,
            gate.slots[0] if len(gate.slots) == 1 else f"{len(gate.slots)} patches",
            _SAID.get((gate.test, gate.verdict), gate.verdict),
            f"{gate.effect:+.3f}",
            f"{gate.low:+.3f} to {gate.high:+.3f}",
            f"{gate.pairs} ({gate.wins}+ {gate.losses}-)",
            f"{gate.e_value:.1f} of {gate.threshold:.0f}",
        ]
        for gate in gates
    ]
    return columns, rows


def print_evolution(
    found: "Evolution", original: Mapping[str, str], folder: Path, *, as_json: bool
) -> None:
    """What the evolved words are worth on the test split, and where everything is."""
    if as_json:
        print_json_line(_summary(found, folder))
        return
    print_line(
        f"{found.environment}  {label(found.policy)}  rewriter {found.rewriter}: "
        f"the test split, read once"
    )
    rows = [
        score_row("original", found.original_score),
        score_row("evolved", found.evolved_score),
    ]
    print_table(["words", "score", "95% interval", "scored"], rows, right=["score", "scored"])
    test = found.test
    print_line(difference_line(test.effect, test.low, test.high, test.pairs))
    for slot in found.dropped_seeds:
        print_line(f"did not survive: the author's {slot}: {original[slot]}")
    changed = len(found.changed)
    print_line(
        f"{changed} slots changed; {found.rollouts} of {found.budget} rollouts spent, "
        f"{found.original_score.total + found.evolved_score.total * bool(changed)} more on the "
        f"test split; {found.stopped}"
    )
    print_line(f"run folder: {folder}")
    if changed:
        print_line(f"See the words with: seal diff {folder}")


def score_row(words: str, score: "ScoreSummary") -> list[object]:
    """A score with its interval, beside the words it was made under."""
    if score.score is None or score.low is None or score.high is None:
        return [words, "-", "-", f"0/{score.total}"]
    interval = f"{score.low:.3f} to {score.high:.3f}"
    return [words, f"{score.score:.3f}", interval, f"{score.scored}/{score.total}"]


def _summary(found: "Evolution", folder: Path) -> dict[str, object]:
    return {
        **found.evolved_score.model_dump(),
        **found.model_dump(mode="json", exclude={"generations", "evolved_score"}),
        "generations": len(found.generations),
        "run": str(folder),
    }
