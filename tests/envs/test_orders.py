"""The shop: it is sound, its money adds up whatever is called, and it refuses as it should."""

import json
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.envs.contract import Accepted, accept
from seal.envs.registry import load_environment
from seal.envs.verify import GoldReplays, execute, gold_calls, replay, verify, visible_tools
from seal.errors import ToolError
from seal.models.reading import stands_in, states
from seal.soundness import check_environment
from seal.types import SPLITS, Task, ToolCall

CENTS_VERIFY, CENTS_CASE, EUROS = "orders", "orders@2", "orders@6"
TOOLS = (
    *("get_order", "check_stock", "verify_customer", "open_case", "refund_order"),
    *("cancel_order", "send_replacement", "change_delivery"),
)


shop = cache(load_environment)


def world_of(template, index=0):
    return template.new_world(template.tasks("train")[index])


def sent(template, world, tool, **arguments):
    """What came of one call, refusals included."""
    call = ToolCall(id="c", tool=tool, arguments=json.dumps(arguments))
    accepted = accept(template.contract, call, TOOLS)
    assert isinstance(accepted, Accepted), accepted
    return execute(template, world, accepted, "c")


def refusal(template, world, tool, **arguments):
    error = sent(template, world, tool, **arguments).error
    assert error is not None
    return error


def first(world, status):
    return next(number for number, order in world.orders.items() if order["status"] == status)


def a_code(template, key):
    return next(iter(template.conventions[key].values()))


def refund_of(template, number, amount):
    return {"order_no": number, "amount": amount, "cause": a_code(template, "causes")}


def ready(template, world, number):
    """Do what the shop wants done before a refund."""
    customer = world.orders[number]["customer"]
    postcode = template.tasks("train")[0].state["postcodes"][customer]
    sent(template, world, "verify_customer", customer=customer, postcode=postcode)
    sent(template, world, "open_case", order_no=number, cause=a_code(template, "causes"))


def flat(task):
    return [call for turn in task.turns for call in turn.gold]


@pytest.mark.parametrize("name", ["orders@1", "orders@3"])
def test_the_shop_passes_every_check(name):
    assert [f.message for f in check_environment(shop(name)) if not f.passed] == []


def test_seeds_draw_shops_that_differ_in_every_convention():
    drawn = [shop(f"orders@{seed}").conventions for seed in range(12)]
    for key in drawn[0]:
        assert len({json.dumps(one[key]) for one in drawn}) > 1, key
    assert {one["refund_needs"] for one in drawn} == {None, "verify_customer", "open_case"}
    needs = [template.contract["refund_order"].rule.requires for template in map(shop, NEEDS)]
    assert needs == list(NEEDS.values())


NEEDS = {CENTS_VERIFY: "verify_customer", CENTS_CASE: "open_case", EUROS: None}


def test_the_original_words_state_about_half_of_the_rules():
    template = shop(CENTS_CASE)
    stated = []
    for name, tool in template.renderer.tools(template.original).items():
        contract = template.contract[name]
        stated += [states(rule, tool.words()) for rule in contract.rules.values()]
        if contract.rule.requires:
            stated.append(stands_in(contract.rule.requires, tool.words()))
    assert (sum(stated), len(stated)) == (7, 14)


def test_tasks_have_all_their_kinds_of_turns():
    tasks = shop(CENTS_CASE).tasks("train")
    assert {len(task.turns) for task in tasks if task.group == "hard"} == {3, 4}
    assert {len(task.turns) for task in tasks} == {1, 2, 3, 4}
    assert {call.tool for task in tasks for call in flat(task)} == {*TOOLS} - {"verify_customer"}
    idle = [turn for task in tasks for turn in task.turns if turn.gold == ()]
    assert 0.2 < len(idle) / sum(len(task.turns) for task in tasks) < 0.4
    assert all(flat(task) for task in tasks)
    assert {text for task in tasks for turn in task.turns for text in turn.answer} == {
        *("waiting", "sent", "delivered")
    }


@pytest.mark.parametrize("name", [CENTS_VERIFY, CENTS_CASE, EUROS])
def test_the_longest_turns_have_no_step_to_waste(name):
    template = shop(name)
    steps = template.manifest.limits.steps
    longest = [max(len(turn.gold) for turn in task.turns) for task in template.tasks("train")]
    assert max(longest) == steps - 1
    hard = [n for n, t in zip(longest, template.tasks("train"), strict=True) if t.group == "hard"]
    assert set(hard) == {steps - 1}
    harm = template.original.texts["send_replacement.affordance"]
    assert "get_order" in harm
    assert "check_stock" in harm


