"""Running a house whose codes, units, modes and order of steps are drawn from a seed."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from seal.envs import Environment, tool
from seal.errors import ToolError
from seal.types import GoldCall, Rule, Task, UserTurn

ZONES = ("kitchen", "study", "hall", "attic", "bedroom", "nursery", "lounge", "studio", "bathroom")
SCENES = ("film", "dinner", "party", "yoga", "cleaning", "goodnight", "breakfast", "holiday")
DOORS = ("front", "garage", "cellar", "terrace", "garden", "balcony")
MODES = ("gentle", "normal", "strong")
MODE_NAMES = ("eco cosy turbo", "whisper breeze gale", "calm flow rush", "P3 P1 P2", "M20 M50 M80")
TIMES = [60 * hour + minute for hour in range(6, 23) for minute in (0, 15, 30, 45)]
TIME_FORMS = ("{:02d}:{:02d}", "{:02d}{:02d}", "{:02d}h{:02d}", "{:02d}.{:02d}", "T{:02d}{:02d}")
UNITS: Mapping[str, Mapping[str, Callable[[int], int]]] = {
    "level": {"%": int, "tenths": lambda n: n // 10, "steps of 1/255": lambda n: n * 255 // 100},
    "tone": {"kelvin": int, "mired": lambda n: 1_000_000 // n},
    "degrees": {"celsius": int, "kelvin": lambda n: n + 273, "tenths of degrees": lambda n: n * 10},
    "position": {"% closed": int, "% open": lambda n: 100 - n, "tenths closed": lambda n: n // 10},
    "duration": {"minutes": int, "seconds": lambda n: n * 60},
}
"""Per argument, what a house may count in, each with the way there from what people say."""
NOT_OURS = (
    "Please water the plants in the {zone}.",
    "Order a pizza for {time}, please.",
    "Something drips in the {zone}. Can you call a plumber?",
    "Who rang at the {door} door this morning?",
    "Play some music in the {zone}.",
    "What will the weather be like at {time}?",
)


def spoken(time: int) -> str:
    """Minutes after midnight as people say them: `7:30 pm`."""
    hour, minute = divmod(time, 60)
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'am' if hour < 12 else 'pm'}"


@cache
def times_of(form: str) -> frozenset[str]:
    """Every minute of a day, as a house writes it."""
    return frozenset(form.format(*divmod(time, 60)) for time in range(24 * 60))


def draw_codes(rng: random.Random, names: tuple[str, ...], count: int, form: str) -> dict[str, str]:
    """A code for some of the names, none of them guessable; `x` is a letter and `0` a digit."""
    codes: set[str] = set()
    while len(codes) < count:
        letters = [rng.choice("CDFGHJKLMNPQRSTVWXZ") if c == "x" else c for c in form]
        codes.add("".join(str(rng.randint(2, 9)) if c == "0" else c for c in letters))
    return dict(zip(rng.sample(names, count), rng.sample(sorted(codes), count), strict=True))


def codes_rule(key: str) -> Callable[[Any], Rule]:
    """The drawn codes or names, each with what it stands for."""
    return lambda drawn: Rule(allowed=drawn[key])


def unit_rule(key: str) -> Callable[[Any], Rule]:
    """The drawn unit of an argument."""
    return lambda drawn: Rule(unit=drawn[key])


def time_rule(drawn: Mapping[str, Any]) -> Rule:
    """The drawn form of times, by example."""
    return Rule(format=f'"{drawn["start_time"].format(19, 30)}" for 7:30 pm')


def needs(key: str, name: str) -> Callable[[Any], str | None]:
    """In houses where the convention holds, another tool has to come first."""
    return lambda drawn: name if drawn[key] else None


class Home(Environment):
    """The house: what is on, open or planned in it, and what its tools insist on."""

    @classmethod
    def draw(cls, rng: random.Random) -> dict[str, Any]:
        guarded, sleeps = rng.choice([(True, True), (True, False), (False, True)])
        return {
            "guarded": guarded,
            "sleeps": sleeps,
            "zones": draw_codes(rng, ZONES, 5, "0x"),
            "scenes": draw_codes(rng, SCENES, 3, "s00"),
            "doors": draw_codes(rng, DOORS, 3, "xx0"),
            "modes": dict(zip(MODES, rng.choice(MODE_NAMES).split(), strict=True)),
            "start_time": rng.choice(TIME_FORMS),
            **{name: rng.choice(sorted(units)) for name, units in UNITS.items()},
        }

    @classmethod
    def generate(cls, conventions: Mapping[str, Any], rng: random.Random) -> Iterator[Task]:
        yield Scenario(conventions, rng).task()

    def reset(self, task: Task) -> None:
        self.lights: dict[str, list[int | None]] = {}
        self.heating: dict[str, int] = {}
        self.blinds: dict[str, int] = {}
        self.fans: dict[str, list[Any]] = {}
        self.scenes: dict[str, str] = {}
        self.doors: set[str] = set()
        self.armed = True
        self._awake = False
        self._given: dict[str, Any] = dict(task.state)

    @tool(mutates=False)
    def house_status(self) -> dict[str, Any]:
        """How the house is."""
        return {
            "alarm": "on" if self.armed else "off",
            "blocked_door": self._given["blocked"],
            "open_window": self._given["window"],
            "boiler_limit": self._degrees(self._given["limit"]),
        }

    @tool(mutates=False, zone=codes_rule("zones"))
    def read_sensor(self, zone: str) -> dict[str, int]:
        """How warm and how damp a zone is."""
        self._need("zone", zone)
        warm, damp = self._given["sensors"][zone]
        return {"temperature": self._degrees(warm), "humidity": damp}

    @tool(zone=codes_rule("zones"), level=unit_rule("level"), tone=unit_rule("tone"))
    def set_light(self, zone: str, level: int, tone: int | None = None) -> str:
        """Set a light."""
        self._need("zone", zone)
        self._need_range("level", level)
        # A level or tone in the wrong unit raises nothing: the light is just not as it should be.
        self.lights[zone] = [level, tone]
        return "set"

    @tool(zone=codes_rule("zones"), degrees=unit_rule("degrees"))
    def set_heating(self, zone: str, degrees: int) -> str:
        """Set the heating."""
        self._need("zone", zone)
        limit = self._degrees(self._given["limit"])
        if degrees > limit:
            raise ToolError("too_warm", "More than it can do.", argument="degrees", maximum=limit)
        self.heating[zone] = degrees
        return "set"

    @tool(zone=codes_rule("zones"), position=unit_rule("position"))
    def move_blinds(self, zone: str, position: int) -> str:
        """Move the blinds."""
        self._need("zone", zone)
        self._need_range("position", position)
        window = self._given["window"]
        if zone == window:
            free = sorted({*self.conventions["zones"].values()} - {window})
            raise ToolError("window_open", "A window is open.", argument="zone", allowed=free)
        self.blinds[zone] = position
        return "moved"

    @tool(zone=codes_rule("zones"), mode=codes_rule("modes"), duration=unit_rule("duration"))
    def run_fan(self, zone: str, mode: str, duration: int) -> str:
        """Run a fan."""
        self._need("zone", zone)
        self._need("mode", mode)
        # A duration in the wrong unit raises nothing either: the fan stops too soon or too late.
        self.fans[zone] = [mode, duration]
        return "running"

    @tool
    def wake_hub(self) -> str:
        """Wake the hub."""
        self._awake = True
        return "awake"

    @tool(requires=needs("sleeps", "wake_hub"), scene=codes_rule("scenes"), start_time=time_rule)
    def run_scene(self, scene: str, start_time: str) -> str:
        """Run a scene."""
        self._need("scene", scene)
        if start_time not in times_of(self.conventions["start_time"]):
            raise ToolError("unknown_time", "That is no time here.", argument="start_time")
        if self.conventions["sleeps"] and not self._awake:
            raise ToolError("no_answer", "No answer.")
        self.scenes[scene] = start_time
        self._awake = False  # It dozes off again after each scene.
        return "planned"

    @tool
    def disarm_house(self, pin: str) -> str:
        """Switch the alarm off."""
        if pin != self._given["pin"]:
            raise ToolError("wrong_pin", "Wrong code.", argument="pin")
        self.armed = False
        return "off"

    @tool(requires=needs("guarded", "disarm_house"), door=codes_rule("doors"))
    def open_door(self, door: str) -> str:
        """Open a door."""
        self._need("door", door)
        if self.conventions["guarded"] and self.armed:
            raise ToolError("not_now", "Not now.")
        blocked = self._given["blocked"]
        if door == blocked:
            free = sorted({*self.conventions["doors"].values()} - {blocked})
            raise ToolError("blocked", "That door is blocked.", argument="door", allowed=free)
        self.doors.add(door)
        return "open"

    def _degrees(self, celsius: int) -> int:
        return UNITS["degrees"][self.conventions["degrees"]](celsius)

    def _need(self, argument: str, value: str) -> None:
        if value not in self.conventions[f"{argument}s"].values():
            raise ToolError(f"unknown_{argument}", f"No such {argument}.", argument=argument)

    def _need_range(self, argument: str, value: int) -> None:
        count = UNITS[argument][self.conventions[argument]]
        full = max(count(0), count(100))
        if not 0 <= value <= full:
            raise ToolError("range", "Out of range.", argument=argument, minimum=0, maximum=full)


@dataclass(frozen=True)
class Wish:
    """What a user wants, the calls that bring it about, and a vague text that lacks a detail."""

    text: str
    gold: tuple[GoldCall, ...]
    vague: str = ""
    detail: str = ""
    answer: tuple[str, ...] = ()


class Scenario:
    """What one user wants over one to four turns."""

    def __init__(self, conventions: Mapping[str, Any], rng: random.Random) -> None:
        self.conventions = conventions
        self.rng = rng
        self.sensors = {z: (rng.randint(14, 20), rng.randint(30, 79)) for z in conventions["zones"]}
        self.limit = rng.randint(24, 29)
        self.pin = str(rng.randint(1000, 9999))
        # No wish is for the zone whose window is open, nor for the door that is blocked.
        self.zones = rng.sample(sorted(conventions["zones"]), 5)
        self.doors = rng.sample(sorted(conventions["doors"]), 3)
        self.scenes = rng.sample(sorted(conventions["scenes"]), 3)
        self.window, self.blocked = self.zones.pop(), self.doors.pop()

    def task(self) -> Task:
        """A task of a level drawn at random."""
        level = self.rng.choice(["easy", "medium", "hard"])
        turns = {"easy": self.easy, "medium": self.medium, "hard": self.hard}[level]()
        zones, doors = self.conventions["zones"], self.conventions["doors"]
        state = {
            "sensors": {zones[zone]: list(read) for zone, read in self.sensors.items()},
            "window": zones[self.window],
            "blocked": doors[self.blocked],
            "limit": self.limit,
            "pin": self.pin,
        }
        return Task(group=level, turns=tuple(turns), state=state)

    def easy(self) -> list[UserTurn]:
        wish = self.rng.choice([*self.deeds(), self.look])()
        return [*([] if self.rng.randint(0, 4) else [self.decline()]), self.turn(wish)]

    def medium(self) -> list[UserTurn]:
        if self.rng.randint(0, 1):
            return self.rng.choice([self.in_two, self.alike_in_two])()
        wishes = self.rng.sample([*self.deeds(), self.look, self.alike], 2)
        return [self.turn(wish()) for wish in wishes]

    def hard(self) -> list[UserTurn]:
        """Three actions in one turn, in which there is no step to waste, and other turns beside."""
        wishes = [self.light(), self.rng.choice([self.blinds, self.heat, self.fan])(), self.scene()]
        self.rng.shuffle(wishes)
        text = "; ".join(wish.text for wish in wishes)
        many = self.turn(Wish(text, tuple(call for wish in wishes for call in wish.gold)))
        one = [self.turn(self.rng.choice(self.deeds())())]
        parts = [[many], [self.decline()], self.in_two() if self.rng.randint(0, 1) else one]
        self.rng.shuffle(parts)
        return [turn for part in parts for turn in part]

    def in_two(self) -> list[UserTurn]:
        """A wish with something missing at first: the right thing is to ask."""
        deeds = self.deeds() if self.conventions["guarded"] else self.deeds()[:-1]
        wish = self.rng.choice(deeds)()
        return [self.turn(Wish(wish.vague, ())), self.turn(Wish(wish.detail, wish.gold), "{}.")]

    def alike_in_two(self) -> list[UserTurn]:
        """A temperature that the first turn reads is needed in the second one."""
        wish = self.alike()
        read, heat = wish.gold
        return [self.turn(Wish(wish.vague, (read,))), self.turn(Wish(wish.detail, (heat,)))]

    def deeds(self) -> list[Callable[[], Wish]]:
        return [self.light, self.blinds, self.heat, self.fan, self.scene, self.door]

    def turn(self, wish: Wish, form: str = "") -> UserTurn:
        form = form or self.rng.choice(["{}.", "Please {}.", "Could you {}?"])
        user = form.format(wish.text)
        return UserTurn(user=user[0].upper() + user[1:], gold=wish.gold, answer=wish.answer)

    def decline(self) -> UserTurn:
        zone, door = (self.rng.choice(sorted(self.conventions[key])) for key in ("zones", "doors"))
        said = {"zone": zone, "door": door, "time": spoken(self.rng.choice(TIMES))}
        return UserTurn(user=self.rng.choice(NOT_OURS).format(**said), gold=())

    def light(self) -> Wish:
        zone, level = self.zones.pop(), self.rng.choice([20, 40, 60, 80])
        said = {"zone": zone, "level": level}
        tone = ""
        if self.rng.randint(0, 1):
            said["tone"] = self.rng.choice([2000, 2500, 4000, 5000])
            tone = f" at {said['tone']} K"
        text = self.rng.choice(["set the {} light to {}%{}", "dim the light in the {} to {}%{}"])
        vague, detail = f"change the light in the {zone}", f"to {level}%{tone}"
        gold = (self.call("set_light", **said),)
        return Wish(text.format(zone, level, tone), gold, vague, detail)

    def blinds(self) -> Wish:
        zone, percent = self.zones.pop(), self.rng.choice([10, 20, 30, 40, 60, 70, 80, 90])
        text = self.rng.choice(["get the {} blinds {}% closed", "have the {} blinds {}% closed"])
        vague, detail = f"move the blinds in the {zone}", f"to {percent}% closed"
        gold = (self.call("move_blinds", zone=zone, position=percent),)
        return Wish(text.format(zone, percent), gold, vague, detail)

    def heat(self) -> Wish:
        zone, wanted = self.zones.pop(), self.rng.randint(17, 23)
        text = f"{self.rng.choice(['heat', 'get', 'bring'])} the {zone} to {wanted} degrees"
        if self.rng.randint(0, 2) == 0:
            # Only the house knows which of the two it is: its boiler has a limit.
            high = self.rng.choice([one for one in range(25, 31) if one != self.limit])
            text = f"heat the {zone} to {high} degrees, or to {wanted} if the boiler cannot do that"
            wanted = high if high < self.limit else wanted
        gold = (self.call("set_heating", zone=zone, degrees=wanted),)
        return Wish(text, gold, f"change the heating in the {zone}", f"to {wanted} degrees")

    def alike(self) -> Wish:
        """A temperature that has to be read somewhere else first."""
        zone = self.zones.pop()
        other = self.rng.choice([name for name in sorted(self.sensors) if name != zone])
        heat = self.call("set_heating", zone=zone, degrees=self.sensors[other][0])
        heat = heat.model_copy(update={"as_said": {"zone": zone}})
        gold = (self.call("read_sensor", zone=other), heat)
        vague, detail = f"check how warm the {other} is", f"make the {zone} just as warm"
        return Wish(f"make the {zone} as warm as the {other} is now", gold, vague, detail)

    def fan(self) -> Wish:
        zone, mode = self.zones.pop(), self.rng.choice(MODES)
        unit, minutes = self.rng.choice([("minutes", 1), ("hours", 60)])
        count = self.rng.choice([10, 15, 20, 40]) if minutes == 1 else self.rng.randint(2, 4)
        call = self.call("run_fan", zone=zone, mode=mode, duration=count * minutes)
        if call.arguments["duration"] != count:
            call = call.model_copy(update={"as_said": call.as_said | {"duration": count}})
        vague, detail = f"run the fan in the {zone} on {mode}", f"for {count} {unit}"
        return Wish(f"{vague} {detail}", (call,), vague, detail)

    def scene(self) -> Wish:
        scene, time = self.scenes.pop(), self.rng.choice(TIMES)
        text = self.rng.choice(["start the {} scene {}", "have the {} scene run {}"])
        vague, detail = f"start the {scene} scene later on", f"at {spoken(time)}"
        gold = (self.call("run_scene", scene=scene, start_time=time),)
        if self.conventions["sleeps"]:
            gold = (self.call("wake_hub"), *gold)
        return Wish(text.format(scene, detail), gold, vague, detail)

    def door(self) -> Wish:
        door = self.rng.choice(self.doors)
        text = f"open the {door} door"
        if self.rng.randint(0, 2) == 0:
            first, second = self.rng.sample([door, self.blocked], 2)
            text = f"open the {first} door, or the {second} one if that is blocked"
        gold = (self.call("open_door", door=door),)
        if not self.conventions["guarded"]:
            return Wish(text, gold)
        gold, detail = (self.call("disarm_house", pin=self.pin), *gold), f"the code is {self.pin}"
        return Wish(f"{text}, {detail}", gold, text, detail)

    def look(self) -> Wish:
        if self.rng.randint(0, 2) == 0:
            return Wish("check whether the alarm is on", (self.call("house_status"),))
        zone = self.rng.choice(sorted(self.sensors))
        gold, damp = (self.call("read_sensor", zone=zone),), str(self.sensors[zone][1])
        return Wish(f"tell me how damp the {zone} is", gold, answer=(damp,))

    def call(self, name: str, **said: int | str) -> GoldCall:
        """A gold call; what the user said is kept only where the house wants it otherwise."""
        arguments = {argument: self.written(argument, value) for argument, value in said.items()}
        if "start_time" in said:
            said["start_time"] = spoken(said["start_time"])
        differs = {key: value for key, value in said.items() if value != arguments[key]}
        return GoldCall(tool=name, arguments=arguments, as_said=differs)

    def written(self, argument: str, value: int | str) -> int | str:
        """A value as the house writes it."""
        if argument in UNITS:
            return UNITS[argument][self.conventions[argument]](value)
        if argument == "start_time":
            return self.conventions[argument].format(*divmod(value, 60))
        return self.conventions.get(f"{argument}s", {}).get(value, value)
