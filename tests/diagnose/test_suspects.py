"""Rollouts whose gold is in doubt get one label that says so, and are in no count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seal
from seal.diagnose.suspects import FORM_ALONE, same_but_for_form
from seal.envs import load_environment
from seal.rollout.agent import Arena
from seal.rollout.run import RunSettings, run
from seal.train.labels import turn_labels
from seal.train.rewards import progress_reward
from seal.types import GOLD_SUSPECT, Kind
from tests.diagnose.office import call, diagnosed, played, task_of
from tests.envs.test_suspects import LISTED
from tests.factories import TOML, edited, write_environment

SHOP = '''
from seal.envs import Environment, tool
from seal.types import Rule, Task


class Shop(Environment):
    """A till that keeps what it is told, as it is told."""

    def reset(self, task: Task) -> None:
        self.paid = []
        self.codes = []

    @tool
    def pay(self, amount: float | str) -> str:
        self.paid = [*self.paid, str(amount)]
        return f"paid {amount}"

    @tool(code=Rule(format="65.0"))
    def enter(self, code: str) -> str:
        self.codes = [*self.codes, code]
        return "entered"

    @tool(mutates=False)
    def price(self, of: str) -> str:
        return f'{{"price": {of}}}'
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    tasks = [task_of([call("price", of="1")]).model_dump(mode="json")]
    folder = tmp_path_factory.mktemp("shop") / "shop"
    return Arena(
        load_environment(write_environment(folder, world=SHOP, tools={}, slots="", tasks=tasks))
    )


@pytest.mark.parametrize(
    ("gold", "made", "suspect"),
    [
        (call("pay", amount=65.0), ("pay", {"amount": "65"}), True),
        (call("pay", amount="65"), ("pay", {"amount": 65.5}), False),
        (call("pay", amount="065"), ("pay", {"amount": "65"}), False),
        (call("price", of="65.0"), ("price", {"of": "65"}), True),
        (call("price", of="65.0"), ("price", {"of": "66"}), False),
        (call("enter", code="65.0"), ("enter", {"code": "65"}), False),
        (call("enter", code="66.0"), ("enter", {"code": "65"}), False),
    ],
)
def test_a_verdict_that_turns_on_the_form_of_a_number_alone_says_nothing(shop, gold, made, suspect):
    found = diagnosed(shop, task_of([gold]), [[made]])
    assert found.reward == 0.0
    assert found.suspect == (FORM_ALONE if suspect else "")
    assert (found.fault is None) == suspect
    if suspect:
        (only,) = found.diagnoses
        assert (only.kind, only.code) == (Kind.UNSCORABLE, GOLD_SUSPECT)


def test_an_answer_may_say_a_number_in_another_form(shop):
    task = task_of([call("price", of="65")], answers={0: ["65.0"]})
    steps = [[("price", {"of": "65"})]]
    assert diagnosed(shop, task, steps, answers={0: "It is 65."}).suspect == FORM_ALONE
    assert diagnosed(shop, task, steps, answers={0: "It is 66."}).suspect == ""


def test_a_suspect_rollout_trains_nothing(shop):
    task = task_of([call("pay", amount=65.0)])
    found = diagnosed(shop, task, [[("pay", {"amount": "65"})]])
    rollout = played(shop, task, [[("pay", {"amount": "65"})]]).rollout
    assert turn_labels(task, found) == ()
    assert progress_reward(task, found, rollout) is None


def test_suspect_tasks_are_reported_and_counted_nowhere(tmp_path):
    house = write_environment(tmp_path / "lamp", world=LISTED)
    result = run(house, "sim:lost", RunSettings(split=None), out=tmp_path / "run")
    assert result.suspect == ("lamp-03",)
    found = seal.diagnose(tmp_path / "run")
    assert [one.rollout for one in found.diagnosed if one.suspect] == ["lamp-03#0"]
    assert (found.profile.rollouts, found.profile.suspect) == (39, 1)
    assert all("lamp-03#0" not in row.examples for row in found.profile.rows)
    (house / "env.toml").write_text(f'trusted = ["lamp-03"]\n{TOML}')
    found = seal.diagnose(tmp_path / "run")
    assert (found.profile.rollouts, found.profile.suspect) == (40, 0)


def test_suspect_tasks_drive_no_search(tmp_path):
    from seal.config import EvolveConfig
    from seal.evolve.ledger import Ledger
    from seal.evolve.offline import OfflineRewriter
    from seal.evolve.search import Search
    from seal.models.registry import open_policy
    from seal.rollout.batch import RolloutSettings
    from seal.soundness.facts import collect_facts
    from tests.factories import lamp_tasks

    class Silent:
        def stage(self, text):
            """Say nothing."""

        def generation(self, generation):
            """Say nothing."""

    listed = edited(LISTED, "task='lamp-03'", "task='lamp-05'")
    tasks = [{**task, "split": "train"} for task in lamp_tasks()]
    house = load_environment(write_environment(tmp_path / "lamp", world=listed, tasks=tasks))
    ledger = Ledger(open_policy("sim:lost"), RolloutSettings(), 500, None)
    facts = collect_facts(house)
    search = Search(Arena(house), facts, OfflineRewriter(), ledger, EvolveConfig(), Silent())
    search.generation(0)
    assert {key[2] for key in ledger._known} == {task["id"] for task in tasks} - {"lamp-05"}


def test_suspect_tasks_are_not_trained_on(tmp_path):
    from seal.config import LoopConfig, LoopSearchConfig
    from seal.evolve.offline import OfflineRewriter
    from seal.loop.generations import Loop
    from seal.loop.run import Silent
    from seal.records import RunFolder
    from seal.rollout.batch import RolloutSettings

    house = load_environment(write_environment(tmp_path / "lamp", world=LISTED))
    config = LoopConfig(evolve=LoopSearchConfig(budget=0))
    folder = RunFolder(tmp_path / "run")
    loop = Loop(house, OfflineRewriter(), config, RolloutSettings(), folder, Silent())
    left_out = {task.id for task in house.tasks("train")} - {task.id for task in loop.tasks()}
    assert left_out == {"lamp-03"}


numbers = st.one_of(st.integers(-999, 999), st.floats(-99, 99).map(lambda x: round(x, 2)))


def other_form(value):
    return f"{float(value)}" if isinstance(value, int) else value


@given(st.recursive(numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_another_form_of_the_same_numbers_is_the_same_and_another_number_is_not(value):
    def mapped(what, change):
        if isinstance(what, list):
            return [mapped(one, change) for one in what]
        if isinstance(what, dict):
            return {key: mapped(one, change) for key, one in what.items()}
        return change(what)

    assert same_but_for_form(value, mapped(value, other_form))
    assert same_but_for_form(mapped(value, other_form), value)
    empty = mapped(value, lambda _: 0) == mapped(value, lambda _: 1)
    assert same_but_for_form(value, mapped(value, lambda x: x + 1)) == empty