def test_what_comes_too_late_is_declined_and_nothing_else_is():
    template = shop(CENTS_VERIFY)
    last = template.conventions["return_days"]
    assert f"up to {last} days after arrival" in template.renderer.prompt(template.original)
    told = 0
    for task in template.tasks(None):
        for turn in task.turns:
            for days in map(int, re.findall(r"(\d+) days ago", turn.user)):
                told += 1
                assert not (days > last and turn.gold)
                # In time, and still nothing to do yet: something is missing.
                assert days > last or turn.gold or task.group == "medium"
    assert told > 300


def test_a_refund_takes_what_the_shop_needs_first():
    for name, needs in NEEDS.items():
        template = shop(name)
        world = world_of(template)
        number = first(world, "delivered")
        refund = refund_of(template, number, 1)
        if needs is None:
            assert sent(template, world, "refund_order", **refund).error is None
            continue
        error = refusal(template, world, "refund_order", **refund)
        assert (error.code, error.message, error.rule.requires) == ("not_ready", "Not yet.", needs)
        ready(template, world, number)
        assert sent(template, world, "refund_order", **refund).error is None


@pytest.mark.parametrize("name", [CENTS_VERIFY, CENTS_CASE, EUROS])
def test_a_refund_is_at_most_what_is_left_and_the_refusal_says_how_much(name):
    template = shop(name)
    world = world_of(template)
    number = first(world, "delivered")
    ready(template, world, number)
    cents = 1 if template.conventions["currency"] == "cents" else 100
    order = world.orders[number]
    left = (order["paid"] - order["refunded"]) / cents
    error = refusal(template, world, "refund_order", **refund_of(template, number, 10**6))
    assert (error.code, error.argument, error.rule.maximum) == ("too_much", "amount", left)
    assert error.rule.unit == template.conventions["currency"]
    sent(template, world, "refund_order", **refund_of(template, number, left - 10))
    error = refusal(template, world, "refund_order", **refund_of(template, number, 10.5))
    assert error.rule.maximum == pytest.approx(10)
    rest = sent(template, world, "refund_order", **refund_of(template, number, 10))
    assert rest.output == "paid back"
    assert order["refunded"] == order["paid"]


def test_a_wrong_unit_of_money_or_goods_raises_nothing_and_fails():
    template = shop(CENTS_VERIFY)
    replays = GoldReplays(template)
    seen = set()
    for task in template.tasks("train"):
        calls = gold_calls(task)
        for turn, made in zip(task.turns, calls, strict=True):
            for place, call in enumerate(turn.gold):
                silent = {k: v for k, v in call.as_said.items() if k in ("amount", "quantity")}
                if silent and len(seen) < 20:
                    seen.add((task.id, *silent))
                    spoilt = json.dumps({**call.arguments, **silent})
                    right, made[place] = (
                        made[place],
                        made[place].model_copy(update={"arguments": spoilt}),
                    )
                    played = replay(template, task, calls)
                    made[place] = right
                    assert not [d.error for t in played.turns for d in t.executed if d.error]
                    answers = [" ".join(turn.answer) for turn in task.turns]
                    score = verify(template, task, replays.of(task), played, answers)
                    assert score.reward == 0.0
    assert {kind for _, kind in seen} == {"amount", "quantity"}


def test_refusals_say_what_is_wrong_and_cite_the_rule():
    template = shop(CENTS_CASE)
    world = world_of(template)
    waiting, delivered = first(world, "waiting"), first(world, "delivered")
    depot, cause = a_code(template, "depots"), a_code(template, "causes")
    item = world.orders[delivered]["item"]
    other = next(one for one in template.conventions["goods"] if one != item)
    goods = {"order_no": delivered, "item": item, "depot": depot, "quantity": 1}
    left = world.stock[f"{item} {depot}"]
    expected = [
        ("get_order", {"order_no": "1234"}, "unknown_order", "order_no"),
        ("cancel_order", {"order_no": delivered}, "wrong_state", "order_no"),
        ("change_delivery", {"order_no": waiting, "day": "someday"}, "unknown_day", "day"),
        ("open_case", {"order_no": waiting, "cause": "late"}, "unknown_cause", "cause"),
        ("check_stock", {"item": item, "depot": "mill"}, "unknown_depot", "depot"),
        ("check_stock", {"item": "dogs", "depot": depot}, "unknown_item", "item"),
        ("verify_customer", {"customer": "Novak", "postcode": "1"}, "no_match", None),
        ("send_replacement", goods | {"order_no": waiting}, "wrong_state", "order_no"),
        ("send_replacement", goods | {"item": other}, "other_item", "item"),
        ("send_replacement", goods | {"quantity": left + 1}, "no_stock", "quantity"),
        ("send_replacement", goods | {"quantity": 0}, "no_stock", "quantity"),
    ]
    before = world.state()
    for tool, arguments, code, argument in expected:
        error = refusal(template, world, tool, **arguments)
        assert (error.code, error.argument) == (code, argument), tool
        declared = template.contract[tool].rules.get(argument)
        assert declared is None or declared.stated().items() <= error.rule.stated().items()
    assert error.rule.maximum == left
    assert world.state() == before
    sent(template, world, "open_case", order_no=delivered, cause=cause)
    again = refusal(template, world, "open_case", order_no=delivered, cause=cause)
    assert again.code == "case_open"


