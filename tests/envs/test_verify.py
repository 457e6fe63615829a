"""A task is done if its end is right, whatever the path; what breaks of ours is no score."""

import json
from enum import Enum

import pytest

from seal.envs import load_environment
from seal.envs.environment import Environment
from seal.envs.verify import GoldReplays, environment_hash, gold_calls, replay, verify
from seal.errors import EnvironmentFailure
from seal.types import Task, ToolCall
from tests.factories import TOML, write_environment

WORLD = '''
from seal.envs import Environment, check, tool
from seal.errors import ToolError
from seal.types import Rule, Task


class Shop(Environment):
    """A shelf, a till that can be asked, and some ways to break."""

    def reset(self, task: Task) -> None:
        self.shelf = dict(task.state)
        self._asked = 0

    @tool
    def put(self, item: str, count: int) -> str:
        self.shelf[item] = self.shelf.get(item, 0) + count
        return "done"

    @tool(count=Rule(maximum=9))
    def take(self, item: str, count: int) -> str:
        if item not in self.shelf:
            raise ToolError("unknown", "Nothing of that here.", argument="item")
        left = self.shelf[item] - count
        if left < 0:
            raise ToolError("few", "Not so many.", argument="count", maximum=self.shelf[item])
        self.shelf[item] = left
        return f"{left} left"

    @tool(mutates=False)
    def ask(self, item: str) -> dict[str, int]:
        self._asked += 1
        return {"count": self.shelf.get(item, 0)}

    @tool
    def odd(self, how: str) -> object:
        raise NotImplementedError

    @check
    def is_empty(self) -> bool:
        return not any(self.shelf.values())
'''


def shop(folder, world=WORLD):
    tasks = [task(gold=[put()]).model_dump(mode="json")]
    path = write_environment(folder, toml=TOML, world=world, tools={}, slots="", tasks=tasks)
    return load_environment(path)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return shop(tmp_path_factory.mktemp("shop") / "lamp")


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def put(item="tea", count=2):
    return call("put", item=item, count=count)


def task(*turns, checks=(), state=None, **turn):
    made = [{"user": "Please.", **one} for one in (turns or [turn])]
    return Task.model_validate(
        {
            "id": "t",
            "scenario": "t",
            "turns": made,
            "checks": checks,
            "state": state or {"tea": 5},
        }
    )


def scored(template, task, *turns, answers=("Done.",) * 3, **how):
    """The score of calls, turn by turn."""
    calls = [
        [
            ToolCall(id=f"{i}-{j}", tool=made["tool"], arguments=json.dumps(made["arguments"]))
            for j, made in enumerate(turn)
        ]
        for i, turn in enumerate(turns)
    ]
    gold = GoldReplays(template).of(task)
    return verify(template, task, gold, replay(template, task, calls), answers, **how)


def failed(score):
    return [check.name for check in score.checks if not check.passed]


PATHS = [
    [put(count=2)],
    [put(count=1), put(count=1)],
    [put(count=5), call("take", item="tea", count=3)],
    [call("ask", item="tea"), put(count=2)],
    [put(count=2.0)],
    [call("take", item="gin", count=1), put(count=2)],
]


@pytest.mark.parametrize("path", PATHS)
def test_any_path_to_the_same_end_passes(template, path):
    assert scored(template, task(gold=[put()]), path).reward == 1.0


@pytest.mark.parametrize("path", [[], [put(count=1)], [put(item="gin")], [put(), put()]])
def test_another_end_fails_and_says_what_differs(template, path):
    score = scored(template, task(gold=[put()]), path)
    assert (score.reward, failed(score)) == (0.0, ["turn 0 state"])
    check = next(check for check in score.checks if not check.passed)
    assert (check.expected, check.found.partition(" = ")[0]) == ('shelf = {"tea": 7}', "shelf")


def test_a_state_that_later_turns_put_right_passes(template):
    two = task({"gold": [put()]}, {"gold": [put()]})
    assert scored(template, two, [], [put(count=4)]).reward == 1.0


def test_what_gold_reads_must_be_read_by_then_and_once_is_enough(template):
    read = call("ask", item="tea")
    two = task({"gold": [read]}, {"gold": [read]})
    assert scored(template, two, [read], []).reward == 1.0
    assert failed(scored(template, two, [], [read])) == ["turn 0 output of ask"]
    assert failed(scored(template, two, [call("ask", item="gin")], [])) == [
        "turn 0 output of ask",
        "turn 1 output of ask",
    ]


def test_what_a_changing_call_says_need_not_be_obtained(template):
    taken = task(gold=[call("take", item="tea", count=3)])
    path = [call("take", item="tea", count=1), call("take", item="tea", count=2)]
    assert scored(template, taken, path).reward == 1.0


