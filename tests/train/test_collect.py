"""Which rollouts a step of training gets."""

from collections.abc import Callable
from itertools import repeat

import pytest

from seal.config import TrainConfig
from seal.errors import EnvironmentFailure, ModelFailure
from seal.models.local import key_of
from seal.models.protocol import PolicyInput, Reply
from seal.models.sampler import Stretch, Tokens
from seal.rollout.agent import Arena
from seal.train import collect
from seal.train.collect import Collected, Collector, task_order
from seal.types import GOLD_SUSPECT, Diagnosis, Kind, ToolCall
from tests.train.bell import bell


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    return Arena(bell(tmp_path_factory.mktemp("bell") / "bell"))


Say = Callable[[PolicyInput], int | None]


class Speller:
    """Rings as often as it is told to, then says so; its tokens are made up: one a message."""

    name, version, rows = "speller", "1", 3

    def __init__(self, times: Say) -> None:
        self.times = times
        self.keep_tokens = False
        self.without_tokens: set[str] = set()
        self.samples: list[tuple[str, int]] = []
        self._said: dict[str, list[Stretch]] = {}
        self._waiting: list[PolicyInput] = []
        self._kept: dict[str, Tokens] = {}

    def act(self, given: PolicyInput) -> Reply:
        raise NotImplementedError

    def submit(self, given: PolicyInput) -> None:
        self._waiting.append(given)

    def replies(self) -> list[tuple[str, Reply]]:
        given = self._waiting.pop(0)
        stretches = self._said.setdefault(key_of(given), [])
        if not stretches:
            self.samples.append((given.task.id, given.sample))
        stretches += [Stretch([1, 2]), Stretch([3, given.turn], [-0.5, -0.25], given.turn)]
        times = None if given.steps_taken else self.times(given)
        if times is None:
            return [(key_of(given), Reply("Done."))]
        call = ToolCall(id=str(len(stretches)), tool="ring", arguments=f'{{"times": {times}}}')
        return [(key_of(given), Reply(calls=(call,)))]

    def release(self, key: str) -> None:
        said = self._said.pop(key)
        if self.keep_tokens and key not in self.without_tokens:
            self._kept[key] = Tokens([9, 9, 9], said)

    def tokens(self, key: str) -> Tokens | None:
        return self._kept.pop(key, None)


def right(given: PolicyInput) -> int | None:
    gold = given.task.turns[given.turn].gold
    return int(gold[0].arguments["times"]) if gold else None


def collector(arena: Arena, **changes) -> Collector:
    given = {"groups": 2, "group_size": 3, "max_tokens": 7, "reward": "outcome", **changes}
    config = TrainConfig(**given)
    return Collector(arena.template.tasks("train"), config, seed=4)


def keys(rows: list[Collected]) -> list[tuple[str, int]]:
    return [(row.rollout.task, row.rollout.sample) for row in rows]


def test_groups_come_whole_and_in_order_with_tokens_reward_and_labels(arena):
    tasks = arena.template.tasks("train")
    policy = Speller(lambda given: right(given) if given.sample % 2 else 3)
    rows = collector(arena).collect(repeat(arena), policy, [tasks[3], tasks[0]], step=5)
    assert [row.task.id for row in rows] == ["bell-3"] * 3 + ["bell-0"] * 3
    assert [row.reward for row in rows] == [row.rollout.reward for row in rows]
    assert {row.reward for row in rows} == {0.0, 1.0}
    for row in rows:
        good = row.rollout.sample % 2 == 1
        assert len(row.labels) == len(row.task.turns)
        assert (row.labels[0] == "pass") == good
        assert row.diagnosed.rollout == row.rollout.id
        assert row.rollout.sampling.temperature == 1.0
        assert row.rollout.sampling.max_tokens == 7
        # The prompt is the system message and the first user message.
        assert row.record.prompt_ids == [9, 9, 9, 1, 2]
        assert row.record.completion_ids[:4] == [3, 0, 1, 2]
        assert row.record.sampled[:4] == [True, True, False, False]
        assert row.record.log_probs[:4] == [-0.5, -0.25, 0.0, 0.0]
    assert policy.keep_tokens is False
    assert policy._kept == {}


def test_no_two_rollouts_of_a_run_share_a_sample_number(arena):
    task = arena.template.tasks("train")[0]
    made = collector(arena)
    found = [
        one
        for step in range(4)
        for one in keys(made.collect(repeat(arena), Speller(right), [task, task], step))
    ]
    assert len(set(found)) == len(found) == 24
    again = collector(arena).collect(repeat(arena), Speller(right), [task, task], 3)
    assert keys(again) == found[18:]


