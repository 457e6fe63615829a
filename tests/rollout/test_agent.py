"""A rollout is the record of a dialogue; what breaks is recorded and leaves it unscored."""

import pytest

from seal.envs import load_environment
from seal.errors import ModelFailure
from seal.models.protocol import Reply
from seal.rollout.agent import Arena, roll_out
from seal.types import Rollout, Sampling, Task, ToolCall, Usage
from tests.factories import TOML, WORLD, edited, lamp_task, write_environment
from tests.scripted import Scripted


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    return load_environment(write_environment(tmp_path_factory.mktemp("house") / "lamp"))


def played(template, policy, task=None, words=None):
    arena = Arena(template, template.original.with_texts(words or {}))
    task = task or Task.model_validate(lamp_task(0))
    return roll_out(arena, task, policy, sample=2, seed=7, sampling=Sampling())


def rolled(template, policy, task=None, words=None):
    rollout = played(template, policy, task, words).rollout
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout
    return rollout


PLUG = ("plug_in", {"socket": "N0"})
DIM = ("dim", {"level": 50, "colour": "W3"})


def errors(rollout):
    return [
        result.error.kind if result.error else None
        for turn in rollout.turns
        for step in turn.steps
        for result in step.results
    ]


def test_a_rollout_is_stamped_with_all_that_decided_it(lamp):
    words = {"system.guidance": "Be kind."}
    one = rolled(lamp, Scripted([[PLUG], [DIM]]), words=words)
    arena = Arena(lamp, lamp.original.with_texts(words))
    assert (one.task, one.scenario, one.group) == ("lamp-00", "lamp-00", "hard")
    assert (one.environment, one.contract) == ("lamp", arena.contract_hash)
    assert (one.candidate, one.policy, one.policy_version) == (arena.candidate.id, "scripted", "1")
    assert (one.sample, one.seed, one.sampling) == (2, 7, Sampling())
    assert one.usage.calls == 3
    assert one.reward == 1.0


def test_a_dialogue_is_recorded_step_by_step(lamp):
    one = rolled(lamp, Scripted([[PLUG, DIM], [DIM]], answers={0: "It shines."}))
    (turn,) = one.turns
    assert turn.user.startswith("Use socket N0")
    assert [[call.tool for call in step.calls] for step in turn.steps] == [
        ["plug_in", "dim"],
        ["dim"],
        [],
    ]
    assert [r.content for r in turn.steps[0].results] == ["plugged in", "shines W3"]
    assert (turn.steps[-1].content, turn.stop) == ("It shines.", "answered")


class Listening(Scripted):
    """Keeps what it is given."""

    def act(self, given):
        self.heard = getattr(self, "heard", [])
        self.heard.append(given)
        return super().act(given)


