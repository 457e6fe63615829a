"""The planted slips of the simulated reader: errors on purpose, each with the label it deserves."""

import json
import random
from dataclasses import dataclass, replace

from pydantic import JsonValue

from seal.models.protocol import PolicyInput
from seal.models.reading import stands_in
from seal.types import Arguments, GoldCall, Slip, ToolContract


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that the reader means to make."""

    tool: str
    arguments: Arguments
    gold: GoldCall | None
    """The gold call it stands for; None for a needless or spurious one."""
    wrong: tuple[str, ...] = ()
    """Arguments that go out as the user said them."""
    slip: Slip | None = None
    raw: str | None = None
    """Text to send in place of the arguments' JSON."""

    def text(self) -> str:
        """The arguments as the call carries them."""
        return self.raw if self.raw is not None else json.dumps(self.arguments, ensure_ascii=False)

    def became_refused(self) -> tuple[Slip, ...]:
        """A wrong argument that the world refused is logged again, as what it became."""
        if self.slip is None or self.slip.kind != "wrong_argument":
            return ()
        return (self.slip.model_copy(update={"kind": "refused"}),)

    def mends(self, message: str) -> bool:
        """Whether an error message says enough to take the slip back."""
        if self.slip is None or self.gold is None:
            return False
        if self.slip.kind in ("argument_missing", "argument_unexpected"):
            return f"'{self.slip.argument}'" in message
        if self.slip.kind == "unknown_tool":
            return stands_in(self.gold.tool, message)
        # A wrong type or a broken call is mended by seeing the form of a right one.
        return f"{self.gold.tool}(" in message


def plant(
    draw: random.Random, call: Planned, given: PolicyInput, *, alone: bool
) -> tuple[Planned | None, Slip]:
    """A call with one slip in it, or None if the slip is that it is not made.

    Args:
        draw: Where the kind and place of the slip come from.
        call: The call as it would have been.
        given: What the policy was given.
        alone: It is the only call that gold makes in this turn.
    """
    contract = given.contracts[call.tool]
    kind = draw.choice(_kinds(call, contract))
    if kind == "drop":
        slip = Slip(
            turn=given.turn,
            kind="no_call" if alone else "missing_call",
            tool=call.tool,
        )
        return None, slip
    argument = draw.choice(sorted(call.arguments)) if call.arguments else None
    if kind == "argument_missing":
        argument = draw.choice([name for name in contract.required if name in call.arguments])
    spoilt, tool = _spoil(kind, call, argument, draw)
    named = kind in ("malformed_call", "unknown_tool")
    if kind == "argument_unexpected":
        argument = "note"
    slip = Slip(turn=given.turn, kind=kind, tool=tool, argument=None if named else argument)
    return replace(spoilt, slip=slip), slip


def _kinds(call: Planned, contract: ToolContract) -> list[str]:
    kinds = ["drop", "malformed_call", "unknown_tool"]
    if "note" not in contract.arguments:
        kinds.append("argument_unexpected")
    if call.arguments:
        kinds += ["wrong_argument", "wrong_argument", "argument_type"]
    if any(name in call.arguments for name in contract.required):
        kinds.append("argument_missing")
    return kinds


def _spoil(
    kind: str, call: Planned, argument: str | None, draw: random.Random
) -> tuple[Planned, str]:
    arguments = dict(call.arguments)
    if kind == "malformed_call":
        return replace(call, raw=call.text()[:-1]), call.tool
    if kind == "unknown_tool":
        tool = f"{call.tool}_now"
        return replace(call, tool=tool), tool
    if kind == "argument_unexpected":
        arguments["note"] = "please"
    elif argument is not None and kind == "argument_missing":
        del arguments[argument]
    elif argument is not None and kind == "argument_type":
        arguments[argument] = {"value": arguments[argument]}
    elif argument is not None:
        arguments[argument] = perturbed(arguments[argument], draw)
    wrong = tuple(name for name in call.wrong if name != argument)
    return replace(call, arguments=arguments, wrong=wrong), call.tool


def guessed(arguments: Arguments, draw: random.Random) -> Arguments:
    """The same arguments with one of them changed to something as plausible."""
    names = sorted(n for n, value in arguments.items() if isinstance(value, str | int | float))
    if not names:
        return arguments
    name = draw.choice(names)
    return {**arguments, name: perturbed(arguments[name], draw)}


def perturbed(value: JsonValue, draw: random.Random) -> JsonValue:
    """Another value of the same type and form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + draw.randint(1, 3)
    if isinstance(value, list):
        return [*value[:-1], perturbed(value[-1], draw)] if value else ["other"]
    if isinstance(value, dict):
        return {**value, "other": "other"}
    text = str(value)
    digits = [i for i, letter in enumerate(text) if letter.isdigit()]
    if digits:
        at = draw.choice(digits)
        return f"{text[:at]}{(int(text[at]) + draw.randint(1, 8)) % 10}{text[at + 1 :]}"
    return f"{text}{draw.choice('abcdefgh')}"