def test_a_group_that_something_of_ours_broke_is_made_again_as_a_whole(arena):
    tasks = arena.template.tasks("train")[:2]
    plain = keys(collector(arena).collect(repeat(arena), Speller(right), tasks, 0))
    # Twenty jams the bell, which is a failure of the environment.
    broken = plain[1]
    policy = Speller(lambda given: 20 if (given.task.id, given.sample) == broken else right(given))
    made = collector(arena)
    rows = made.collect(repeat(arena), policy, tasks, 0)
    assert [row.task.id for row in rows] == ["bell-0"] * 3 + ["bell-1"] * 3
    assert not set(keys(rows[:3])) & set(plain[:3])
    assert keys(rows[3:]) == plain[3:]
    assert len(policy.samples) == 9
    assert made.again == 1
    assert all(row.rollout.failure is None for row in rows)


def test_a_task_that_never_works_gives_way_to_another(arena):
    tasks = arena.template.tasks("train")
    policy = Speller(lambda given: 20 if given.task.id == "bell-0" else right(given))
    rows = collector(arena).collect(repeat(arena), policy, [tasks[1], tasks[0]], 0)
    others = {row.task.id for row in rows[3:]}
    assert len(others) == 1
    assert "bell-0" not in others
    assert [row.task.id for row in rows[:3]] == ["bell-1"] * 3
    assert len({key for key in policy.samples if key[0] == "bell-0"}) == 3 * collect.TRIES


def test_where_nothing_works_it_is_said_what_broke(arena):
    tasks = arena.template.tasks("train")[:1]
    policy = Speller(lambda _: 20)
    with pytest.raises(EnvironmentFailure, match=r"step 7: 1 of 1 groups.*\n.*jammed"):
        collector(arena).collect(repeat(arena), policy, tasks, 7)
    assert len(policy.samples) == 3 * collect.TRIES * collect.TASKS
    assert len({name for name, _ in policy.samples}) == collect.TASKS
    assert policy.keep_tokens is False


def test_a_model_that_fails_is_the_models_failure(arena):
    class Broken(Speller):
        def replies(self):
            raise ModelFailure("no weights")

    with pytest.raises(ModelFailure, match="no weights"):
        collector(arena).collect(repeat(arena), Broken(right), arena.template.tasks("train")[:1], 0)


def test_a_rollout_without_tokens_is_made_again(arena):
    tasks = arena.template.tasks("train")[:1]
    first = keys(collector(arena).collect(repeat(arena), Speller(right), tasks, 0))
    policy = Speller(right)
    policy.without_tokens = {f"{first[2][0]}#{first[2][1]}"}
    rows = collector(arena).collect(repeat(arena), policy, tasks, 0)
    assert not set(keys(rows)) & set(first)


@pytest.mark.parametrize(
    ("settings", "code", "again"),
    [
        ({}, None, False),
        ({"reward": "progress"}, None, True),
        ({"reweighting": "paper"}, None, True),
        # The reward itself says nothing where gold is in doubt.
        ({}, GOLD_SUSPECT, True),
        ({"reward": "progress"}, GOLD_SUSPECT, True),
    ],
)
def test_diagnosis_matters_where_reward_or_weights_need_it_or_gold_is_in_doubt(
    arena, monkeypatch, settings, code, again
):
    diagnose = collect.diagnose_rollout
    blind: list[str] = []

    def diagnosing(*arguments):
        found = diagnose(*arguments)
        if blind:
            return found
        blind.append(found.rollout)
        unscorable = Diagnosis(turn=0, kind=Kind.UNSCORABLE, code=code, found="gold broke")
        return found.model_copy(update={"diagnoses": (unscorable,), "fault": None})

    monkeypatch.setattr(collect, "diagnose_rollout", diagnosing)
    tasks = arena.template.tasks("train")[:1]
    made = collector(arena, **settings)
    rows = made.collect(repeat(arena), Speller(lambda _: 3), tasks, 0)
    assert (made.again == 1) == again
    assert (blind[0] in {row.rollout.id for row in rows}) == (not again)


def test_progress_ranks_what_the_verifier_fails(arena):
    tasks = [arena.template.tasks("train")[1]]
    policy = Speller(lambda given: 3 if given.turn >= given.sample % 3 else right(given))
    rows = collector(arena, reward="progress").collect(repeat(arena), policy, tasks, 0)
    assert sorted((row.reward, row.rollout.reward) for row in rows) == [
        (0.0, 0.0),
        (0.25, 0.0),
        (1.0, 1.0),
    ]


def test_the_order_goes_through_all_tasks_before_any_comes_again(arena):
    tasks = arena.template.tasks("train")
    order = task_order(tasks, 20, seed=1)
    assert len(order) == 20
    names = [task.id for task in order]
    assert set(names[:8]) == set(names[8:16]) == {task.id for task in tasks}
    assert names[:8] != names[8:16]
    assert task_order(tasks, 12, seed=1) == order[:12]
    assert task_order(tasks, 20, seed=2) != order
