"""Booking meeting rooms, in a house whose codes, formats and units are drawn from a seed."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seal.envs import Environment, tool
from seal.errors import ToolError
from seal.types import GoldCall, Rule, Task, UserTurn

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
HOURS = range(8, 18)
ROOMS = ("blue", "red", "green", "amber", "north", "south", "attic", "garden", "tower", "river")
FOODS = ("coffee", "tea", "lunch", "cake", "juice", "fruit", "soup", "bread")
DAY_FORMS: Mapping[str, Callable[[str], str]] = {
    "mon": lambda day: day[:3].lower(),
    "MON": lambda day: day[:3].upper(),
    "Mo": lambda day: day[:2],
    "mon.": lambda day: f"{day[:3].lower()}.",
    "1": lambda day: str(DAYS.index(day) + 1),
    "D1": lambda day: f"D{DAYS.index(day) + 1}",
}
HOUR_FORMS: Mapping[str, Callable[[int], str]] = {
    "14:00": lambda hour: f"{hour:02d}:00",
    "1400": lambda hour: f"{hour:02d}00",
    "14h": lambda hour: f"{hour}h",
    "14.00": lambda hour: f"{hour:02d}.00",
    "T14": lambda hour: f"T{hour:02d}",
}
LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
NOT_OURS = (
    "Please repaint the {room} room before {day}.",
    "Can you book me a flight for {day} at {hour}?",
    "Send everyone in the {room} room an invitation by letter.",
    "Order a taxi for {day}, {hour}.",
)


def spoken(hour: int) -> str:
    """An hour as people say it: `2 pm`."""
    return f"{(hour - 1) % 12 + 1} {'am' if hour < 12 else 'pm'}"


def draw_codes(rng: random.Random, names: tuple[str, ...]) -> dict[str, str]:
    """A code for each name, none of them guessable."""
    codes: set[str] = set()
    while len(codes) < len(names):
        letter, digit = rng.choice(LETTERS), rng.randint(2, 9)
        codes.add(f"{letter}{digit}")
    return dict(zip(names, rng.sample(sorted(codes), len(names)), strict=True))


def told_apart(*codes: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, but no two codes begin alike: the later one takes the next letter that is free."""
    first = {code[0] for group in codes for code in group.values()}
    taken: set[str] = set()
    for group in codes:
        own = {}
        for name, code in group.items():
            letter = code[0]
            if letter in taken:
                after = LETTERS.index(letter)
                letters = LETTERS[after:] + LETTERS[:after]
                letter = next(one for one in letters if one not in first | taken)
            taken.add(letter)
            own[name] = letter + code[1:]
        yield own


def format_rule(key: str) -> Callable[[Any], Rule]:
    """The drawn form of days or hours, by example."""
    forms: Mapping[str, Any] = DAY_FORMS if key == "day" else HOUR_FORMS
    value, said = ("Monday", "Monday") if key == "day" else (14, "2 pm")
    return lambda drawn: Rule(format=f'"{forms[drawn[key]](value)}" for {said}')


def codes_rule(key: str) -> Callable[[Any], Rule]:
    """The drawn codes, each with what it stands for."""
    return lambda drawn: Rule(allowed=drawn[key])


def length_rule(drawn: Mapping[str, Any]) -> Rule:
    """The drawn unit of a booking's length."""
    return Rule(unit=drawn["length"])


def portions_rule(drawn: Mapping[str, Any]) -> Rule:
    """Food comes in trays of a drawn size."""
    return Rule(unit=f"trays for {drawn['tray']} people")


def prerequisite(drawn: Mapping[str, Any]) -> str | None:
    """In some houses a room must be looked at before it is booked."""
    return "check_room" if drawn["check_first"] else None


