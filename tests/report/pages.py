"""Run folders for the report's tests, and a reader of the pages that come of them."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import seal
from seal.config import EvolveConfig
from seal.diagnose.profile import Profile, ProfileRow
from seal.evolve.lineage import GateResult, Generation, Patch, PatchEvidence
from seal.evolve.run import Evolution
from seal.models.protocol import PolicyInput, Reply
from seal.records import RunFolder, write_json
from seal.report.html import write_report
from seal.rollout.scores import PairedSummary, ScoreSummary
from seal.types import Candidate, Kind, ToolCall, Usage
from tests.factories import TOOLS, WORLD, edited, write_environment

VOID = {"meta", "br", "wbr"}
INLINE = {"a", "b", "code", "del", "em", "ins", "span", "strong", "wbr"}
EVIL = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\u202e&"


class Talker:
    """A policy that says what it is told, and calls the first gold tool with a wrong value."""

    name, version = "talker", "1"

    def __init__(self, said: str = "Done.", value: str = "nowhere") -> None:
        self.said, self.value = said, value

    def act(self, given: PolicyInput) -> Reply:
        if given.steps_taken:
            return Reply(content=self.said)
        call = ToolCall(
            id=f"c{given.turn}", tool="plug_in", arguments=json.dumps({"socket": self.value})
        )
        return Reply(content=self.said, calls=(call,))


def make_run(tmp_path: Path, *, evil: bool = False, policy: object = None) -> Path:
    """A small finished `seal run`, with text of strangers that wants to be more than text."""
    said = EVIL if evil else "plain"
    world = edited(WORLD, "Not that one.", said.replace('"', "'"))
    tools = {"dim": edited(TOOLS["dim"], "Sets how the lamp shines.", said)}
    folder = write_environment(tmp_path / "lamp", world=world, tools=tools)
    talker = policy or Talker(said, said)
    seal.run(folder, talker, seal.RunSettings(split="train", limit=6), out=tmp_path / "run")
    return tmp_path / "run"


def patch(slot: str, **changes: object) -> Patch:
    """An accepted patch, with what the caller wants otherwise."""
    row = PatchEvidence(row=f"row of {slot}", share=0.4, faults=8.0, examples=("t-1#0", "t-2#0"))
    fields = {"slot": slot, "before": "", "after": f"new {slot}", "rationale": f"why {slot}"}
    fields |= {"evidence": (row,), "screened": 0.125, "verdict": "accepted"}
    return Patch.model_validate(
        fields | {"reason": "capital 56.8 reached 40", "support": "bundle evidence"} | changes
    )


def gate(test: str, *slots: str, **changes: object) -> GateResult:
    """A test that accepts, with what the caller wants otherwise."""
    fields = {"test": test, "slots": slots, "k": 1, "verdict": "accepted", "reason": "so it is"}
    fields |= {"effect": 0.8, "low": 0.53, "high": 1.0, "pairs": 10, "wins": 8, "losses": 1}
    return GateResult.model_validate(
        fields | {"unscored": 0, "e_value": 56.7608, "threshold": 40.0} | changes
    )


ORIGINAL = Candidate(texts={"a.affordance": "Ask the a first.", "b.constraint.x": "", "c": "kept"})
EVOLVED = ORIGINAL.with_texts({"a.affordance": "Call b first.", "b.constraint.x": "Use {unit}."})


def generations() -> tuple[Generation, ...]:
    """Two generations that have every verdict and every kind of test."""
    first = Generation(
        index=0,
        parent=ORIGINAL.id,
        candidate=EVOLVED.id,
        accepted=True,
        reason="",
        patches=(
            patch("a.affordance", before="Ask the a first.", after="Call b first."),
            patch("b.constraint.x", after="Use {unit}.", support="own evidence"),
            patch("c", verdict="refused", reason="refused: removal is better", support=None),
            patch("d", verdict="refused", reason="refused by a guard: too long", support=None),
        ),
        gates=(
            gate("bundle", "a.affordance", "b.constraint.x", "c"),
            gate("removal", "a.affordance", verdict="undecided", effect=-0.01, low=-0.06, high=0.1),
            gate("removal", "b.constraint.x", verdict="refused", wins=11, losses=2, k=2),
            gate("removal", "c", k=3, effect=-0.4, low=-0.6, high=-0.2, e_value=2400.0),
        ),
        failed=31,
        profiled=40,
        rollouts=700,
    )
    second = Generation(
        index=1,
        parent=EVOLVED.id,
        candidate=EVOLVED.id,
        accepted=False,
        reason="the budget is spent",
        patches=(patch("e", verdict="undecided", reason="undecided: spent", support=None),),
        gates=(gate("half", "e", verdict="undecided", pairs=0, effect=0.0, low=-1.0, unscored=3),),
        failed=4,
        profiled=40,
        rollouts=61,
    )
    return first, second


def evolution(**changes: object) -> Evolution:
    """The result of those generations."""
    score = ScoreSummary(
        score=0.22, low=0.17, high=0.28, scored=50, total=50, bound=0.22, groups={"easy": 0.22}
    )
    usage = Usage(calls=1200, prompt_tokens=34567, completion_tokens=890, dollars=1.25)
    found = Evolution(
        environment="thing",
        policy="sim:novice",
        rewriter="offline",
        original=ORIGINAL.id,
        candidate=EVOLVED.id,
        generations=generations(),
        changed=("a.affordance", "b.constraint.x"),
        dropped_seeds=("a.affordance",),
        test=PairedSummary(
            effect=0.685,
            low=0.62,
            high=0.75,
            pairs=50,
            unscored=0,
            first=0.22,
            second=0.905,
            shared=50,
            left_out=0,
        ),
        original_score=score,
        evolved_score=score.model_copy(
            update={
                "score": 0.905,
                "low": 0.85,
                "high": 0.94,
                "bound": 0.905,
                "groups": {"easy": 0.905},
            }
        ),
        rollouts=761,
        budget=6000,
        stopped="all generations are done",
        usage=usage,
        rewriter_usage=usage.model_copy(update={"dollars": 0.5}),
    )
    return found.model_copy(update=changes)


def make_evolution(
    path: Path, found: Evolution | None, *, words: Candidate = EVOLVED, policy: str = "sim:novice"
) -> Path:
    """An evolve folder with these records; unfinished where there is no result."""
    folder = RunFolder(path)
    settings = {
        "command": "evolve",
        "environment": "thing",
        "folder": str(path / "nowhere"),
        "contract": "0123456789abcdef",
        "candidate": ORIGINAL.id,
        "policy": policy,
        "policy_version": "simulated",
        "rewriter": "offline",
        "seed": 0,
        "sampling": {"temperature": 0.0, "max_tokens": 1024},
        "config": EvolveConfig().model_dump(exclude_none=True),
    }
    row = ProfileRow(
        tool="a",
        argument="x",
        kind=Kind.REFUSED,
        evolved=True,
        faults=2.7,
        share=0.3,
        count=4.0,
        mean_reward=0.0,
        recovery_rate=0.25,
        slots=("a.recovery.refused",),
        examples=("t-1#0", "t-1#0"),
    )
    profile = Profile(rows=(row,), rollouts=80, failed=35)
    with folder.opened(settings):
        folder.save_candidate(ORIGINAL)
        folder.save_candidate(words)
        folder.lines("generations", Generation).append(*generations())
        write_json(path / "profile.json", {"seal": 1, **profile.model_dump(mode="json")})
        if found is not None:
            folder.finish(found.model_dump(mode="json"))
    return path


@dataclass
class Page(HTMLParser):
    """A page as a browser takes it apart: its tags, their attributes, and the text between."""

    html: str
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.line = ""
        self.feed(self.html)
        self.close()
        self._end_line("main")
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_line(tag)
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._end_line(tag)
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.line += data

    def _end_line(self, tag: str) -> None:
        if tag not in INLINE:
            self.lines += [" ".join(self.line.split())] if self.line.strip() else []
            self.line = ""

    @property
    def text(self) -> str:
        """All that the page says, in its order."""
        return " ".join(self.lines)


def page_of(run: Path) -> Page:
    """The page about a run, made anew."""
    return Page(write_report(run).read_text(encoding="utf-8"))
