"""A parcel desk for tests of evolution: no name of it is known to the package.

Its zones have codes, its weights a silent unit, its pickups a form, and a parcel must be stamped
before it is dispatched. Where a request lacks its zone, the right thing is to ask.
"""

from pathlib import Path

from tests.factories import write_environment

TOML = """\
name = "parcels"
description = "You run the parcel desk of a small harbour."
licence = "CC0-1.0"

[limits]
steps = 6
"""

WORLD = '''\
"""The desk: its parcels, and what its carrier insists on."""

from seal.envs import Environment, tool
from seal.errors import ToolError
from seal.types import GoldCall, Rule, Task, UserTurn

ZONES = {"islands": "Q4", "mainland": "H7", "overseas": "V9"}
PICKUPS = {"monday morning": "1/am", "monday evening": "1/pm", "friday morning": "5/am"}
KILOS = {"one kilo": 1000, "two kilos": 2000, "half a kilo": 500}
TAGS = [f"{letter}{number}" for letter in "KLMNP" for number in range(20, 44)]


class Parcels(Environment):

    @classmethod
    def generate(cls, conventions, rng):
        tag, other = rng.sample(TAGS, 2)
        said = {
            "zone": rng.choice(sorted(ZONES)),
            "pickup": rng.choice(sorted(PICKUPS)),
            "mass": rng.choice(sorted(KILOS)),
        }
        arguments = {
            "tag": tag,
            "zone": ZONES[said["zone"]],
            "pickup": PICKUPS[said["pickup"]],
            "mass": KILOS[said["mass"]],
        }
        said["mass"] = arguments["mass"] // 500
        stamp = GoldCall(tool="stamp_parcel", arguments={"tag": tag})
        dispatch = GoldCall(tool="dispatch_parcel", arguments=arguments, as_said=said)
        told = f"it goes to the {said['zone']}, {said['pickup']}, {said['mass']} half kilos"
        kind = rng.randrange(4)
        if kind == 0:
            turns = [
                UserTurn(user=f"Send parcel {tag} off.", gold=()),
                UserTurn(user=f"Sorry: {told}.", gold=(stamp, dispatch)),
            ]
        elif kind == 1:
            trash = GoldCall(tool="discard_parcel", arguments={"tag": other})
            turns = [
                UserTurn(user=f"Throw parcel {other} away.", gold=(trash,)),
                UserTurn(user=f"Send {tag}, {told}.", gold=(stamp, dispatch)),
            ]
        else:
            turns = [UserTurn(user=f"Send {tag}, {told}.", gold=(stamp, dispatch))]
        yield Task(
            id="", scenario="", group=f"kind-{min(kind, 2)}", turns=turns,
            state={"shelf": sorted([tag, other])},
        )

    def reset(self, task: Task) -> None:
        self.shelf = list(task.state["shelf"])
        self.sent = []
        self._stamped = set()

    def _need(self, tag: str) -> None:
        if tag not in self.shelf:
            raise ToolError("no_parcel", "Not on the shelf.", argument="tag", allowed=self.shelf)

    @tool(mutates=False)
    def stamp_parcel(self, tag: str) -> str:
        """Put a stamp on a parcel."""
        self._need(tag)
        self._stamped.add(tag)
        return "stamped"

    @tool(
        requires="stamp_parcel",
        zone=Rule(allowed=ZONES),
        pickup=Rule(format='"1/am" for monday morning'),
        mass=Rule(unit="grams"),
    )
    def dispatch_parcel(self, tag: str, zone: str, pickup: str, mass: int) -> str:
        """Hand a parcel to the carrier."""
        self._need(tag)
        if zone not in ZONES.values():
            raise ToolError("no_zone", "The carrier does not go there.", argument="zone")
        if pickup not in PICKUPS.values():
            raise ToolError("no_pickup", "Nobody comes then.", argument="pickup")
        if tag not in self._stamped:
            raise ToolError("not_stamped", "It lacks something.")
        self.shelf.remove(tag)
        self.sent.append([tag, zone, pickup, mass])
        return "dispatched"

    @tool
    def ring_owner(self, tag: str) -> str:
        """Ring the owner of a parcel."""
        self._need(tag)
        if tag[0] in "KL":
            self.shelf.remove(tag)
        return "they come for it" if tag[0] in "KL" else "nobody answers"

    @tool
    def discard_parcel(self, tag: str) -> str:
        """Throw a parcel away."""
        self._need(tag)
        self.shelf.remove(tag)
        return "gone"
'''

SLOTS = """\
[dispatch_parcel]
affordance = "Hands it over at once."
"""


def write_parcels(folder: Path, *, slots: str = SLOTS) -> Path:
    """The parcel desk in a folder."""
    write_environment(folder, toml=TOML, world=WORLD, tools={}, slots=slots, tasks=())
    (folder / "tasks.jsonl").unlink(missing_ok=True)
    return folder