class Rooms(Environment):
    """The house: its bookings, its kitchen, and what its tools insist on."""

    @classmethod
    def draw(cls, rng: random.Random) -> dict[str, Any]:
        check_first = rng.randint(1, 3) > 1
        rooms = draw_codes(rng, tuple(rng.sample(ROOMS, 4)))
        foods = draw_codes(rng, tuple(rng.sample(FOODS, 3)))
        rooms, foods = told_apart(rooms, foods)
        return {
            "check_first": check_first,
            "rooms": rooms,
            "foods": foods,
            "day": rng.choice(sorted(DAY_FORMS)),
            "hour": rng.choice(sorted(HOUR_FORMS)),
            "length": rng.choice(["minutes", "hours"]),
            "tray": rng.choice([2, 4]),
        }

    @classmethod
    def generate(cls, conventions: Mapping[str, Any], rng: random.Random) -> Iterator[Task]:
        yield Scenario(conventions, rng).task()

    def reset(self, task: Task) -> None:
        self.bookings: dict[str, int] = dict(task.state["bookings"])
        self.stock: dict[str, int] = dict(task.state["stock"])
        self.orders: list[list[Any]] = []
        self._checked: set[tuple[str, str]] = set()

    @tool(mutates=False, day=format_rule("day"))
    def list_bookings(self, day: str) -> list[str]:
        """Every booking of a day."""
        self._need_day(day)
        return sorted(key for key in self.bookings if key.split(" ")[1] == day)

    @tool(mutates=False, day=format_rule("day"), hour=format_rule("hour"))
    def find_rooms(self, day: str, hour: str) -> list[str]:
        """Rooms that are free at an hour."""
        self._need_day(day)
        self._need_hour(hour)
        return [room for room in self._codes() if f"{room} {day} {hour}" not in self.bookings]

    @tool(mutates=False, room=codes_rule("rooms"), day=format_rule("day"))
    def check_room(self, room: str, day: str) -> str:
        """When a room is taken on a day."""
        self._need_room(room)
        self._need_day(day)
        self._checked.add((room, day))
        taken = [hour for hour in self._hours() if f"{room} {day} {hour}" in self.bookings]
        return f"taken at {', '.join(taken)}" if taken else "free all day"

    @tool(
        requires=prerequisite,
        room=codes_rule("rooms"),
        day=format_rule("day"),
        hour=format_rule("hour"),
        length=length_rule,
    )
    def book_room(self, room: str, day: str, hour: str, length: int) -> str:
        """Book a room."""
        self._need_room(room)
        self._need_day(day)
        self._need_hour(hour)
        if self.conventions["check_first"] and (room, day) not in self._checked:
            raise ToolError("not_checked", "Not yet.")
        if f"{room} {day} {hour}" in self.bookings:
            free = [h for h in self._hours() if f"{room} {day} {h}" not in self.bookings]
            raise ToolError("taken", "The room is taken then.", argument="hour", allowed=free)
        # A length in the wrong unit raises nothing: the booking is just too short or too long.
        self.bookings[f"{room} {day} {hour}"] = length
        return "booked"

    @tool(room=codes_rule("rooms"), day=format_rule("day"), hour=format_rule("hour"))
    def cancel_booking(self, room: str, day: str, hour: str) -> str:
        """Cancel a booking."""
        self._need_room(room)
        self._need_day(day)
        self._need_hour(hour)
        if self.bookings.pop(f"{room} {day} {hour}", None) is None:
            raise ToolError("no_booking", "There is no such booking.")
        return "cancelled"

    @tool(
        food=codes_rule("foods"),
        day=format_rule("day"),
        hour=format_rule("hour"),
        portions=portions_rule,
    )
    def order_food(self, food: str, day: str, hour: str, portions: int) -> str:
        """Order something to eat or drink."""
        if food not in self.conventions["foods"].values():
            raise ToolError("unknown_food", "The kitchen does not know that.", argument="food")
        self._need_day(day)
        self._need_hour(hour)
        left = self.stock[food]
        if portions > left:
            raise ToolError("sold_out", "Not enough left.", argument="portions", maximum=left)
        # Portions in the wrong unit raise nothing either: too much or too little is brought.
        self.stock[food] = left - portions
        self.orders.append([food, day, hour, portions])
        return "ordered"

    def _codes(self) -> list[str]:
        return sorted(self.conventions["rooms"].values())

    def _hours(self) -> list[str]:
        return [HOUR_FORMS[self.conventions["hour"]](hour) for hour in HOURS]

    def _need_room(self, room: str) -> None:
        if room not in self._codes():
            raise ToolError("unknown_room", "There is no such room.", argument="room")

    def _need_day(self, day: str) -> None:
        if day not in [DAY_FORMS[self.conventions["day"]](name) for name in DAYS]:
            raise ToolError("unknown_day", "That is no day here.", argument="day")

    def _need_hour(self, hour: str) -> None:
        if hour not in self._hours():
            raise ToolError("unknown_hour", "That is no hour here.", argument="hour")