STATE = shop(CENTS_CASE).tasks("train")[0].state
NUMBERS = st.sampled_from([*STATE["orders"], "1234"])
CODES = st.sampled_from([*shop(CENTS_CASE).conventions["causes"].values(), "late"])
PLACES = st.sampled_from([place.split(" ") for place in STATE["stock"]])
CALLS = st.one_of(
    st.tuples(st.just("open_case"), st.fixed_dictionaries({"order_no": NUMBERS, "cause": CODES})),
    st.tuples(st.just("cancel_order"), st.fixed_dictionaries({"order_no": NUMBERS})),
    st.tuples(
        st.just("refund_order"),
        st.fixed_dictionaries(
            {"order_no": NUMBERS, "amount": st.floats() | st.integers(0, 9000), "cause": CODES}
        ),
    ),
    st.builds(
        lambda number, place, quantity: (
            "send_replacement",
            {"order_no": number, "item": place[0], "depot": place[1], "quantity": quantity},
        ),
        NUMBERS,
        PLACES,
        st.integers(),
    ),
)


@pytest.mark.parametrize("name", [CENTS_CASE, EUROS])
@given(calls=st.lists(CALLS, max_size=30))
@settings(max_examples=60)
def test_money_adds_up_whatever_is_called(name, calls):
    template = shop(name)
    task = Task(id="t", scenario="t", turns=({"user": "x"},), state=STATE)
    world = type(world_of(template))(
        shop(CENTS_CASE).conventions
        | {key: template.conventions[key] for key in ("currency", "refund_needs")}
    )
    world.reset(task)
    start, placed = world.balance, set(world.orders)
    goods = sum(world.stock.values())
    for tool, arguments in calls:
        try:
            world.call(tool, arguments)
        except ToolError:
            continue
        assert world.final_checks()["money_adds_up"]()
    back = sum(cents for _, cents, _ in world.refunds)
    back += sum(
        order["paid"] - STATE["orders"][number]["refunded"]
        for number, order in world.orders.items()
        if order["status"] == "cancelled"
    )
    assert world.balance == start - back
    assert set(world.orders) == placed
    assert goods - sum(world.stock.values()) == sum(made[-1] for made in world.replacements)
    assert all(left >= 0 for left in world.stock.values())


def test_the_check_sees_money_that_does_not_add_up():
    world = world_of(shop(CENTS_CASE))
    adds_up = world.final_checks()["money_adds_up"]
    assert adds_up()
    world.balance += 1
    assert not adds_up()
    order = next(iter(world.orders.values()))
    order["refunded"] += order["paid"] + 1
    world.balance -= order["paid"] + 2
    assert not adds_up()


def test_what_a_perfect_agent_does(golden):
    template = shop(CENTS_CASE)
    chosen = {}
    for task in template.tasks("train"):
        chosen.setdefault(task.group, task)
    lines = []
    for task in chosen.values():
        assert task.split in SPLITS
        lines.append(f"{task.id}, {task.group}")
        played = GoldReplays(template).of(task)
        for turn, done in zip(task.turns, played.turns, strict=True):
            lines.append(f"  user: {turn.user}")
            assert set(visible_tools(template, task, turn.hidden)) == set(TOOLS)
            for one in done.executed:
                lines.append(f"    {one.tool} {json.dumps(one.arguments)} -> {one.output}")
            lines += [f"    answer: {text}" for text in turn.answer]
    golden("orders_gold.txt", "\n".join(lines) + "\n")
