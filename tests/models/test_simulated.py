"""The simulated reader errs where it has not read, and draws by what it has read."""

import json

import pytest

from seal.diagnose import diagnose_rollout
from seal.envs import load_environment
from seal.models.simulated import READERS, SimulatedPolicy
from seal.rollout.agent import Arena, roll_out
from seal.rollout.scores import summarize
from seal.types import Sampling
from tests.factories import WORLD, edited, lamp_task, lamp_tasks, write_environment

LOOK = edited(
    WORLD,
    "    @tool\n    def plug_in",
    "    @tool(mutates=False)\n    def look(self) -> str:\n"
    '        """Look."""\n        return "It is a lamp."\n\n'
    "    @tool\n    def plug_in",
)
STATED = {
    "dim.constraint.level": "From {minimum} to {maximum}, in {unit}.",
    "dim.constraint.colour": "One of {allowed}.",
    "dim.affordance": "Needs {requires}.".replace("{requires}", "plug_in"),
}


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house") / "lamp"
    return Arena(load_environment(write_environment(folder, world=LOOK, slots="")))


def rollouts(arena, reader, words=None, *, tasks=None, seeds=range(4)):
    arena = arena.under(arena.candidate.with_texts(words)) if words else arena
    policy = SimulatedPolicy(reader)
    return [
        roll_out(arena, task, policy, sample=0, seed=seed, sampling=Sampling()).rollout
        for seed in seeds
        for task in tasks or arena.template.tasks(None)
    ]


def calls(rollout, tool=None):
    """The calls of a rollout, turn by turn in one list, as (turn, tool, arguments)."""
    return [
        (number, call.tool, call.arguments)
        for number, turn in enumerate(rollout.turns)
        for step in turn.steps
        for call in step.calls
        if tool in (None, call.tool)
    ]


def timeless(made):
    return [one.model_copy(update={"seconds": 0.0}) for one in made]


def test_the_same_words_give_the_same_rollouts(lamp):
    assert timeless(rollouts(lamp, "novice")) == timeless(rollouts(lamp, "novice"))


def test_words_of_another_candidate_that_say_the_same_give_the_same_dialogues(lamp):
    twin = {"dim.constraint.level": "{format} never said."}
    first, second = rollouts(lamp, "novice"), rollouts(lamp, "novice", twin)
    assert [one.turns for one in first] == [one.turns for one in second]
    assert {one.candidate for one in first} != {one.candidate for one in second}


def first_dims(made):
    """The first step of every turn whose gold is `dim` alone."""
    return [calls(one.model_copy(update={"turns": one.turns[1:2]}))[:1] for one in made]


def test_other_words_of_another_tool_leave_this_tools_draws_alone(lamp):
    two_turns = [task for task in lamp.template.tasks(None) if len(task.turns) == 2]
    other = {"plug_in.affordance": "Plugs it in.", "plug_in.constraint.socket": "On a wall."}
    own = {"dim.affordance": "Makes it shine."}
    before = first_dims(rollouts(lamp, "lost", tasks=two_turns))
    assert first_dims(rollouts(lamp, "lost", other, tasks=two_turns)) == before
    assert first_dims(rollouts(lamp, "lost", own, tasks=two_turns)) != before


def test_samples_seeds_and_tasks_draw_by_themselves(lamp):
    by_seed = [[one.turns for one in rollouts(lamp, "lost", seeds=[seed])] for seed in range(3)]
    assert by_seed[0] != by_seed[1] != by_seed[2]


def as_said(made):
    """Arguments that went out in the form in which the user said them."""
    sent = [json.loads(text) for one in made for _, _, text in calls(one, "dim") if text[-1] == "}"]
    return [
        value
        for arguments in sent
        for value in arguments.values()
        if value in ("warm", "cold", "half", "a quarter", "full", "a tenth")
    ]


def test_a_stated_rule_is_always_obeyed(lamp):
    assert len(as_said(rollouts(lamp, "lost"))) > 50
    assert as_said(rollouts(lamp, "lost", STATED)) == []


def test_a_rule_counts_only_where_it_is_said_in_whole(lamp):
    half = {"dim.constraint.level": "From {minimum} to {maximum}."}
    assert "half" in as_said(rollouts(lamp, "lost", half))


def test_a_value_that_the_user_says_is_sent(lamp):
    task = lamp.template.tasks(None)[0]
    plain = {**lamp_task(0), "id": "plain"}
    plain["turns"][0]["user"] += " (The colour is W3.)"
    told = type(task).model_validate(plain)
    assert {"warm", "cold"} & set(as_said(rollouts(lamp, "lost", seeds=range(40), tasks=[task])))
    assert not {"warm"} & set(as_said(rollouts(lamp, "lost", seeds=range(40), tasks=[told])))


