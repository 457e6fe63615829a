"""Customer service of a shop whose codes, forms, units and prerequisites are drawn from a seed."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seal.envs import Environment, check, tool
from seal.errors import ToolError
from seal.types import GoldCall, Rule, Task, UserTurn

CUSTOMERS = ("Okafor", "Lindqvist", "Marchetti", "Devane", "Tanaka", "Brandt", "Sorel", "Novak")
GOODS = ("mugs", "plates", "lamps", "bowls", "vases", "mirrors", "candles", "jars", "glasses")
DEPOTS = ("harbour", "canal", "hilltop", "airfield", "riverside", "mill", "station")
CAUSES = ("damaged", "late", "stained", "incomplete", "faded", "cracked")
MONTHS = {"April": 30, "May": 31, "June": 30}
DAYS = tuple((day, month) for month, last in MONTHS.items() for day in range(1, last + 1))
NUMBER_FORMS = ("ORD-{}", "#{}", "{}/A", "o{}", "{}-K")
DATE_FORMS = ("{0:02}.{1:02}.", "{1:02}-{0:02}", "{0}/{1}", "{1:02}{0:02}", "{2:.3}-{0:02}")
"""Of day, month, and the month's name."""
WORDINGS: Mapping[str, tuple[str, ...]] = {
    "refund": (
        "Order {number} came {cause}, {age} days ago. I want {amount} back.",
        "{amount} back for order {number}, please. It arrived {age} days ago and was {cause}.",
    ),
    "refund, vague": ("Order {number} came {cause}, {age} days ago. I want some money back.",),
    "refund, rest": ("{amount}, please.", "Make it {amount}."),
    "replace": (
        "Send {pieces} {item} of order {number} again, from {depot}. It came {age} days ago.",
        "{pieces} {item} of order {number} broke, {age} days ago. I want new ones from {depot}.",
    ),
    "replace, vague": ("Send {pieces} {item} of order {number} again, it came {age} days ago.",),
    "replace, rest": ("From the {depot} depot.", "{depot} should send them."),
    "change": ("Deliver order {number} on {day}.", "Order {number} should come on {day} instead."),
    "change, vague": ("Deliver order {number} on another day.", "Order {number} comes too early."),
    "change, rest": ("On {day}, please.", "{day} would be good."),
    "cancel": ("Cancel order {number}.", "I do not need order {number} any more, take it back."),
    "case": ("Open a case for order {number}, it came {cause}. I want no money.",),
    "stock": ("Are there any {item} in the {depot} depot?", "Does {depot} have {item}?"),
    "state": ("Is order {number} waiting, sent or delivered?", "What state is order {number} in?"),
    "not ours": (
        "Can you get order {number} repaired?",
        "Send order {number} to my new address, please.",
        "Pay the money for order {number} out in cash.",
        "Order {number} was nice. Give me a discount on the next one.",
    ),
}
HELLOS = ("{0} here, postcode {1}.", "This is {0}, {1}.", "{0}, {1}.")
RULES: Mapping[str, Callable[[Any], Rule]] = {
    "order_no": lambda drawn: Rule(format=f'"{number_in(drawn, "1234")}" for 1234'),
    "day": lambda drawn: Rule(format=f'"{day_in(drawn, 24, "May")}" for 24 May'),
    "cause": lambda drawn: Rule(allowed=drawn["causes"]),
    "depot": lambda drawn: Rule(allowed=drawn["depots"]),
    "amount": lambda drawn: Rule(unit=drawn["currency"]),
    "quantity": lambda drawn: Rule(unit=f"boxes of {drawn['pack']}"),
}


def rules(*arguments: str) -> dict[str, Callable[[Any], Rule]]:
    """What the shop demands of these arguments, whichever tool has them."""
    return {name: RULES[name] for name in arguments}


def number_in(drawn: Mapping[str, Any], number: str) -> str:
    """An order number in the shop's form."""
    return str(drawn["number_form"]).format(number)