@dataclass(frozen=True)
class Slot:
    """A place and a time, as people say them."""

    room: str
    day: str
    hour: int

    def said(self, conventions: Mapping[str, Any], *names: str) -> tuple[dict, dict]:
        """The named arguments as the house writes them, and as the user said them."""
        forms = {
            "room": (conventions["rooms"][self.room], self.room),
            "day": (DAY_FORMS[conventions["day"]](self.day), self.day),
            "hour": (HOUR_FORMS[conventions["hour"]](self.hour), spoken(self.hour)),
        }
        return {n: forms[n][0] for n in names}, {n: forms[n][1] for n in names}


class Scenario:
    """What one user wants over one to three turns."""

    def __init__(self, conventions: Mapping[str, Any], rng: random.Random) -> None:
        self.conventions = conventions
        self.rng = rng
        self.stock = {code: rng.randint(40, 60) for code in conventions["foods"].values()}
        self.bookings: dict[str, int] = {}
        places = [Slot(r, d, h) for r in conventions["rooms"] for d in DAYS for h in HOURS]
        self.places = rng.sample(places, 12)
        for place in self.places[6:]:
            self.bookings[self._key(place)] = rng.choice([30, 60, 90])

    def _key(self, place: Slot) -> str:
        return " ".join(place.said(self.conventions, "room", "day", "hour")[0].values())

    def task(self) -> Task:
        """A task of a level drawn at random."""
        level = self.rng.choice(["easy", "medium", "hard"])
        simple = [self.book, self.cancel, self.order, self.look]
        if level == "easy":
            turns = [self.rng.choice([*simple, self.book, self.decline])()]
            if turns[0].gold == ():
                turns.append(self.book())
        elif level == "medium":
            first, second = self.rng.sample(simple, 2)
            turns = self.rng.choice([lambda: [first(), second()], self.book_in_two])()
        else:
            turns = [self.rng.choice(simple)(), self.move_with_food()]
            turns.insert(self.rng.randint(0, 2), self.decline())
        state = {"bookings": self.bookings, "stock": self.stock}
        return Task(id="", scenario="", group=level, turns=tuple(turns), state=state)

    def _free(self) -> Slot:
        return self.places.pop(0)

    def _length(self) -> tuple[str, dict, dict]:
        hours = self.rng.choice([1, 2, 3])
        unit = self.rng.choice(["hours", "minutes"])
        said = hours * (60 if unit == "minutes" else 1)
        gold = hours * (60 if self.conventions["length"] == "minutes" else 1)
        text = f"{said} {unit if said > 1 else unit[:-1]}"
        return text, {"length": gold}, {"length": said}

    def _booking(self, place: Slot, length: tuple[str, dict, dict]) -> tuple[GoldCall, ...]:
        arguments, as_said = place.said(self.conventions, "room", "day", "hour")
        book = call("book_room", arguments | length[1], as_said | length[2])
        if not self.conventions["check_first"]:
            return (book,)
        return (call("check_room", *place.said(self.conventions, "room", "day")), book)

    def book(self) -> UserTurn:
        place, length = self._free(), self._length()
        user = self.rng.choice(
            [
                "Book the {room} room on {day} at {hour} for {length}.",
                "I need the {room} room for {length}, {day} at {hour}.",
                "Please reserve {length} in the {room} room on {day}, starting at {hour}.",
            ]
        )
        return self._turn(user, place, self._booking(place, length), length=length[0])

    def book_in_two(self) -> list[UserTurn]:
        """A booking whose hour is missing at first: the right thing is to ask."""
        place, length = self._free(), self._length()
        user = self.rng.choice(
            [
                "Book the {room} room on {day} for {length}.",
                "We want the {room} room on {day}, {length} will do.",
            ]
        )
        answer = self.rng.choice(["At {hour}, please.", "Oh, at {hour}."])
        return [
            self._turn(user, place, (), length=length[0]),
            self._turn(answer, place, self._booking(place, length)),
        ]

    def cancel(self) -> UserTurn:
        place = self.places.pop()
        user = self.rng.choice(
            [
                "Cancel the {room} room on {day} at {hour}.",
                "We do not need the {room} room at {hour} on {day} after all.",
            ]
        )
        named = place.said(self.conventions, "room", "day", "hour")
        return self._turn(user, place, (call("cancel_booking", *named),))

    def look(self) -> UserTurn:
        place = self._free()
        user = self.rng.choice(
            ["When is the {room} room taken on {day}?", "Is the {room} room free on {day}?"]
        )
        named = place.said(self.conventions, "room", "day")
        return self._turn(user, place, (call("check_room", *named),))

    def _order(self, place: Slot) -> tuple[str, str, GoldCall]:
        food = self.rng.choice(sorted(self.conventions["foods"]))
        people = 4 * self.rng.randint(1, 4)
        portions = people // self.conventions["tray"]
        arguments, as_said = place.said(self.conventions, "day", "hour")
        arguments = {"food": self.conventions["foods"][food], **arguments, "portions": portions}
        as_said = {"food": food, **as_said, "portions": people}
        return food, str(people), call("order_food", arguments, as_said)

    def order(self) -> UserTurn:
        place = self._free()
        food, people, gold = self._order(place)
        user = self.rng.choice(
            [
                "Order {food} for {people} people on {day} at {hour}.",
                "On {day} at {hour} we want {food}, there will be {people} of us.",
            ]
        )
        return self._turn(user, place, (gold,), food=food, people=people)

    def move_with_food(self) -> UserTurn:
        """Three actions in one turn: there is no step to waste."""
        place, length, old = self._free(), self._length(), self.places.pop()
        food, people, order = self._order(place)
        user = self.rng.choice(
            [
                "Cancel the {old} room on {old_day} at {old_hour}. Book the {room} room on {day} "
                "at {hour} for {length} in its place, with {food} for {people} people.",
                "{day} at {hour}: the {room} room for {length}, and {food} for {people} people. "
                "Then the {old} room on {old_day} at {old_hour} can be cancelled.",
            ]
        )
        cancel = call("cancel_booking", *old.said(self.conventions, "room", "day", "hour"))
        gold = (*self._booking(place, length), order)
        gold = (cancel, *gold) if user.startswith("Cancel") else (*gold, cancel)
        said = {"old": old.room, "old_day": old.day, "old_hour": spoken(old.hour)}
        said |= {"length": length[0], "food": food, "people": people}
        return self._turn(user, place, gold, **said)

    def decline(self) -> UserTurn:
        return self._turn(self.rng.choice(NOT_OURS), self.rng.choice(self.places), ())

    @staticmethod
    def _turn(user: str, place: Slot, gold: tuple[GoldCall, ...], **said: str) -> UserTurn:
        where = {"room": place.room, "day": place.day, "hour": spoken(place.hour)}
        return UserTurn(user=user.format(**where, **said), gold=gold)


def call(name: str, arguments: dict, as_said: dict) -> GoldCall:
    """A gold call; what the user said is kept only where the house wants it otherwise."""
    differs = {key: said for key, said in as_said.items() if said != arguments[key]}
    return GoldCall(tool=name, arguments=arguments, as_said=differs)
