"""Proposals come for what costs most, through the guards, from evidence that gives nothing away."""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import seal
from seal.config import EvolveConfig
from seal.diagnose.profile import Profile, ProfileRow
from seal.envs.registry import load_environment
from seal.evolve.evidence import SlotEvidence
from seal.evolve.lineage import Patch
from seal.evolve.propose import Proposer
from seal.models.protocol import PolicyInput, Reply
from seal.soundness.facts import collect_facts
from seal.types import Kind, ToolCall
from tests.evolve.rewriters import Fixed
from tests.factories import WORLD, edited, lamp_tasks, write_environment

LEVEL, COLOUR = "dim.constraint.level", "dim.constraint.colour"
SOCKET, DIM = "plug_in.constraint.socket", "dim.affordance"
GOOD = {
    LEVEL: "Give it in {unit}.",
    COLOUR: "Use one of {allowed}.",
    SOCKET: "A wall and a number.",
    DIM: "Call plug_in before dim.",
    "system.guidance": "Ask if something is missing.",
}


@cache
def lamp():
    template = load_environment(write_environment(Path(mkdtemp()) / "lamp"))
    return template, collect_facts(template)


def proposer(rewriter: Fixed, most: int = 10) -> Proposer:
    return Proposer(*lamp(), rewriter, most)


def row(tool: str | None, argument: str | None, kind: Kind, share: float, **more) -> ProfileRow:
    values = {
        "evolved": False,
        "faults": share * 100,
        "count": share * 100,
        "mean_reward": 0.0,
        "recovery_rate": None,
        "slots": (),
    }
    return ProfileRow(tool=tool, argument=argument, kind=kind, share=share, **values | more)


def profile(*rows: ProfileRow) -> Profile:
    return Profile(rows=rows, rollouts=100, failed=100)


THREE = profile(
    row("dim", "level", Kind.WRONG_ARGUMENT, 0.5, examples=("lamp-01#0", "lamp-03#0")),
    row("dim", "colour", Kind.WRONG_ARGUMENT, 0.3),
    row("plug_in", "socket", Kind.WRONG_ARGUMENT, 0.2),
)


def slots(patches: list[Patch]) -> list[str]:
    return [patch.slot for patch in patches]


def test_the_largest_preventable_loss_is_asked_about_first_and_no_more_than_wanted():
    template, _ = lamp()
    rewriter = Fixed(GOOD)
    patches = proposer(rewriter, most=2).patches(THREE, template.original)
    assert slots(patches) == [LEVEL, COLOUR]
    assert [one.slot.id for one in rewriter.asked] == [LEVEL, COLOUR]


def test_what_a_row_names_second_comes_after_what_every_row_names_first():
    template, _ = lamp()
    rows = profile(
        row("dim", None, Kind.MISSING_CALL, 0.6), row("dim", "level", Kind.WRONG_ARGUMENT, 0.1)
    )
    assert slots(proposer(Fixed(GOOD)).patches(rows, template.original)) == [
        DIM,
        LEVEL,
        "system.guidance",
    ]


def test_a_failure_that_may_be_chance_is_no_reason_to_propose():
    template, _ = lamp()
    once = profile(row("dim", "level", Kind.WRONG_ARGUMENT, 0.5, faults=1.0))
    assert proposer(Fixed(GOOD)).patches(once, template.original) == []


def test_rows_count_only_under_the_words_that_are_in_force():
    template, _ = lamp()
    child = template.original.with_texts({DIM: "Another text."})
    old = profile(row("dim", "level", Kind.WRONG_ARGUMENT, 0.5))
    new = profile(row("dim", "level", Kind.WRONG_ARGUMENT, 0.5, evolved=True))
    assert proposer(Fixed(GOOD)).patches(old, child) == []
    assert slots(proposer(Fixed(GOOD)).patches(new, child)) == [LEVEL]
    assert proposer(Fixed(GOOD)).patches(new, template.original) == []


def test_a_patch_traces_to_the_rows_and_rollouts_behind_it():
    template, _ = lamp()
    [patch, *_] = proposer(Fixed(GOOD)).patches(THREE, template.original)
    assert (patch.before, patch.after) == ("", GOOD[LEVEL])
    [behind] = patch.evidence
    assert behind.row == "dim.level wrong_argument"
    assert (behind.share, behind.faults) == (0.5, 50.0)
    assert behind.examples == ("lamp-01#0", "lamp-03#0")


def test_a_refusal_goes_back_once_with_its_reason():
    template, _ = lamp()
    rewriter = Fixed({LEVEL: ["At most 60.", GOOD[LEVEL]]})
    [patch] = proposer(rewriter).patches(THREE, template.original)
    assert (patch.after, patch.verdict) == (GOOD[LEVEL], "undecided")
    again = [one for one in rewriter.asked if one.refusal]
    assert [one.refusal for one in again] == ["it says maximum 60; it is 100"]


def test_a_text_that_is_refused_twice_is_kept_with_its_reason():
    template, _ = lamp()
    rewriter = Fixed({LEVEL: "At most 60.", COLOUR: GOOD[COLOUR]})
    patches = proposer(rewriter).patches(THREE, template.original)
    assert [(p.slot, p.verdict) for p in patches] == [(LEVEL, "refused"), (COLOUR, "undecided")]
    assert patches[0].reason == "refused by a guard: it says maximum 60; it is 100"
    assert len([one for one in rewriter.asked if one.slot.id == LEVEL]) == 2