def test_a_policy_reads_the_whole_dialogue_so_far_and_the_words_in_force(lamp):
    policy = Listening([[PLUG]], [[DIM]])
    task = Task.model_validate(lamp_task(1) | {"state": {"sockets": ["N0"]}})
    words = {"system.guidance": "Be kind.", "dim.affordance": "Shines."}
    task = task.model_copy(
        update={"turns": tuple(t.model_copy(update={"gold": ()}) for t in task.turns)}
    )
    rolled(lamp, policy, task, words)
    last = policy.heard[-1]
    assert [m.role for m in last.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert last.messages[0].content.endswith("Be kind.")
    assert next(t for t in last.tools if t.name == "dim").description.endswith("Shines.")
    assert [len(given.messages) for given in policy.heard] == [2, 4, 6, 8]
    assert [(given.turn, given.steps_taken) for given in policy.heard] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_a_hidden_tool_is_neither_shown_nor_callable(lamp):
    task = Task.model_validate(lamp_task(7))
    hidden = task.turns[0].model_copy(update={"hidden": ("dim",)})
    policy = Listening([[DIM]])
    one = rolled(lamp, policy, task.model_copy(update={"turns": (hidden,)}))
    assert [tool.name for tool in policy.heard[0].tools] == ["plug_in"]
    assert errors(one) == ["unknown_tool"]


def test_a_failed_call_is_answered_in_the_words_in_force(lamp):
    words = {"dim.recovery.refused": "It needs {requires}."}
    one = rolled(lamp, Scripted([[DIM], [PLUG], [DIM]]), words=words)
    first = one.turns[0].steps[0].results[0]
    assert (first.content, first.slot) == (
        "The lamp stays dark. It needs plug_in.",
        "dim.recovery.refused",
    )
    assert (errors(one), one.reward) == (["refused", None, None], 1.0)


ODD = [
    ("dim", "{"),
    ("dim", "[" * 700),
    ("dim", '{"level": ' + "[" * 500 + "]" * 500 + "}"),
    ("dim", r'{"level": "\ud800"}'),
    ("dim", '{"level": 1e999, "colour": "W3"}'),
    ("", "{}"),
    ("\x00", "{}"),
    ("dim\ud800", "{}"),
    ("dim", '{"colour": "\ud800"}'),
    ("__class__", "{}"),
    ("reset", '{"task": 1}'),
    ("state", ""),
]


@pytest.mark.parametrize("call", ODD, ids=range(len(ODD)))
def test_whatever_a_model_calls_is_recorded_and_scored(lamp, call):
    one = rolled(lamp, Scripted([[call], [PLUG], [DIM]], answers={0: "Half \ud800 done."}))
    assert one.reward == 1.0
    assert errors(one)[0] is not None
    assert one.failure is None


CRASH = edited(WORLD, "        self.level = level\n", "        self.level = level // 0\n")


def test_a_tool_that_crashes_leaves_the_rollout_unscored_with_the_turns_so_far(tmp_path):
    template = load_environment(write_environment(tmp_path / "lamp", world=CRASH))
    task = Task.model_validate(lamp_task(1) | {"checks": []})
    nothing = tuple(turn.model_copy(update={"gold": ()}) for turn in task.turns)
    task = task.model_copy(update={"turns": nothing})
    outcome = played(template, Scripted([[("plug_in", {"socket": "N1"})]], [[DIM]]), task)
    one = outcome.rollout
    assert (one.reward, outcome.played) == (None, None)
    assert one.failure == (
        "EnvironmentFailure: lamp: tool dim: ZeroDivisionError: integer division or modulo by zero"
    )
    assert len(one.turns) == 1


def test_gold_that_fails_leaves_the_rollout_unscored_whatever_the_policy_does(lamp):
    task = lamp_task(0)
    task["turns"][0]["gold"] = task["turns"][0]["gold"][1:]
    one = rolled(lamp, Scripted([[PLUG], [DIM]]), Task.model_validate(task))
    assert one.reward is None
    assert (
        "task lamp-00, turn 0: a gold call fails: call 0, dim: The lamp stays dark." in one.failure
    )


class Dead(Scripted):
    """Cannot be called after the first step."""

    def act(self, given):
        if given.steps_taken:
            raise ModelFailure("the server is gone")
        return super().act(given)


def test_a_model_that_fails_leaves_the_rollout_unscored(lamp):
    one = rolled(lamp, Dead([[PLUG]]))
    assert (one.reward, one.failure) == (None, "ModelFailure: the server is gone")
    assert one.usage == Usage(calls=1)


def limited(folder, limits):
    toml = f"{TOML}\n[limits]\n{limits}\n"
    return load_environment(write_environment(folder / "lamp", toml=toml))


def test_a_turn_ends_at_its_step_limit_and_the_policy_is_scored(tmp_path):
    template = limited(tmp_path, "steps = 2")
    one = rolled(template, Scripted([[PLUG], [DIM], [PLUG]]))
    assert (one.turns[0].stop, len(one.turns[0].steps)) == ("step_limit", 2)
    assert one.reward == 1.0
    late = rolled(template, Scripted([[PLUG], [PLUG], [DIM]]))
    assert late.reward == 0.0


def test_a_call_over_its_size_limit_is_not_run_and_ends_the_turn(tmp_path):
    template = limited(tmp_path, "call_chars = 100")
    long = ("plug_in", {"socket": "N" * 100})
    one = rolled(template, Scripted([[PLUG], [long, DIM], [DIM]]))
    results = one.turns[0].steps[1].results
    assert results[0].content == "The call is longer than 100 characters."
    assert (one.turns[0].stop, one.reward) == ("call_limit", 1.0)


def test_a_long_result_is_cut_for_the_policy(tmp_path):
    world = edited(WORLD, 'return "plugged in"', 'return "x" * 1000')
    toml = f"{TOML}\n[limits]\ncall_chars = 100\n"
    folder = write_environment(tmp_path / "lamp", toml=toml, world=world)
    one = rolled(load_environment(folder), Scripted([[PLUG], [DIM]]))
    assert one.turns[0].steps[0].results[0].content == "x" * 100 + "…"
    assert one.reward == 1.0


class Mute:
    """Says nothing at all."""

    name = "mute"
    version = "1"

    def act(self, given):  # noqa: ARG002
        return Reply()


def test_silence_ends_a_turn_and_scores_zero(lamp):
    one = rolled(lamp, Mute())
    assert (one.turns[0].stop, one.reward) == ("answered", 0.0)


def test_results_stand_in_the_order_of_their_calls(lamp):
    calls = tuple(
        ToolCall(id="same", tool=tool, arguments="{}") for tool in ("dim", "nothing", "plug_in")
    )

    class Repeating(Mute):
        def act(self, given):
            return Reply() if given.steps_taken else Reply(calls=calls)

    one = rolled(lamp, Repeating())
    assert errors(one) == ["argument_missing", "unknown_tool", "argument_missing"]
    assert [r.error.argument for r in one.turns[0].steps[0].results] == ["colour", None, "socket"]