def day_in(drawn: Mapping[str, Any], day: int, month: str) -> str:
    """A day in the shop's form."""
    return str(drawn["date_form"]).format(day, tuple(MONTHS).index(month) + 4, month)


def draw_codes(rng: random.Random, names: tuple[str, ...], first: str, last: str) -> dict[str, str]:
    """A code of two signs for each name, none of them guessable."""
    codes = rng.sample([a + b for a in first for b in last], len(names))
    return dict(zip(rng.sample(names, len(names)), codes, strict=True))


class Orders(Environment):
    """The shop: its orders, its money, its depots, and what its tools insist on."""

    @classmethod
    def draw(cls, rng: random.Random) -> dict[str, Any]:
        return {
            "refund_needs": rng.choice([None, "verify_customer", "open_case"]),
            "depots": draw_codes(rng, tuple(rng.sample(DEPOTS, 3)), "BDFGHKMQRTVX", "23456789"),
            "causes": draw_codes(rng, tuple(rng.sample(CAUSES, 3)), "BDFGKQX", "CHJLMPRTVWZ"),
            "number_form": rng.choice(NUMBER_FORMS),
            "date_form": rng.choice(DATE_FORMS),
            "currency": rng.choice(["cents", "cents", "euros"]),
            "pack": rng.choice([2, 4, 6]),
            "return_days": rng.choice([14, 30, 60]),
            "goods": rng.sample(GOODS, 4),
        }

    @classmethod
    def generate(cls, conventions: Mapping[str, Any], rng: random.Random) -> Iterator[Task]:
        yield Scenario(conventions, rng).task()

    def reset(self, task: Task) -> None:
        placed = task.state["orders"].items()
        self.orders: dict[str, dict[str, Any]] = {number: dict(order) for number, order in placed}
        self.stock: dict[str, int] = dict(task.state["stock"])
        self.balance = sum(order["paid"] - order["refunded"] for order in self.orders.values())
        self.cases: dict[str, str] = {}
        self.refunds: list[list[Any]] = []
        self.replacements: list[list[Any]] = []
        self._postcodes: dict[str, str] = task.state["postcodes"]
        self._verified: set[str] = set()

    @tool(mutates=False, **rules("order_no"))
    def get_order(self, order_no: str) -> dict[str, Any]:
        """An order as it stands."""
        order = self._order(order_no)
        return order | {key: self._shown(order[key]) for key in ("paid", "refunded")}

    @tool(mutates=False, **rules("depot"))
    def check_stock(self, item: str, depot: str) -> int:
        """How much of an item is in a depot."""
        self._need_item(item)
        self._need_code("depot", depot)
        return self.stock[f"{item} {depot}"]

    @tool(mutates=False)
    def verify_customer(self, customer: str, postcode: str) -> str:
        """Verify a customer."""
        if self._postcodes.get(customer) != postcode:
            raise ToolError("no_match", "Name and postcode do not match.")
        self._verified.add(customer)
        return "verified"

    @tool(**rules("order_no", "cause"))
    def open_case(self, order_no: str, cause: str) -> str:
        """Open a case for an order."""
        self._order(order_no)
        self._need_code("cause", cause)
        if order_no in self.cases:
            raise ToolError("case_open", "There is a case already.")
        self.cases[order_no] = cause
        return "opened"

    @tool(requires=lambda drawn: drawn["refund_needs"], **rules("order_no", "amount", "cause"))
    def refund_order(self, order_no: str, amount: float, cause: str) -> str:
        """Pay back part of what an order cost."""
        order = self._order(order_no)
        self._need_code("cause", cause)
        self._need_refundable(order_no, order)
        left = self._shown(order["paid"] - order["refunded"])
        if amount > left:
            raise ToolError("too_much", "That is too much.", argument="amount", maximum=left)
        # An amount in the wrong unit raises nothing: too little is paid back.
        cents = round(amount * self._cents()) if amount > 0 else 0
        if cents < 1:
            raise ToolError("no_money", "That is nothing.", argument="amount")
        self._pay_back(order, cents)
        self.refunds.append([order_no, cents, cause])
        return "paid back"

    @tool(**rules("order_no"))
    def cancel_order(self, order_no: str) -> str:
        """Cancel an order that was not sent yet."""
        order = self._order(order_no, status="waiting")
        self._pay_back(order, order["paid"] - order["refunded"])
        order["status"] = "cancelled"
        return "cancelled"

    @tool(**rules("order_no", "depot", "quantity"))
    def send_replacement(self, order_no: str, item: str, depot: str, quantity: int) -> str:
        """Send goods of an order again."""
        order = self._order(order_no, status="delivered")
        self._need_item(item)
        self._need_code("depot", depot)
        if order["item"] != item:
            raise ToolError("other_item", "That was not ordered.", argument="item")
        left = self.stock[f"{item} {depot}"]
        if not 0 < quantity <= left:
            raise ToolError("no_stock", "Not that many.", argument="quantity", maximum=left)
        # Pieces in place of boxes raise nothing either: too much is sent.
        self.stock[f"{item} {depot}"] = left - quantity
        self.replacements.append([order_no, item, depot, quantity])
        return "sent"

    @tool(**rules("order_no", "day"))
    def change_delivery(self, order_no: str, day: str) -> str:
        """Change the day on which an order is delivered."""
        order = self._order(order_no, status="waiting")
        if day not in [day_in(self.conventions, *date) for date in DAYS]:
            raise ToolError("unknown_day", "That is no day here.", argument="day")
        order["day"] = day
        return "changed"

    @check
    def money_adds_up(self) -> bool:
        """Payments less refunds are the balance, and nobody got more than they paid."""
        orders = self.orders.values()
        sound = all(0 <= order["refunded"] <= order["paid"] for order in orders)
        return sound and self.balance == sum(order["paid"] - order["refunded"] for order in orders)

    def _cents(self) -> int:
        """Cents in the shop's unit of money."""
        return 1 if self.conventions["currency"] == "cents" else 100

    def _shown(self, cents: int) -> float:
        return cents if self._cents() == 1 else cents / 100

    def _pay_back(self, order: dict[str, Any], cents: int) -> None:
        order["refunded"] += cents
        self.balance -= cents

    def _order(self, order_no: str, status: str | None = None) -> dict[str, Any]:
        if order_no not in self.orders:
            raise ToolError("unknown_order", "There is no such order.", argument="order_no")
        order = self.orders[order_no]
        if status and order["status"] != status:
            raise ToolError("wrong_state", f"It is {order['status']}.", argument="order_no")
        return order

    def _need_refundable(self, order_no: str, order: Mapping[str, Any]) -> None:
        done = {"verify_customer": order["customer"] in self._verified}
        done |= {"open_case": order_no in self.cases, None: True}
        if not done[self.conventions["refund_needs"]]:
            raise ToolError("not_ready", "Not yet.")
        self._order(order_no, status="delivered")

    def _need_item(self, item: str) -> None:
        goods = self.conventions["goods"]
        if item not in goods:
            raise ToolError("unknown_item", "We do not sell that.", argument="item", allowed=goods)

    def _need_code(self, argument: str, code: str) -> None:
        if code not in self.conventions[f"{argument}s"].values():
            raise ToolError(f"unknown_{argument}", f"No such {argument}.", argument=argument)