def test_where_all_outputs_count_each_counts_as_often_as_gold_has_it(tmp_path):
    world = WORLD.replace(
        "    def reset",
        '    verify_outputs = "all"\n    verify_state = "every_turn"\n\n    def reset',
    )
    template = shop(tmp_path / "lamp", world)
    twice = task({"gold": [put(), put()]})
    assert scored(template, twice, [put(), put()]).reward == 1.0
    assert failed(scored(template, twice, [put(count=4)])) == ["turn 0 output of put"]
    two = task({"gold": [put()]}, {"gold": [put()]})
    assert failed(scored(template, two, [put(), put()], []))[:1] == ["turn 0 state"]
    assert "turn 1" in failed(scored(template, two, [put(), put()], []))


def test_an_answer_must_contain_its_texts_in_any_case(template):
    asked = task(gold=[call("ask", item="tea")], answer=["5 Teas", "€"])
    calls = [call("ask", item="tea")]
    assert scored(template, asked, calls, answers=["There are 5 TEAS, € 3."]).reward == 1.0
    score = scored(template, asked, calls, answers=["There are 5."])
    assert failed(score) == ["turn 0 answer", "turn 0 answer"]
    assert [check.expected for check in score.checks if not check.passed] == ["5 Teas", "€"]


def test_each_turn_has_an_answer_of_its_own(template):
    two = task({"gold": [], "answer": ["yes"]}, {"gold": [], "answer": ["no"]})
    assert scored(template, two, [], [], answers=["Yes.", "No."]).reward == 1.0
    assert failed(scored(template, two, [], [], answers=["no", "yes"])) == [
        "turn 0 answer",
        "turn 1 answer",
    ]


def test_a_named_check_decides_where_there_is_no_gold(template):
    emptied = task(checks=["is_empty"])
    path = [call("take", item="tea", count=5)]
    assert scored(template, emptied, path).reward == 1.0
    assert failed(scored(template, emptied, path[:0])) == ["is_empty"]


def test_a_named_check_counts_beside_gold(template):
    both = task(gold=[put()], checks=["is_empty"])
    assert failed(scored(template, both, [put()])) == ["is_empty"]


def test_a_turn_that_was_never_reached_fails(template):
    two = task({"gold": []}, {"gold": []})
    assert failed(scored(template, two, [])) == ["turn 1"]


def test_a_call_where_none_is_wanted_fails_by_what_it_changed(template):
    none = task(gold=[])
    assert scored(template, none, []).reward == 1.0
    assert scored(template, none, [call("ask", item="tea")]).reward == 1.0
    assert scored(template, none, [put()]).reward == 0.0
    strict = scored(template, none, [call("ask", item="tea")], strict_abstention=True)
    assert (strict.reward, failed(strict)) == (0.0, ["turn 0 abstention"])
    assert scored(template, none, [], strict_abstention=True).reward == 1.0


def test_hidden_tools_are_not_executed_in_a_replay(template):
    hidden = task({"gold": [], "hidden": ["put"]}, {"gold": [put()]})
    assert scored(template, hidden, [put()], [put()]).reward == 1.0


def odd(template, source):
    """A template whose tool `odd` runs this, with a task that calls it."""
    return shop(template, WORLD.replace("        raise NotImplementedError", source))


def play(template, *made, checks=()):
    calls = [
        ToolCall(id="1", tool=one["tool"], arguments=json.dumps(one["arguments"])) for one in made
    ]
    return replay(template, task(gold=[], checks=checks), [calls])


CRASHES = [
    "        1 / 0",
    "        return {('a', 'b'): 1}",
    "        x = []; x.append(x); return x",
    "        return '\\ud800'",
    "        raise ToolError('a', 'b', argument='nothing')",
    "        raise ToolError('a', 'b', argument='how', maximum='many')",
    "        raise ToolError('a', 'b', argument='how', allowed={1, 'a'})",
    "        raise ToolError('a', 'b', argument='how', allowd=[1])",
    "        raise ToolError('a', 'b', requires='askk')",
    "        raise SystemExit",
    "        raise ToolError(404, 'b')",
    "        raise ToolError('a', None)",
    "        raise ToolError('a', '\\ud800')",
    "        self.shelf['loop'] = self.shelf",
    "        self.state = 3",
]


@pytest.mark.parametrize("source", CRASHES)
def test_a_tool_that_breaks_is_the_environments_failure(tmp_path, source):
    broken = odd(tmp_path / "lamp", source)
    with pytest.raises(EnvironmentFailure, match=r"lamp|Shop: state"):
        play(broken, call("odd", how="x"))


def test_a_check_that_breaks_is_the_environments_failure(tmp_path):
    broken = shop(tmp_path / "lamp", WORLD.replace("return not any", "return 1 / 0 or any"))
    with pytest.raises(EnvironmentFailure, match="checks of task t: ZeroDivisionError"):
        play(broken, checks=["is_empty"])


def test_a_check_that_is_not_there_is_the_environments_failure(template):
    with pytest.raises(EnvironmentFailure, match="'is_emty'"):
        play(template, checks=["is_emty"])