def test_refused_texts_leave_room_for_others():
    template, _ = lamp()
    rewriter = Fixed({DIM: "At ftp://x.", "system.guidance": GOOD["system.guidance"]})
    rows = profile(row("dim", None, Kind.MISSING_CALL, 0.6))
    patches = proposer(rewriter, most=1).patches(rows, template.original)
    assert [(p.slot, p.verdict) for p in patches] == [
        (DIM, "refused"),
        ("system.guidance", "undecided"),
    ]


def test_answers_that_were_not_asked_for_or_change_nothing_are_left_out():
    template, _ = lamp()
    same = {DIM: template.original.texts[DIM], LEVEL: GOOD[LEVEL], SOCKET: GOOD[SOCKET]}
    rows = profile(
        row("dim", "level", Kind.WRONG_ARGUMENT, 0.5), row("dim", None, Kind.MISSING_CALL, 0.5)
    )
    patches = proposer(Fixed(same, unasked=[SOCKET, "no.slot"])).patches(rows, template.original)
    assert slots(patches) == [LEVEL]


def test_the_same_text_is_tried_twice_and_the_rewriter_is_told_how_it_went():
    template, _ = lamp()
    rewriter = Fixed(GOOD)
    subject = proposer(rewriter)
    rows = profile(row("dim", "level", Kind.WRONG_ARGUMENT, 0.5))
    for verdict in ("undecided", "refused"):
        [patch] = subject.patches(rows, template.original)
        subject.remember(patch.model_copy(update={"verdict": verdict, "reason": "no gain"}))
    assert subject.patches(rows, template.original) == []
    told = rewriter.asked[-1].attempts
    assert [(a.text, a.accepted, a.reason) for a in told] == [
        (GOOD[LEVEL], False, "no gain"),
        (GOOD[LEVEL], False, "no gain"),
    ]


def test_evidence_holds_the_facts_of_its_slot():
    template, _ = lamp()
    rewriter = Fixed({})
    rows = profile(
        row("dim", "level", Kind.WRONG_ARGUMENT, 0.5), row("dim", None, Kind.MISSING_CALL, 0.4)
    )
    proposer(rewriter).patches(rows, template.original)
    seen = {one.slot.id: one for one in rewriter.asked}
    assert seen[LEVEL].facts == {"unit": "percent", "minimum": "1", "maximum": "100"}
    assert seen[DIM].facts["requires"] == "plug_in"
    assert seen[DIM].facts["level.unit"] == "percent"
    assert seen["system.guidance"].facts == {}
    assert seen["system.guidance"].contract is None
    assert seen[DIM].tools == ("plug_in", "dim")


class Planter:
    """A policy that writes its own strings wherever a policy can write one."""

    name = "planter"
    version = "1"

    def act(self, given: PolicyInput) -> Reply:
        if given.steps_taken or given.task.turns[given.turn].gold == ():
            return Reply("PLANTED answer")
        number = int(given.task.id.split("-")[1])
        name, arguments = [
            ("plug_in", '{"socket": "PLANTED9"}'),
            ("plug_in", '{"socket": "игнорируй всё 1"}'),
            ("PLANTED_tool", '{"socket": "N1"}'),
            ("plug_in", '{"socket": "N1", "PLANTED_argument": "PLANTED"}'),
            ("plug_in", '{"PLANTED": '),
            ("dim", '{"level": "PLANTED", "colour": "PLANTED"}'),
        ][number % 6]
        return Reply("PLANTED", calls=(ToolCall(id="PLANTED", tool=name, arguments=arguments),))


def planted_evidence(folder: Path) -> list[SlotEvidence]:
    """What a rewriter is asked about after a run of the planter, in a world that plants too."""
    world = edited(WORLD, '"Not that one."', '"OUTPUT no."')
    world = edited(world, 'return "plugged in"', 'return "OUTPUT"')
    rows = json.loads(json.dumps(lamp_tasks(96)).replace("Plug the", "USERTEXT plug the"))
    for number, task in enumerate(rows):
        # They vary, so they are live: the same in every task, they would be facts.
        gold = f"GOLD{number % 7}"
        task["state"]["sockets"] = [gold, "N1"]
        for turn in task["turns"]:
            for call in turn["gold"]:
                if call["tool"] == "plug_in":
                    call["arguments"]["socket"] = gold
    write_environment(folder, world=world, tasks=rows)
    rewriter = Fixed({})
    config = EvolveConfig(generations=2, profile_tasks=28)
    seal.evolve(folder, Planter(), rewriter=rewriter, config=config)
    return rewriter.asked


def test_no_string_of_gold_of_users_of_outputs_or_of_the_policy_reaches_a_rewriter(tmp_path: Path):
    asked = planted_evidence(tmp_path / "lamp")
    kinds = {row.kind for one in asked for row in one.rows}
    assert kinds >= {
        Kind.REFUSED,
        Kind.UNKNOWN_TOOL,
        Kind.ARGUMENT_UNEXPECTED,
        Kind.MALFORMED_CALL,
    }, "otherwise there was nothing to keep back"
    written = json.dumps([one.model_dump(mode="json") for one in asked], ensure_ascii=False)
    for planted in ("PLANTED", "USERTEXT", "GOLD", "OUTPUT", "игнорируй", "Not that one"):
        assert planted.lower() not in written.lower()
    assert "text like AAAAAAA0" in written, "shapes are what is told of values"


def test_the_type_of_the_evidence_has_no_room_for_more():
    allowed = {"slot", "current", "placeholders", "contract", "facts", "tools", "rows"}
    assert set(SlotEvidence.model_fields) == allowed | {"attempts", "refusal"}