Said = tuple[Any, Any]
"""A value as the shop writes it, and as the customer says it."""


def call(name: str, **arguments: Said) -> GoldCall:
    """A gold call; what the customer said is kept only where the shop wants it otherwise."""
    return GoldCall(
        tool=name,
        arguments={key: value for key, (value, _) in arguments.items()},
        as_said={key: said for key, (value, said) in arguments.items() if said != value},
    )


@dataclass(frozen=True)
class Wish:
    """One thing that a customer wants, how it is said, and the calls that do it."""

    kind: str
    said: Mapping[str, object]
    gold: tuple[GoldCall, ...] = ()
    answer: tuple[str, ...] = ()


class Scenario:
    """What one customer wants over one to four turns."""

    def __init__(self, conventions: Mapping[str, Any], rng: random.Random) -> None:
        self.conventions = conventions
        self.rng = rng
        self.customer, *others = rng.sample(CUSTOMERS, 3)
        self.postcodes = {name: str(rng.randint(10000, 99999)) for name in (self.customer, *others)}
        self.verified = False
        self.numbers = [str(number) for number in rng.sample(range(2000, 10000), 11)]
        self.orders: dict[str, dict[str, Any]] = {}
        self.delivered = [self._add(self.customer, "delivered") for _ in range(4)]
        self.waiting = [self._add(self.customer, "waiting") for _ in range(3)]
        statuses = rng.sample(["waiting", "sent", "delivered"], 2)
        self.looked_at = [self._add(self.customer, status) for status in statuses]
        for name in others:
            self._add(name, rng.choice(["waiting", "delivered"]))

    def _add(self, customer: str, status: str) -> str:
        """A new order, by the number that customers say."""
        number = self.numbers.pop()
        self.orders[self._number(number)[0]] = {
            "customer": customer,
            "item": self.rng.choice(self.conventions["goods"]),
            "paid": 50 * self.rng.randint(150, 400),
            "refunded": 50 * self.rng.randint(2, 30) if status == "delivered" else 0,
            "status": status,
            "day": day_in(self.conventions, *self.rng.choice(DAYS)),
        }
        return number

    def task(self) -> Task:
        """A task of a level drawn at random."""
        level = self.rng.choice(["easy", "medium", "hard"])
        simple = [self.refund, self.replace, self.change, self.cancel, self.case, self.look]
        if level == "easy":
            turns = [self._turn(self.rng.choice([*simple, self.refund])())]
            if not self.rng.randint(0, 5):
                turns.insert(0, self.decline())
        elif level == "medium":
            first, second = self.rng.sample(simple, 2)
            in_two = self.rng.randint(0, 1)
            turns = self.in_two() if in_two else [self._turn(first()), self._turn(second())]
        else:
            turns = [self._turn(self.rng.choice(simple)()), self.many()]
            turns += [self._turn(self.look())] if self.rng.randint(0, 1) else []
            turns.insert(self.rng.randint(0, len(turns)), self.decline())
        hello = self.rng.choice(HELLOS).format(self.customer, self.postcodes[self.customer])
        turns[0] = turns[0].model_copy(update={"user": f"{hello} {turns[0].user}"})
        goods, depots = self.conventions["goods"], self.conventions["depots"].values()
        stock = {f"{item} {code}": self.rng.randint(40, 60) for item in goods for code in depots}
        state = {"orders": self.orders, "stock": stock, "postcodes": self.postcodes}
        return Task(group=level, turns=tuple(turns), state=state, checks=("money_adds_up",))

    def _turn(self, wish: Wish, part: str = "", *, acts: bool = True) -> UserTurn:
        user = self.rng.choice(WORDINGS[wish.kind + part]).format(**wish.said)
        return UserTurn(user=user, gold=wish.gold if acts else (), answer=wish.answer)

    def in_two(self) -> list[UserTurn]:
        """A request that lacks something at first: the right thing is to ask."""
        wish = self.rng.choice([self.refund, self.replace, self.change])()
        return [self._turn(wish, ", vague", acts=False), self._turn(wish, ", rest")]

    def many(self) -> UserTurn:
        """Several requests in one turn, four calls in all: there is no step to waste."""
        wishes = [w() for w in self.rng.sample([self.refund, self.cancel, self.replace], 3)]
        if sum(len(wish.gold) for wish in wishes) < 4:
            wishes.append(self.change())
        user = " ".join(self._turn(wish).user for wish in wishes)
        return UserTurn(user=user, gold=tuple(one for wish in wishes for one in wish.gold))

    def decline(self) -> UserTurn:
        """What no tool can do, or what comes too late for the house rules."""
        kind = self.rng.choice(["not ours", "not ours", "refund", "replace"])
        if kind == "not ours":
            return self._turn(Wish(kind, {"number": self.delivered.pop()}))
        late = self.refund(late=True) if kind == "refund" else self.replace(late=True)
        return self._turn(late, acts=False)

    def refund(self, *, late: bool = False) -> Wish:
        """Some money back, after what the shop wants done before."""
        number, cause = self._number(self.delivered.pop()), self._code("causes")
        halves = self.rng.randint(7, 100)  # Of a euro, and less than is left of any order.
        euros = halves / 2 if halves % 2 else halves // 2
        amount = (halves * 50 if self.conventions["currency"] == "cents" else euros, euros)
        gold = [call("refund_order", order_no=number, amount=amount, cause=cause)]
        needs = self.conventions["refund_needs"]
        if needs == "open_case":
            gold.insert(0, call("open_case", order_no=number, cause=cause))
        if needs == "verify_customer" and not self.verified:
            who, code = self.customer, self.postcodes[self.customer]
            gold.insert(0, call("verify_customer", customer=(who, who), postcode=(code, code)))
        self.verified = self.verified or not late
        said = {"number": number[1], "cause": cause[1], "age": self._age(late)}
        money = f"{euros:.2f} euros" if halves % 2 else f"{euros} euros"
        return Wish("refund", said | {"amount": money}, tuple(gold))

    def replace(self, *, late: bool = False) -> Wish:
        number, depot = self._number(self.delivered.pop()), self._code("depots")
        item, pieces = self.orders[number[0]]["item"], 12 * self.rng.randint(1, 3)
        goods = {"item": (item, item), "quantity": (pieces // self.conventions["pack"], pieces)}
        said = {"number": number[1], "item": item, "depot": depot[1], "pieces": pieces}
        gold = call("send_replacement", order_no=number, depot=depot, **goods)
        return Wish("replace", said | {"age": self._age(late)}, (gold,))

    def change(self) -> Wish:
        number, date = self._number(self.waiting.pop()), self.rng.choice(DAYS)
        day = (day_in(self.conventions, *date), f"{date[0]} {date[1]}")
        gold = call("change_delivery", order_no=number, day=day)
        return Wish("change", {"number": number[1], "day": day[1]}, (gold,))

    def cancel(self) -> Wish:
        number = self._number(self.waiting.pop())
        return Wish("cancel", {"number": number[1]}, (call("cancel_order", order_no=number),))

    def case(self) -> Wish:
        number, cause = self._number(self.delivered.pop()), self._code("causes")
        gold = call("open_case", order_no=number, cause=cause)
        return Wish("case", {"number": number[1], "cause": cause[1]}, (gold,))

    def look(self) -> Wish:
        """A question about the stock, or one about an order, whose answer is checked."""
        if self.rng.randint(0, 1):
            depot, item = self._code("depots"), self.rng.choice(self.conventions["goods"])
            gold = call("check_stock", item=(item, item), depot=depot)
            return Wish("stock", {"item": item, "depot": depot[1]}, (gold,))
        number = self._number(self.looked_at.pop())
        gold = call("get_order", order_no=number)
        answer = (self.orders[number[0]]["status"],)
        return Wish("state", {"number": number[1]}, (gold,), answer)

    def _number(self, number: str) -> Said:
        return number_in(self.conventions, number), number

    def _code(self, key: str) -> Said:
        name = self.rng.choice(sorted(self.conventions[key]))
        return self.conventions[key][name], name

    def _age(self, late: bool) -> int:
        """Days since an order arrived, past what the house rules allow or well within."""
        last = self.conventions["return_days"]
        return last + self.rng.randint(3, 40) if late else self.rng.randint(2, last - 3)