def test_a_refusal_cites_the_declared_rule_with_the_live_value_in_front(template):
    (done,) = play(template, call("take", item="tea", count=7)).turns[0].executed
    assert (done.error.kind, done.error.code, done.error.message) == (
        "refused",
        "few",
        "Not so many.",
    )
    assert (done.error.argument, done.error.received, done.error.rule.maximum) == ("count", 7, 5)
    (other,) = play(template, call("take", item="gin", count=7)).turns[0].executed
    assert other.error.rule.stated() == {}
    assert done.output == other.output == ""


def test_a_result_is_text_or_json(tmp_path):
    template = odd(tmp_path / "lamp", "        return {'a': [how, None, 1.5]}")
    (done,) = play(template, call("odd", how="é")).turns[0].executed
    assert done.output == '{"a": ["é", null, 1.5]}'
    (text,) = play(template, put()).turns[0].executed
    assert text.output == "done"


def test_gold_that_does_not_go_through_is_the_environments_failure(template):
    wrong = task({"gold": [put()]}, {"gold": [call("take", item="gin", count=1)]})
    with pytest.raises(
        EnvironmentFailure, match="task t, turn 1: a gold call fails: call 0, take: Noth"
    ):
        GoldReplays(template).of(wrong)
    outside = task(gold=[call("put", item="tea", count="2")])
    with pytest.raises(EnvironmentFailure) as caught:
        GoldReplays(template).of(outside)
    assert "call 0, put: it breaks its contract: count: Input should be a valid integer" in str(
        caught.value
    )
    assert 'found "2".' in str(caught.value)


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ({"gold": [put()], "hidden": ["put"]}, "call 0, put: the tool is hidden in this turn."),
        ({"gold": [put(), call("putt")]}, "call 1, putt: there is no such tool.\nDid you mean"),
        ({"gold": [call("put", item="tea")]}, "call 0, put: it breaks its contract: count: Field"),
        ({"gold": [{**put(), "arguments": {"x": 1}}]}, "x: no such key.\nKeys: item, count."),
    ],
)
def test_a_gold_call_that_never_reaches_its_tool_is_told_why(template, turn, said):
    with pytest.raises(EnvironmentFailure) as caught:
        GoldReplays(template).of(task(turn))
    assert said in str(caught.value)


def test_gold_with_a_tool_that_its_task_does_not_have_is_told_so(template):
    without = task(gold=[put()]).model_copy(update={"tools": ("ask",)})
    with pytest.raises(EnvironmentFailure, match="put: the tool is not among the task's tools"):
        GoldReplays(template).of(without)


def test_gold_passes_its_own_verifier_and_is_replayed_once(template):
    gold = GoldReplays(template, keep=1)
    first = gold.of(task(gold=[put()]))
    assert gold.of(task(gold=[put()])) is first
    assert [turn.state for turn in first.turns] == [{"shelf": {"tea": 7}}]


def test_gold_is_written_as_a_policy_would_write_it():
    ((made,),) = gold_calls(task(gold=[put(item="é")]))
    assert (made.tool, made.arguments) == ("put", '{"item": "é", "count": 2}')


def test_every_replay_starts_from_a_fresh_world(template):
    assert play(template, put()) == play(template, put())


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Word(str, Enum):  # noqa: UP042 - what an author may write
    A = "a"
    B = "b"


class Thing:
    def __init__(self, size):
        self.size = size
        self._secret = object()


class World(Environment):
    def __init__(self, value):
        super().__init__()
        self.value = value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Mood.GOOD, "good"),
        (Word.A, "a"),
        ({Mood.GOOD: 1}, {"good": 1}),
        ({1: {2}}, {"1": [2]}),
        ((1, [2]), [1, [2]]),
        ({"b", "a"}, ["a", "b"]),
        (Thing(3), {"size": 3}),
        (None, None),
        (True, True),
        (1.5, 1.5),
        (complex(1), "(1+0j)"),
    ],
)
def test_a_state_is_plain_json(value, plain):
    state = World(value).state()
    assert state == {"value": plain}
    assert json.loads(json.dumps(state)) == state


def test_a_state_is_a_copy():
    world = World([[1]])
    before = world.state()
    world.value[0].append(2)
    assert before == {"value": [[1]]}


def test_the_contract_hash_covers_tasks_world_and_gold(tmp_path, template):
    same = shop(tmp_path / "same")
    assert environment_hash(same) == environment_hash(template)
    other = shop(tmp_path / "other", WORLD.replace('return "done"', 'return "put"'))
    assert environment_hash(other) != environment_hash(template)
    lines = (same.folder / "tasks.jsonl").read_text()
    (same.folder / "tasks.jsonl").write_text(lines.replace("Please.", "Do."))
    assert environment_hash(load_environment(same.folder)) != environment_hash(template)
    (same.folder / "tasks.jsonl").write_text(lines)
    (same.folder / "slots.toml").write_text('[put]\naffordance = "Puts."\n')
    assert environment_hash(load_environment(same.folder)) == environment_hash(template)