def skipped(made):
    """Rollouts of one-turn tasks in which `dim` was called and `plug_in` was not, nor dropped."""
    return [
        one
        for one in made
        if len(one.turns) == 1
        and calls(one, "dim")
        and not calls(one, "plug_in")
        and not any(slip.tool.startswith("plug_in") for slip in one.slips)
    ]


def test_a_prerequisite_counts_in_the_words_of_the_tool_that_needs_it(lamp):
    assert skipped(rollouts(lamp, "lost"))
    elsewhere = {"plug_in.affordance": "Call plug_in before dim."}
    assert skipped(rollouts(lamp, "lost", elsewhere))
    assert not skipped(rollouts(lamp, "lost", {"dim.affordance": "It needs plug_in."}))


def test_a_needless_plan_that_words_prescribe_is_followed(lamp):
    needless = {"dim.affordance": "Always call look first."}
    assert not any(calls(one, "look") for one in rollouts(lamp, "expert"))
    followed = rollouts(lamp, "expert", needless)
    for one in followed:
        made = [name for _, name, _ in calls(one)]
        if "dim" in made:
            assert "look" in made[: made.index("dim")]
    assert sum(bool(calls(one, "look")) for one in followed) > 100


def test_a_plan_in_another_tools_words_is_not_followed(lamp):
    made = rollouts(lamp, "expert", {"look.affordance": "Call look before dim."})
    assert not any(calls(one, "look") for one in made)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A lamp of whom something is asked first that no tool can do."""
    tasks = lamp_tasks(40)
    water = {"user": "Please water the plants.", "gold": []}
    tasks = [
        {**task, "turns": [water, *task["turns"]]} for task in tasks if len(task["turns"]) == 2
    ]
    folder = tmp_path_factory.mktemp("house") / "lamp"
    return Arena(load_environment(write_environment(folder, slots="", tasks=tasks)))


def spurious(made):
    return sum(turn == 0 for one in made for turn, _, _ in calls(one)) / len(made)


def test_guidance_teaches_to_decline(idle):
    assert spurious(rollouts(idle, "lost")) > 0.6
    taught = {"system.guidance": "Decline what no tool can do."}
    assert spurious(rollouts(idle, "lost", taught)) < 0.25


def test_a_call_that_nobody_asked_for_is_logged(idle):
    for one in rollouts(idle, "lost"):
        called = [name for turn, name, _ in calls(one) if turn == 0]
        logged = [slip.tool for slip in one.slips if slip.kind == "spurious_call"]
        assert called[:1] == logged


def failures(turn):
    return [any(result.error for result in step.results) for step in turn.steps]


HELPFUL = {
    "dim.recovery.refused": "Colours: {allowed}. It needs {requires}.",
    "dim.recovery.argument_type": "Write {example}, from {minimum} to {maximum} in {unit}.",
}


def test_an_error_is_corrected_only_if_its_message_says_how(lamp):
    for one in rollouts(lamp, "lost"):
        for turn in one.turns:
            failed = failures(turn)
            told = [r.content for s in turn.steps for r in s.results if r.error]
            if any(failed) and not any("'" in text or "plug_in" in text for text in told):
                assert failed.index(True) == len(failed) - 2
                assert turn.steps[-1].content == "I could not do that."
    helped = [turn for one in rollouts(lamp, "lost", HELPFUL) for turn in one.turns]
    assert sum(failures(turn)[:1] == [True] and len(turn.steps) > 2 for turn in helped) > 20


@pytest.mark.parametrize("words", [None, HELPFUL])
def test_there_is_at_most_one_correction_a_turn(lamp, words):
    for one in rollouts(lamp, "lost", words):
        for turn in one.turns:
            assert sum(failures(turn)) <= 2
            if sum(failures(turn)) == 2:
                assert turn.steps[-1].content == "I could not do that."


def test_slips_are_logged_and_diagnosis_never_reads_them(lamp):
    tasks = {task.id: task for task in lamp.template.tasks(None)}
    made = rollouts(lamp, "lost")
    assert sum(bool(one.slips) for one in made) > 20
    for one in made:
        blind = one.model_copy(update={"slips": ()})
        given = (lamp.template, lamp.gold, tasks[one.task], lamp.candidate)
        assert diagnose_rollout(*given, one) == diagnose_rollout(*given, blind)


def test_readers_are_as_good_as_they_read():
    arena = Arena(load_environment("rooms"))
    tasks = arena.template.tasks("train")
    scores = [
        summarize(rollouts(arena, reader, tasks=tasks[:160], seeds=[0])).score
        for reader in ("lost", "novice", "expert")
    ]
    assert scores == sorted(scores)
    assert scores[0] + 0.1 < scores[2] < 1.0


def test_every_reader_is_worse_than_gold_and_better_with_the_rules_in_its_words(lamp):
    for reader in READERS:
        without = summarize(rollouts(lamp, reader)).score
        assert without + 0.05 < summarize(rollouts(lamp, reader, STATED)).score < 1.0
